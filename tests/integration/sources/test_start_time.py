"""A task that begins at a time; one that ends at a place, at a time, or with what is there now."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import anyio

from actors.control.arguments import Until
from actors.setup.task_setup import source_setups
from actors.task.task_end import EndOfTask
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE

SHARD = "(id INT PRIMARY KEY, v INT)"


def next_second(server: DatabaseServer) -> datetime:
    """A time that everything so far is older than, and nothing later is, by a server's clock."""
    [[begun]] = server.execute("SELECT UNIX_TIMESTAMP()")
    while True:
        [[now]] = server.execute("SELECT SLEEP(0.1) + UNIX_TIMESTAMP()")
        if int(str(now).partition(".")[0]) > int(str(begun)):
            return datetime.fromtimestamp(int(str(now).partition(".")[0]), UTC)


def starting_at(merging: Merging, moment: datetime) -> None:
    merging.instance = {"meta": {"start-time": moment.isoformat()}}


async def test_a_task_begins_with_the_first_transaction_of_a_time(merging: Merging) -> None:
    """In a file in the middle, with files before and behind."""
    merging.create("t", SHARD)
    for number in range(3):
        merging.do(f"INSERT INTO t_1 VALUES ({number}, 0)", "FLUSH BINARY LOGS")
    merging.do("INSERT INTO t_1 VALUES (10, 0)")
    moment = next_second(merging.source)
    merging.do("INSERT INTO t_1 VALUES (11, 0)")
    for number in range(20, 22):
        merging.do("FLUSH BINARY LOGS", f"INSERT INTO t_1 VALUES ({number}, 0)")
    starting_at(merging, moment)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    rows = merging.on(merging.target, "SELECT id FROM t ORDER BY id")
    assert [row[0] for row in rows] == [11, 20, 21]
    # What is saved counts from then on.
    merging.do("INSERT INTO t_1 VALUES (22, 0)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    rows = merging.on(merging.target, "SELECT id FROM t ORDER BY id")
    assert [row[0] for row in rows] == [11, 20, 21, 22]


async def test_a_time_that_no_binlog_reaches_back_to_is_refused(merging: Merging) -> None:
    merging.create("t", SHARD)
    starting_at(merging, datetime(2001, 1, 1, tzinfo=UTC))
    fault = await merging.fault()
    assert fault.event == "source.no-start"
    assert "2001-01-01 00:00:00 UTC" in fault.message
    assert "its oldest binlog file" in fault.message
    starting_at(merging, datetime.now(UTC) + timedelta(days=1))
    merging.changed(mode="incremental")
    assert "it is only" in (await merging.fault()).message


@asynccontextmanager
async def ending(merging: Merging, until: Until) -> AsyncIterator[anyio.Event]:
    """A run with an end; the event is set when that is reached."""
    reached = anyio.Event()
    async with merging.running() as generation, anyio.create_task_group() as tasks:
        end = EndOfTask(until, source_setups(merging.task), generation.counts)

        async def wait() -> None:
            await end.reached(lambda: generation)
            reached.set()

        tasks.start_soon(wait)
        with anyio.fail_after(PATIENCE):
            yield reached
        tasks.cancel_scope.cancel()


def ids(merging: Merging) -> list[object]:
    return [row[0] for row in merging.on(merging.target, "SELECT id FROM t ORDER BY id")]


async def test_the_end_of_now_is_reached_with_all_rows_applied(merging: Merging) -> None:
    merging.create("t", SHARD)
    async with merging.running():
        pass
    merging.do(*(f"INSERT INTO t_1 VALUES ({number}, 0)" for number in range(50)))
    async with ending(merging, Until(now=True)) as reached:
        await reached.wait()
        assert ids(merging) == [*range(50)]


async def test_the_end_at_a_place_is_not_reached_before_it(merging: Merging) -> None:
    merging.create("t", SHARD)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO t_1 VALUES (1, 0)")
    end = end_of(merging.source)
    behind = type(end)(end.file, end.offset + 1)
    async with ending(merging, Until(places={"a": behind})) as reached:
        while ids(merging) != [1]:
            await anyio.sleep(0.05)
        assert not reached.is_set()
        merging.do("INSERT INTO t_1 VALUES (2, 0)")
        await reached.wait()
        assert ids(merging) == [1, 2]


async def test_the_end_at_a_time_is_reached_when_it_has_passed(merging: Merging) -> None:
    merging.create("t", SHARD)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO t_1 VALUES (1, 0)")
    moment = datetime.now(UTC) + timedelta(seconds=5)
    async with ending(merging, Until(moment=moment)) as reached:
        await reached.wait()
        assert datetime.now(UTC) >= moment
        assert ids(merging) == [1]
