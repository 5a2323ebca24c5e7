"""Without coordination: one DROP TABLE of several shards, each of which is decided by itself."""

from __future__ import annotations

from collections.abc import Callable

import pymysql
import pytest
from pymysql.constants import ER

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.matrix import matrix
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = "(id INT PRIMARY KEY, v INT)"


def shown(merging: Merging, table: str) -> tuple[tuple[object, ...], ...] | None:
    """The rows of a target; None where it is gone."""
    try:
        return merging.on(merging.target, f"SELECT * FROM {table} ORDER BY id")
    except pymysql.err.ProgrammingError as error:
        if error.args[0] != ER.NO_SUCH_TABLE:
            raise
        return None


def made(merging: Merging) -> None:
    merging.create("t", COLUMNS, shards=3)
    merging.create("single", COLUMNS)
    merging.create("pair", COLUMNS, shards=2)
    merging.do("CREATE TABLE elsewhere (id INT PRIMARY KEY)")


FIRST_ROWS = (
    "INSERT INTO t_1 VALUES (1, 1)",
    "INSERT INTO t_2 VALUES (2, 2)",
    "INSERT INTO t_3 VALUES (3, 3)",
    "INSERT INTO single_1 VALUES (1, 1)",
    "INSERT INTO pair_1 VALUES (1, 1)",
    "INSERT INTO pair_2 VALUES (2, 2)",
)
OF_T = ((1, 1), (2, 2), (3, 3))
OF_PAIR = ((1, 1), (2, 2))

DROPS: dict[str, tuple[str, dict[str, object]]] = {
    "some shards": ("DROP TABLE t_1, t_2", {"t": OF_T, "single": ((1, 1),), "pair": OF_PAIR}),
    "all shards": ("DROP TABLE t_1, t_2, t_3", {"t": None, "single": ((1, 1),), "pair": OF_PAIR}),
    "of several targets": (
        "DROP TABLE t_3, pair_1, single_1, t_1, pair_2",
        {"t": OF_T, "single": None, "pair": None},
    ),
    "absent and other tables": (
        "DROP TABLE IF EXISTS t_9, t_1, elsewhere, single_7, t_8, single_1, nowhere",
        {"t": OF_T, "single": None, "pair": OF_PAIR},
    ),
    "absent tables only": (
        "DROP TABLE IF EXISTS t_8, t_9, pair_3, pair_4",
        {"t": OF_T, "single": ((1, 1),), "pair": OF_PAIR},
    ),
    "absent behind the last shard": (
        "DROP TABLE IF EXISTS pair_1, pair_2, pair_3",
        {"t": OF_T, "single": ((1, 1),), "pair": None},
    ),
}


@matrix("DDL")
@pytest.mark.parametrize("case", DROPS)
async def test_one_statement_drops_several_tables(merging: Merging, case: str) -> None:
    drop, expected = DROPS[case]
    made(merging)
    async with merging.running() as generation:
        merging.do(*FIRST_ROWS, drop)
        await merging.caught_up(generation)
        assert {name: shown(merging, name) for name in expected} == expected
    # A later reading decides the same, and the names can be used again.
    merging.do(
        f"CREATE TABLE IF NOT EXISTS pair_1 {COLUMNS}",
        "REPLACE INTO pair_1 VALUES (5, 5)",
        f"CREATE TABLE IF NOT EXISTS t_1 {COLUMNS}",
        "REPLACE INTO t_1 VALUES (6, 6)",
    )
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert shown(merging, "pair") == (*(expected["pair"] or ()), (5, 5))  # type: ignore[misc]
        assert shown(merging, "t") == (*(expected["t"] or ()), (6, 6))  # type: ignore[misc]


async def test_shards_of_another_source_keep_their_target(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mysql56_source)
    merging.create("t", COLUMNS, shards=2)
    one, two = merging.sources.values()
    async with merging.running() as generation:
        merging.on(one, "INSERT INTO t_1 VALUES (1, 1)", "INSERT INTO t_2 VALUES (2, 2)")
        merging.on(two, "INSERT INTO t_1 VALUES (3, 3)", "INSERT INTO t_2 VALUES (4, 4)")
        await merging.caught_up(generation)
        merging.on(one, "DROP TABLE t_1, t_2")
        await merging.caught_up(generation)
        assert shown(merging, "t") == ((1, 1), (2, 2), (3, 3), (4, 4))
        merging.on(two, "DROP TABLE IF EXISTS t_0, t_2, t_1, t_3")
        await merging.caught_up(generation)
        assert shown(merging, "t") is None


async def test_a_database_stays_while_a_shard_in_it_waits(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", COLUMNS, shards=2)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_2 VALUES (2, 2)",
            "ALTER TABLE t_1 CHANGE v w INT",
            "INSERT INTO t_1 VALUES (3, 3)",
        )
        await merging.caught_up(generation)
        database = merging.database
        merging.source.execute(f"DROP DATABASE {database}", f"CREATE DATABASE {database}")
        merging.do(f"CREATE TABLE t_1 {COLUMNS}", "INSERT INTO t_1 VALUES (9, 9)")
        await settles(lambda: shown(merging, "t"), ((9, 9),))


async def test_what_a_dropped_table_has_waited_for_is_not_executed_later(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", COLUMNS, shards=3)
    async with merging.running() as generation:
        merging.do(
            "ALTER TABLE t_2 CHANGE v w INT",
            "INSERT INTO t_2 VALUES (2, 2)",
            "ALTER TABLE t_1 CHANGE v z INT",
            "ALTER TABLE t_1 ADD x INT NOT NULL DEFAULT 7",
            "DROP TABLE t_1",
            "INSERT INTO t_3 VALUES (3, 3)",
        )
        await settles(lambda: shown(merging, "t"), ((3, 3),))
        await merging.caught_up(generation)
    # The statements are read again, since t_2 waits.
    async with merging.running() as generation:
        merging.do("ALTER TABLE t_3 CHANGE v w INT")
        await settles(lambda: shown(merging, "t"), ((2, 2), (3, 3)))
        merging.do("DROP TABLE t_2, t_3")
        await settles(lambda: shown(merging, "t"), None)


@pytest.mark.parametrize(
    "drops",
    [
        ("DROP DATABASE {0}", "CREATE DATABASE {0}"),
        pytest.param(("DROP TABLE {0}.t_1, {0}.t_2",), marks=pytest.mark.slow),
        pytest.param(("DROP TABLE {0}.t_2", "DROP TABLE {0}.t_1"), marks=pytest.mark.slow),
        ("DROP TABLE {0}.t_1", "DROP TABLE {0}.t_2"),
    ],
    ids=["database", "tables", "the one that waits first", "the other one first"],
)
async def test_a_table_that_is_created_again_waits_for_the_end_of_its_target(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, drops: tuple[str, ...]
) -> None:
    """All shards are dropped, but one of them waits; the target is dropped with that."""
    merging = merging_from(mariadb_source)
    merging.create("t", COLUMNS, shards=2)
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, 1)",
            "ALTER TABLE t_2 CHANGE v w INT",
            "INSERT INTO t_2 VALUES (2, 2)",
        )
        await merging.caught_up(generation)
        merging.source.execute(*(drop.format(merging.database) for drop in drops))
        merging.do(f"CREATE TABLE t_1 {COLUMNS}", "INSERT INTO t_1 VALUES (8, 8)")
        await settles(lambda: shown(merging, "t"), ((8, 8),))
        merging.do(
            "ALTER TABLE t_1 CHANGE v w INT",
            "INSERT INTO t_1 VALUES (9, 9)",
            f"CREATE TABLE t_2 {COLUMNS.replace('v', 'w')}",
            "INSERT INTO t_2 VALUES (10, 10)",
        )
        await settles(lambda: shown(merging, "t"), ((8, 8), (9, 9), (10, 10)))
        merging.do("DROP TABLE t_1, t_2")
        await settles(lambda: shown(merging, "t"), None)
