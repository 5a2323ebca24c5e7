"""The operator's answer to a statement that a task has stopped at."""

from __future__ import annotations

from actors.faults import FatalError
from replicator.downstream.ddl_overrides import DdlOverride, DdlOverrideStore
from replicator.downstream.holder import this_process
from replicator.downstream.lease import Lease
from replicator.downstream.meta import MetaStore
from replicator.mysql.connection import Connection, DatabaseAddress
from replicator.schema.overridden_effects import OverrideAction
from tests.support.merging import Merging


async def override(
    merging: Merging, fault: FatalError, action: OverrideAction, *statements: str
) -> None:
    """What `replicator binlog` does about the statement of a fault, while the task is paused."""
    event = fault.ddl_event
    assert event is not None
    assert action.value in event.actions
    place, server, name = event.position, merging.target, merging.database
    connection = Connection(DatabaseAddress(server.host, server.port, server.user, server.password))
    lease = Lease(f"{name}_meta", name, this_process())
    await lease.begin(connection)
    answer = DdlOverride(
        event.source, place.file, place.offset, place.key, action, tuple(statements)
    )
    await DdlOverrideStore(MetaStore(connection, f"{name}_meta", name, lease)).put(answer)
    connection.close()
