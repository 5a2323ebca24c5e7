"""Which sources are away, and when a run begins without them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import anyio
import anyio.to_thread
import pytest
from structlog.testing import capture_logs

from actors.task.resources.unavailable_sources import UnavailableSources
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.tasks.checking import address
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"


async def test_who_does_not_answer_is_away_until_it_does(
    mariadb_source: DatabaseServer, start_server: StartServer
) -> None:
    server = start_server(MariaDBServer)
    there = address(mariadb_source)
    away = UnavailableSources(
        {"a": there, "b": address(server), "refuses": replace(there, password="wrong")}
    )
    server.stop()
    with capture_logs() as logged:
        assert await away.look(["a", "b", "refuses"]) == {"a"}
        assert await away.look(["b"]) == set()
        assert away.reasons.keys() == {"b"}
        assert str(server.port) in str(away.waited_for())
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(away.one_is_back)
                await anyio.to_thread.run_sync(server.start)
    assert away.reasons == {}
    assert [entry["event"] for entry in logged] == ["source.unavailable", "source.available"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["", "pessimistic"], ids=["uncoordinated", "pessimistic"])
async def test_a_run_begins_without_a_source_only_if_its_shards_are_known(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    start_server: StartServer,
    mode: str,
) -> None:
    b = start_server(MariaDBServer)
    merging = merging_from(mariadb_source, b)
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS)
    merging.generation()  # The task begins here.
    b.stop()
    merging.do("INSERT INTO x_1 VALUES (1, 'a')")
    with pytest.raises(DatabaseUnavailableError, match=str(b.port)):
        await merging.generation().run(anyio.Event(), anyio.Event())
    b.start()
    merging.on(b, "INSERT INTO x_1 VALUES (2, 'b')")
    async with merging.running() as generation:
        await merging.check(generation)
    b.stop()
    merging.do("INSERT INTO x_1 VALUES (3, 'a')", "DROP TABLE x_1", f"CREATE TABLE x_1 {COLUMNS}")
    merging.do("INSERT INTO x_1 VALUES (4, 'a')")
    ended = merging.sources.pop("b")
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert generation.running is not None
        assert [source for source, one in generation.running.stopped.items() if one.away] == ["b"]
    rows = merging.on(merging.target, "SELECT id FROM x ORDER BY id")
    assert rows == ((1,), (2,), (3,), (4,)), "what b shares was not dropped"
    merging.sources["b"] = ended
    b.start()
    merging.on(b, "INSERT INTO x_1 VALUES (5, 'b')")
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert generation.running is not None
        assert not generation.running.stopped
    assert len(merging.on(merging.target, "SELECT id FROM x")) == 5
