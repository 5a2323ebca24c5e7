"""A fault waits for what was read before it: behind what it names nothing is missing."""

from __future__ import annotations

import pytest

from replicator.binlog.positions.position import BinlogPosition
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import fault_of

ROWS = [f"INSERT INTO x_{n % 2 + 1} VALUES ({n}, 'before')" for n in range(1, 31)]
KEYLESS = [f"INSERT INTO y_1 VALUES ({n % 3})" for n in range(30)]
UNREADABLE = [
    "SELECT 98, 'no' INTO OUTFILE 'rows.txt'",
    "SET binlog_format=STATEMENT",
    "LOAD DATA INFILE 'rows.txt' INTO TABLE x_1",
]
"""The rows stand in the binlog as those of a file."""
UNDONE = ["SET binlog_format=ROW, sql_log_bin=0", "DELETE FROM x_1 WHERE id = 98"]


async def make(merging: Merging) -> None:
    """Make the shards; let the task follow them once, so that it knows their structures."""
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(9))", shards=2)
    merging.create("y", "(n INT)")
    async with merging.running() as generation:
        await merging.caught_up(generation)


async def test_rows_before_a_statement_that_cannot_be_carried_over_are_applied(
    merging: Merging,
) -> None:
    await make(merging)
    merging.do(*ROWS, *KEYLESS, "SET binlog_format=STATEMENT", "INSERT INTO x_1 VALUES (99, 'no')")
    found = await merging.fault()
    assert found.event == "ddl.not-supported"
    merging.do("SET binlog_format=ROW, sql_log_bin=0", "DELETE FROM x_1 WHERE id = 99")
    assert merging.differences() == {}


async def test_rows_before_a_change_that_a_group_refuses_are_applied(merging: Merging) -> None:
    merging.more["shard-mode"] = "pessimistic"
    await make(merging)
    merging.do(*ROWS, *KEYLESS, "RENAME TABLE x_1 TO x_9, y_1 TO x_1")
    found = await merging.fault()
    assert found.event.startswith("ddl."), found.event
    merging.do("SET sql_log_bin=0", "RENAME TABLE x_1 TO y_1, x_9 TO x_1")
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_rows_before_an_event_that_cannot_be_read_are_applied(merging: Merging) -> None:
    await make(merging)
    merging.do(*ROWS, *KEYLESS, *UNREADABLE)
    found = await merging.fault()
    merging.do(*UNDONE)
    assert found.event == "source.unreadable"
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_start_before_an_event_that_cannot_be_read_says_that_nothing_is_applied(
    merging: Merging,
) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v VARCHAR(9))", shards=2)
    merging.generation()
    merging.do(*ROWS)
    merging.do(*UNREADABLE)
    found = await merging.fault()
    assert found.event == "source.unreadable"
    assert "It has applied nothing yet" in found.message
    assert any("would lose the rows before it" in way for way in found.remedies)
    assert merging.on(merging.target, "SELECT COUNT(*) FROM x") == ((0,),)


async def test_what_is_applied_before_a_fault_is_saved(merging: Merging) -> None:
    """The operator may then say how the rows of the fault are read: that must not concern these."""
    await make(merging)

    async def follow() -> None:
        async with merging.running() as generation:
            merging.do(*ROWS)
            await merging.caught_up(generation)
            applied.append(end_of(merging.source))
            merging.do(
                "SET sql_log_bin=0",
                "ALTER TABLE x_1 ADD c INT FIRST",
                "SET sql_log_bin=1",
                "INSERT INTO x_1 VALUES (7, 99, 'no')",
            )
            await merging.caught_up(generation)

    applied: list[BinlogPosition] = []
    found = await fault_of(follow())
    assert found.event in ("rows.no-plan", "rows.structure-unknown")
    [saved] = merging.target.execute(
        "SELECT binlog_file, binlog_offset FROM"
        f" `{merging.task.meta_schema}`.`{merging.task.name}_checkpoint`"
    )
    assert BinlogPosition(*saved).key >= applied[0].key
