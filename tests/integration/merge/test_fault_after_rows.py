"""A fault waits for what was read before it: behind what it names nothing is missing."""

from __future__ import annotations

import pytest

from tests.support.tasks.merging import Merging

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
