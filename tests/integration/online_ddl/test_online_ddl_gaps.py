"""Tables that are dropped while there is a ghost of them, and may make room for it."""

from __future__ import annotations

import pytest

from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.online_tools import pt_osc_steps, until
from tests.support.tasks.overriding import override

COLUMNS = "(id INT PRIMARY KEY, v VARCHAR(9))"
MARIADB = pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
*GHOST, _, _ = pt_osc_steps("x_1", "ADD COLUMN c INT DEFAULT 7", definition=COLUMNS)
DROP, FILL = "DROP TABLE IF EXISTS x_1", "RENAME TABLE _x_1_new TO x_1"


def is_equal(merging: Merging) -> bool:
    columns = [row[0] for row in merging.on(merging.target, "SHOW COLUMNS FROM x")]
    return columns == ["id", "v", "c"] and merging.differences() == {}


@pytest.mark.parametrize(
    "source",
    ["mariadb_source", pytest.param("mysql_source", marks=pytest.mark.slow)],
    indirect=True,
)
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_table_that_makes_room_for_its_ghost(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'a')", *GHOST)
        await merging.caught_up(generation)
        merging.do(DROP, FILL, "INSERT INTO x_1 VALUES (2, 'b', 9)")
        await until(lambda: is_equal(merging))
        await merging.caught_up(generation)
    async with merging.running() as generation:
        merging.do("UPDATE x_1 SET c = 3", "DELETE FROM x_1 WHERE id = 1")
        await merging.check(generation)


@MARIADB
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_table_whose_ghost_has_not_come_yet(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'a')", *GHOST)
        await merging.caught_up(generation)
    merging.do(DROP)
    found = await merging.fault()
    assert found.event == "ddl.not-supported"
    assert "does not show yet that the ghost takes its place" in found.message
    assert merging.on(merging.target, "SELECT * FROM x") == ((1, "a"),)
    merging.do(FILL, "INSERT INTO x_1 VALUES (2, 'b', 9)")
    async with merging.running():
        await until(lambda: is_equal(merging))


@MARIADB
async def test_a_table_that_is_to_go_though_it_has_a_ghost(merging: Merging) -> None:
    merging.more["shard-mode"] = "pessimistic"
    merging.create("x", COLUMNS, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'a')", *GHOST)
        await merging.caught_up(generation)
    merging.do(DROP, "DROP TABLE _x_1_new", "ALTER TABLE x_2 ADD COLUMN d INT")
    found = await merging.fault()
    assert "the statement with the same statement" in found.message
    await override(merging, found, OverrideAction.REPLACE, "DROP TABLE x_1")
    async with merging.running() as generation:
        await merging.caught_up(generation)
        # What the one that is left changes, waits for nobody.
        merging.do("INSERT INTO x_2 VALUES (2, 'b', 9)")
        await until(lambda: (2, "b", 9) in merging.on(merging.target, "SELECT * FROM x"))
    assert merging.on(merging.target, "SELECT v FROM x WHERE id = 1") == (("a",),)
