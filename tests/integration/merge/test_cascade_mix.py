"""Foreign keys with actions in random order and mixture: the target never differs in silence."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import anyio
import pymysql.err
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.reconciling.test_reconcile import until_reconciled
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import LOOK_SECONDS, settles

TABLES = {
    "p": "(a INT, b VARCHAR(5), v INT, PRIMARY KEY (a, b))",
    "c": "(id INT PRIMARY KEY, a INT, b VARCHAR(5), v INT, FOREIGN KEY (a, b)"
    " REFERENCES {p} (a, b) ON DELETE SET NULL ON UPDATE CASCADE)",
    "d": "(a INT, b VARCHAR(5), n INT, v INT, PRIMARY KEY (a, b, n), FOREIGN KEY (a, b)"
    " REFERENCES {p} (a, b) ON DELETE CASCADE ON UPDATE CASCADE)",
    "g": "(id INT PRIMARY KEY, a INT, b VARCHAR(5), n INT, v INT, FOREIGN KEY (a, b, n)"
    " REFERENCES {d} (a, b, n) ON DELETE CASCADE ON UPDATE CASCADE)",
    "s": "(id INT PRIMARY KEY, p INT, v INT, FOREIGN KEY (p) REFERENCES {s} (id)"
    " ON DELETE SET NULL)",
}
"""Composite keys, cascades over three levels, a parent's key that changes, a table of itself."""

STATEMENTS = (
    "INSERT IGNORE INTO p_1 VALUES ({key}, {v})",
    "INSERT IGNORE INTO p_1 VALUES ({key}, {v})",
    "INSERT IGNORE INTO c_1 VALUES ({id}, {key}, {v})",
    "INSERT IGNORE INTO d_1 VALUES ({key}, {n}, {v})",
    "INSERT IGNORE INTO d_1 VALUES ({key}, {n}, {v})",
    "INSERT IGNORE INTO g_1 VALUES ({id}, {key}, {n}, {v})",
    "INSERT IGNORE INTO g_1 VALUES ({id}, {key}, {n}, {v})",
    "INSERT IGNORE INTO s_1 VALUES ({id}, NULL, {v})",
    "INSERT IGNORE INTO s_1 VALUES ({id}, {id} - 1, {v})",
    "DELETE FROM p_1 WHERE (a, b) = ({key})",
    "DELETE FROM d_1 WHERE (a, b) = ({key})",
    "DELETE FROM c_1 WHERE id = {id}",
    "DELETE FROM s_1 WHERE id = {id}",
    "UPDATE IGNORE p_1 SET a = {a}, b = '{b}' WHERE (a, b) = ({key})",
    "UPDATE IGNORE d_1 SET n = {n} WHERE (a, b) = ({key}) AND n <> {n}",
    "UPDATE IGNORE c_1 SET a = {a}, b = '{b}', v = v + 1 WHERE id = {id}",
    "UPDATE c_1 SET v = v + 1 WHERE id = {id}",
    "UPDATE d_1 SET v = v + 1 WHERE (a, b) = ({key})",
    "UPDATE g_1 SET v = v + 1 WHERE id = {id}",
    "UPDATE s_1 SET v = v + 1 WHERE id = {id}",
)


REFUSED = (1062, 1452, 1557, 1761)
"""ER_DUP_ENTRY, ER_NO_REFERENCED_ROW_2 (MySQL 5.6, in spite of IGNORE), ER_FOREIGN_DUPLICATE_KEY
and its newer form."""


def transactions(seed: int) -> Iterator[list[str]]:
    rng = random.Random(seed)
    for number in range(60):
        yield [
            rng.choice(STATEMENTS).format(
                key=f"{rng.randint(1, 4)}, '{rng.choice('xyZé')}'",
                a=rng.randint(1, 4),
                b=rng.choice("xyZé"),
                id=rng.randint(1, 9),
                n=rng.randint(1, 2),
                v=number,
            )
            for _ in range(rng.randint(1, 6))
        ]


def attempt(merging: Merging, transaction: list[str]) -> None:
    """Run a transaction; it is rolled back where the source refuses a part of it."""
    try:
        merging.do("BEGIN", *transaction, "COMMIT")
    except pymysql.err.MySQLError as error:
        if error.args[0] not in REFUSED:
            raise


def create(merging: Merging) -> None:
    targets = {table: table for table in TABLES}
    shards = {table: f"{table}_1" for table in TABLES}
    for table, columns in TABLES.items():
        merging.create(table, columns.format(**targets), shards=0)
        merging.do(f"CREATE TABLE {table}_1 {columns.format(**shards)}")
        merging.shards(table, 1)


CASES = [
    ("mariadb_source", "pessimistic", 1),
    *(
        pytest.param(server, mode, seed, marks=pytest.mark.slow)
        for server in ("mariadb_source", "mysql56_source")
        for mode in ("", "pessimistic", "optimistic")
        for seed in (2, 3)
    ),
]


@pytest.mark.parametrize(("server", "mode", "seed"), CASES)
async def test_any_mixture_of_changes(
    request: pytest.FixtureRequest,
    merging_from: Callable[..., Merging],
    server: str,
    mode: str,
    seed: int,
) -> None:
    """One after the other as they come, and all at once after a stop."""
    merging = merging_from(request.getfixturevalue(server))
    merging.more["shard-mode"] = mode
    create(merging)
    async with merging.running() as generation:
        for number, transaction in enumerate(transactions(seed)):
            attempt(merging, transaction)
            if number % 15 == 7:
                await merging.check(generation)
        await merging.check(generation)
    for transaction in transactions(seed + 1000):
        attempt(merging, transaction)
    async with merging.running() as generation:
        await merging.check(generation)


@pytest.mark.parametrize(
    "seed", [500, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(501, 506))]
)
async def test_changes_during_the_copy(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, seed: int
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.more |= {
        "mydumpers": {"small": {"rows": 2, "threads": 1}},
        "copy": {"rows-per-second": 20},
    }
    merging.instance = {"mydumper-config-name": "small"}
    create(merging)
    for transaction in transactions(1):
        attempt(merging, transaction)
    async with merging.running() as generation:
        while generation.copy is None or generation.copy.progress.chunks < 2:
            await anyio.sleep(LOOK_SECONDS)
        for transaction in transactions(seed):
            await anyio.to_thread.run_sync(attempt, merging, transaction)
        await merging.copied(generation)
        await merging.caught_up(generation)
        await until_reconciled(merging, generation)
        await settles(merging.differences, {})
