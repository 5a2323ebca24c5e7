"""The optimistic mode beside what else a task does: recopies, validation, charsets of databases."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from actors.errors.faults import DdlEvent, FatalError
from replicator.binlog.positions.position import BinlogPosition
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.integration.validation.test_validation import errors, settled, until, validated
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import LOOK_SECONDS, copied

MergingFrom = Callable[[DatabaseServer], Merging]


async def test_a_target_is_copied_anew_with_the_fills_that_are_saved(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2, with_target=False)
    merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_2 VALUES (2, 2)")
    async with merging.running() as generation:
        await copied(generation)
        merging.do("ALTER TABLE x_1 ADD c INT DEFAULT 7", "INSERT INTO x_1 VALUES (3, 3, 3)")
        await merging.caught_up(generation)
    merging.on(
        merging.target, "ALTER TABLE x ALTER c SET DEFAULT 9", "INSERT INTO x VALUES (9, 9, 9)"
    )
    generation = merging.generation()
    generation.recopy = {TableName(merging.database, "x")}
    stop, started = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(generation.run, stop, started)
        wanted = ((1, 1, 7), (2, 2, 7), (3, 3, 3))
        while merging.on(merging.target, "SELECT id, v, c FROM x ORDER BY id") != wanted:
            await anyio.sleep(LOOK_SECONDS)
        merging.do("INSERT INTO x_2 VALUES (4, 4)", "ALTER TABLE x_2 ADD c INT DEFAULT 7")
        while not merging.on(merging.target, "SELECT 1 FROM x WHERE (id, c) = (4, 7)"):
            await anyio.sleep(LOOK_SECONDS)
        stop.set()


async def test_validation_of_shards_that_differ(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", "(id INT PRIMARY KEY, v INT, s VARCHAR(9))", shards=2)
    validated(merging)
    async with merging.running() as generation:
        merging.do(
            "ALTER TABLE x_1 ADD c INT NOT NULL DEFAULT 4, MODIFY v BIGINT",
            "INSERT INTO x_1 VALUES (1, 1, 'a', 5)",
            "INSERT INTO x_2 VALUES (2, 1, 'a')",
        )
        await merging.caught_up(generation)
        merging.do(
            "UPDATE x_1 SET v = 2",
            "ALTER TABLE x_1 CHANGE s t VARCHAR(9)",
            "UPDATE x_1 SET v = 3",
            "UPDATE x_2 SET v = 3",
        )
        # The row behind the open statement stays in doubt until it is applied.
        await until(generation, lambda g: bool(g.counts.validation.suspects))
        assert errors(generation) == 0
        merging.do(
            "ALTER TABLE x_2 CHANGE s t VARCHAR(9)",
            "ALTER TABLE x_2 ADD c INT NOT NULL DEFAULT 4, MODIFY v BIGINT",
            "UPDATE x_2 SET c = 9",
        )
        await until(generation, lambda _: not merging.differences())
        await until(generation, settled)
        assert errors(generation) == 0


async def test_a_shard_that_is_created_gets_the_charset_of_its_database(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "optimistic"
    columns = "(id INT PRIMARY KEY, v VARCHAR(9))"
    merging.create("x", columns, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'ä')")
        await merging.caught_up(generation)
        merging.do(f"CREATE TABLE x_3 {columns}", "INSERT INTO x_3 VALUES (3, 'ö')")
        merging.shards("x", 3)
        await merging.check(generation)
        assert generation.running is not None
        assert not generation.running.coordination.open_locks()


async def test_a_derived_change_names_collations_of_the_target(
    merging_from: MergingFrom, mysql_source: DatabaseServer
) -> None:
    """A MySQL's own default collation, which a MariaDB 10.11 lacks."""
    merging = merging_from(mysql_source)
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", "(id INT PRIMARY KEY, v INT) CHARACTER SET utf8mb4", shards=2)
    async with merging.running() as generation:
        merging.do("ALTER TABLE x_1 ADD INDEX (v), ADD s VARCHAR(9)")
        merging.do("INSERT INTO x_1 VALUES (1, 1, 'ä')", "INSERT INTO x_2 VALUES (2, 2)")
        await merging.caught_up(generation)
        assert merging.on(merging.target, "SELECT s FROM x ORDER BY id") == (("ä",), (None,))
        merging.do("ALTER TABLE x_2 ADD s VARCHAR(9), ADD INDEX (v)")
        await merging.check(generation)


async def test_statements_given_instead_resolve_an_open_one(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The target's server can't show what the shards' own statement does."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", "(id INT PRIMARY KEY)", shards=2)
    positions = []
    async with merging.running() as generation:
        for table in ("x_1", "x_2"):
            merging.do(f"ALTER TABLE {table} ADD b VARBINARY(2) DEFAULT X'00FF'")
        merging.do("INSERT INTO x_1 VALUES (1, X'00FF')", "INSERT INTO x_2 VALUES (2, X'AA')")
        await merging.caught_up(generation)
        assert generation.running is not None
        positions = [way.position for lock in generation.running.coordination.open_locks()
                     for way in lock.remedies]  # fmt: skip
    for position, table in zip(positions, ("x_1", "x_2"), strict=True):
        given = f"ALTER TABLE {table} ADD b VARBINARY(2) DEFAULT (UNHEX('00FF'))"
        event = DdlEvent("a", BinlogPosition.parse(position), (OverrideAction.REPLACE,))
        fault = FatalError("", "", where="", about=event)
        await override(merging, fault, OverrideAction.REPLACE, given)
    async with merging.running() as generation:
        await until(generation, lambda _: not merging.differences())
        merging.do("INSERT INTO x_1 (id) VALUES (3)")
        await merging.check(generation)
        assert generation.running is not None
        assert not generation.running.coordination.open_locks()


async def test_what_new_rows_have_in_columns_that_their_shard_lacks(
    merging_from: MergingFrom, mariadb_source: DatabaseServer
) -> None:
    """The first label of an ENUM, whatever the target's default is by now; NULL, although the other
    shards have no NULL."""
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = "optimistic"
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2)
    both = [(f"ALTER TABLE {t} ADD e ENUM('it''s','b') NOT NULL", f"ALTER TABLE {t} ALTER e"
             " SET DEFAULT 'b', MODIFY v INT NOT NULL") for t in ("x_1", "x_2")]  # fmt: skip
    async with merging.running() as generation:
        merging.do(*both[0], "INSERT INTO x_2 VALUES (2, 2)")
        await merging.caught_up(generation)
        merging.do(*both[1], "ALTER TABLE x_1 DROP v", "INSERT INTO x_1 VALUES (1, 'b')")
        await merging.caught_up(generation)
        there = merging.on(merging.target, "SELECT id, v, e FROM x ORDER BY id")
        assert there == ((1, None, "b"), (2, 2, "it's"))
        merging.do("ALTER TABLE x_2 DROP v")
        await merging.check(generation)
