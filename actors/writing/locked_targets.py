"""Targets that another session has locked: they step aside for the others, and come back."""

from __future__ import annotations

from collections.abc import Callable, Collection

from actors.faults import FatalError, of_target
from replicator.mysql.names import TableName

Others = Callable[[Collection[TableName]], bool]
"""Whether there are targets that go on besides these: else there is nobody to step aside for."""


def locked_fault(targets: Collection[TableName], message: str, where: str) -> FatalError:
    """What holds these targets until they are tried again. ``message``: the server's words."""
    names = sorted(targets)
    return FatalError(
        "target.locked",
        f"another session has locked {', '.join(map(str, names))}, and did not let go: {message}."
        " The other targets do not wait for that",
        where=where,
        scope=of_target(*names),
        remedies=(
            "wait: it is tried again by itself, after some seconds at first and some minutes in the"
            " end; `replicator resume` does it at once",
            "end what has the lock: SHOW FULL PROCESSLIST, information_schema.INNODB_TRX (TiDB:"
            " information_schema.TIDB_TRX) and performance_schema.metadata_locks (MariaDB:"
            " information_schema.METADATA_LOCK_INFO, of a plugin) show it",
        ),
        passing=True,
    )
