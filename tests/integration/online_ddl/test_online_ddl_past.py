"""Exchanges that are in the binlog when the task starts behind what their ghosts went through."""

from __future__ import annotations

import pytest

from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import gh_ost_steps, until
from tests.support.tasks.overriding import override, tell_from_target

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"
CHANGE = "ADD COLUMN c INT DEFAULT 7, ADD INDEX iv (v)"
MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
*BEFORE, EXCHANGE, _, DROP = gh_ost_steps("x_1", CHANGE)


def is_equal(merging: Merging) -> bool:
    columns = [row[0] for row in merging.on(merging.target, "SHOW COLUMNS FROM x")]
    return columns == ["id", "v", "c"] and merging.differences() == {}


def as_shown(merging: Merging) -> str:
    """The change as this server writes it."""
    there = str(merging.on(merging.source, "SHOW CREATE TABLE x_1"))
    number = "int(11)" if "int(11)" in there else "int"
    default = "'7'" if "DEFAULT '7'" in there else "7"
    return f"ADD COLUMN c {number} DEFAULT {default}, ADD KEY iv (v)"


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        ("mariadb_source", "pessimistic"),
        pytest.param("mariadb_source", "", marks=pytest.mark.slow),
        pytest.param("mysql_source", "pessimistic", marks=pytest.mark.slow),
    ],
    indirect=["source"],
)
async def test_an_exchange_of_before_the_first_look(merging: Merging, mode: str) -> None:
    """The table that was put aside tells what its ghost has changed, and how older rows read."""
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS, shards=2)
    merging.do(*BEFORE)
    merging.generation()
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'a')",
        "INSERT INTO _x_1_gho VALUES (1, 'a', 7)",
        EXCHANGE,
        "INSERT INTO x_1 VALUES (2, 'b', 9)",
    )
    async with merging.running():
        merging.do("INSERT INTO x_2 VALUES (3, 'c')", "DELETE FROM x_1 WHERE id = 1")
        await until(lambda: (3,) in merging.on(merging.target, "SELECT id FROM x"))
    # The second start finds what the first has recorded.
    async with merging.running() as generation:
        merging.do(f"ALTER TABLE x_2 {as_shown(merging)}", "INSERT INTO x_2 VALUES (4, 'd', 1)")
        await until(lambda: is_equal(merging))
        await merging.caught_up(generation)
    assert "KEY `iv` (`v`)" in str(merging.on(merging.target, "SHOW CREATE TABLE x"))


@MARIADB
async def test_an_exchange_whose_former_table_is_gone(merging: Merging) -> None:
    merging.create("x", COLUMNS)
    merging.do(*BEFORE)
    merging.generation()
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'a')",
        "INSERT INTO _x_1_gho VALUES (1, 'a', 7)",
        EXCHANGE,
        DROP,
        "INSERT INTO x_1 VALUES (2, 'b', 9)",
    )
    found = await merging.fault()
    assert found.event == "rows.structure-unknown"
    await tell_from_target(merging, found)
    found = await merging.fault()
    assert found.event == "ddl.not-supported"
    await override(merging, found, OverrideAction.REPLACE, f"ALTER TABLE x_1 {CHANGE}")
    async with merging.running() as generation:
        await until(lambda: is_equal(merging))
        await merging.caught_up(generation)


@MARIADB
async def test_an_exchange_of_before_the_first_look_that_does_not_tell_its_change(
    merging: Merging,
) -> None:
    merging.create("x", COLUMNS)
    *before, exchange, _, _ = gh_ost_steps("x_1", "CHANGE v w VARCHAR(9)", copied="id")
    merging.do(*before)
    merging.generation()
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'a')",
        "INSERT INTO _x_1_gho VALUES (1, 'a')",
        exchange,
        "INSERT INTO x_1 VALUES (2, 'b')",
    )
    found = await merging.fault()
    assert found.event == "ddl.not-supported"
    assert "column v disappears and w appears" in found.message
    assert merging.on(merging.target, "SELECT * FROM x") == ((1, "a"),)
    change = "ALTER TABLE x_1 CHANGE v w VARCHAR(9)"
    await override(merging, found, OverrideAction.REPLACE, change)
    async with merging.running() as generation:
        await merging.check(generation)


@MARIADB
async def test_an_exchange_in_a_session_that_reads_texts_otherwise(merging: Merging) -> None:
    """The change is a text of the server, whatever modes the session of the exchange has."""
    merging.create("x", COLUMNS)
    change = r"ADD COLUMN c VARCHAR(9) DEFAULT 'a\\b'"
    *before, exchange, _, _ = gh_ost_steps("x_1", change)
    merging.do(*before)
    merging.generation()
    merging.do(
        "INSERT INTO x_1 VALUES (1, 'a')",
        "INSERT INTO _x_1_gho (id, v) VALUES (1, 'a')",
        "SET sql_mode='NO_BACKSLASH_ESCAPES'",
        exchange,
        "INSERT INTO x_1 VALUES (2, 'b', 'c')",
    )
    async with merging.running() as generation:
        await until(lambda: is_equal(merging))
        await merging.caught_up(generation)
