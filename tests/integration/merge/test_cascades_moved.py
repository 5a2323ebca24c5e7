"""Targets that follow their shards to other names, while foreign keys change rows of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count, product

import pymysql.err
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.integration.ddl.test_moved_targets import follow
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles
from tests.support.tasks.tables import rows_of, union_of

MODES = ("", "pessimistic", "optimistic")
CHILD = (
    "CREATE TABLE {child}_{{n}} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p)"
    " REFERENCES {parent}_{{n}} (id) ON DELETE CASCADE ON UPDATE CASCADE)"
)
TABLES = (
    "CREATE TABLE p_{n} (id INT PRIMARY KEY, p INT)",
    CHILD.format(child="c", parent="p"),
    CHILD.format(child="g", parent="c"),
)
NUMBERS = count(100)


def rows(names: str) -> Sequence[str]:
    """New rows of a parent, a child and a grandchild, and changes that reach all of them."""
    tables = p, c, _ = [f"{name}_{{n}}" for name in names]
    # The number of the shard comes first: no two shards have the same keys.
    first, second, third, moved = (f"{{n}}{next(NUMBERS)}" for _ in range(4))
    values = ", ".join(f"({key}, {key})" for key in (first, second, third))
    return (
        *(f"INSERT INTO {table} VALUES {values}" for table in tables),
        f"DELETE FROM {p} WHERE id = {first}",
        *(f"INSERT INTO {table} VALUES ({first}, {first})" for table in tables),
        f"UPDATE {p} SET id = {moved} WHERE id = {second}",
        f"DELETE FROM {c} WHERE id = {third}",
        # And rows from before.
        f"DELETE FROM {p} ORDER BY id LIMIT 1",
        f"DELETE FROM {c} ORDER BY id LIMIT 1",
    )


BEFORE = (*TABLES, *rows("pcg"), *rows("pcg"), *rows("pcg"))
AT_ONCE = "RENAME TABLE p_{n} TO q_{n}, c_{n} TO d_{n}, g_{n} TO h_{n}"
ONE_BY_ONE = (
    ("ALTER TABLE p_{n} RENAME TO q_{n}", *rows("qcg")),
    ("RENAME TABLE c_{n} TO d_{n}", *rows("qdg")),
    ("RENAME TABLE g_{n} TO h_{n}", *rows("qdh")),
)
SCRIPTS: dict[str, tuple[str, Sequence[Sequence[str]]]] = {
    "at once": ("qdh", [(AT_ONCE, *rows("qdh"))]),
    "one by one": ("qdh", ONE_BY_ONE),
    "children first": (
        "qdh",
        [
            ("RENAME TABLE g_{n} TO h_{n}", *rows("pch")),
            ("ALTER TABLE c_{n} RENAME TO d_{n}", *rows("pdh")),
            ("RENAME TABLE p_{n} TO q_{n}", *rows("qdh")),
        ],
    ),
    "only the child": ("pdg", [("RENAME TABLE c_{n} TO d_{n}", *rows("pdg"))]),
    "and others get their names": (
        "qdhpcg",
        [
            (AT_ONCE, *rows("qdh")),
            (*TABLES, *rows("pcg"), *rows("pcg")),
            rows("qdh"),
        ],
    ),
    "and others get their rows": (
        "pc",
        [
            (
                AT_ONCE,
                "CREATE TABLE p_{n} (id INT PRIMARY KEY, v INT, w VARCHAR(9) DEFAULT 'x')",
                CHILD.format(child="c", parent="p"),
            ),
            (
                "INSERT INTO p_{n} SELECT id, p, 'y' FROM q_{n}",
                "INSERT INTO c_{n} SELECT id, p FROM d_{n}",
                "DELETE FROM p_{n} ORDER BY id LIMIT 1",
            ),
            ("DROP TABLE h_{n}", "DROP TABLE d_{n}", "DROP TABLE q_{n}"),
            ("DELETE FROM p_{n} ORDER BY id LIMIT 1",),
        ],
    ),
}


@pytest.fixture
def merging(merging_from: Callable[..., Merging], mariadb_source: DatabaseServer) -> Merging:
    found = merging_from(mariadb_source)
    for table in "pcgqdh":
        found.shards(table, 2)
    found.create("x", "(id INT PRIMARY KEY)")
    return found


def cases() -> list[object]:
    """All of them; the usual runs try each script in one mode, and the first one in all modes."""
    usual = {(kind, MODES[n % 3], n % 2 == 0) for n, kind in enumerate(SCRIPTS)}
    usual |= {("at once", mode, True) for mode in MODES}
    return [
        pytest.param(*case, marks=[] if case in usual else [pytest.mark.slow])
        for case in product(SCRIPTS, MODES, (True, False))
    ]


@pytest.mark.parametrize(("kind", "mode", "together"), cases())
async def test_tables_that_foreign_keys_change_get_other_targets(
    merging: Merging, kind: str, mode: str, *, together: bool
) -> None:
    merging.more["shard-mode"] = mode
    merging.generation()

    def do(shard: int, statements: Sequence[str]) -> None:
        merging.do(*(statement.format(n=shard) for statement in statements))

    names, script = SCRIPTS[kind]
    for shard in (1, 2):
        do(shard, BEFORE)
    await follow(merging)
    if together:
        for part in script:
            for shard in (1, 2):
                do(shard, part)
            await follow(merging)
    else:
        for shard in (1, 2):
            for part in script:
                do(shard, part)
            await follow(merging)
    async with merging.running():
        await settles(lambda: unequal(merging, names), {})


def unequal(merging: Merging, names: str) -> dict[str, str]:
    """The targets that have other rows than their two shards."""
    found = {}
    for name in names:
        table = f"{merging.database}.{name}"
        wanted = union_of([(merging.source, f"{table}_{shard}") for shard in (1, 2)], "*")
        try:
            rows = rows_of(merging.target, table, "*")
        except pymysql.err.ProgrammingError:
            # It does not have its name yet.
            found[name] = "no table"
            continue
        if rows != wanted:
            found[name] = f"missing: {wanted - rows}, extra: {rows - wanted}"
    return found
