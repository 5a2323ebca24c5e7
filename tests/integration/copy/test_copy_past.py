"""A full copy reads the rows of now, whatever moment a server shows its clients."""

from __future__ import annotations

from collections.abc import Callable

from replicator.sandbox.mariadb import MariaDBServer
from tests.conftest import StartServer
from tests.support.tasks.merging import Merging


async def test_a_server_that_shows_the_past_is_copied_as_it_is(
    merging_from: Callable[..., Merging], start_server: StartServer
) -> None:
    server = start_server(MariaDBServer)
    merging = merging_from(server)
    merging.mode = "full"
    merging.create(
        "t", "(id INT PRIMARY KEY) WITH SYSTEM VERSIONING", target="(id INT PRIMARY KEY)"
    )
    merging.do("INSERT INTO t_1 VALUES (1), (2)")
    server.execute("SET GLOBAL system_versioning_asof = '2001-01-01 00:00:00'")
    assert (await merging.copy()).finished
    assert merging.on(merging.target, "SELECT id FROM t ORDER BY id") == ((1,), (2,))
