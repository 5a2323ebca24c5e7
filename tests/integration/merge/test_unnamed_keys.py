"""Keys and constraints are added once, also for shards that are created."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT, u INT, p INT, x VARCHAR(50), CHECK (b < 1000))"
CHANGES = (
    "ALTER TABLE {0} ADD INDEX (a)",
    "ALTER TABLE {0} ADD INDEX (b), ADD UNIQUE (u), ADD COLUMN d INT, ADD INDEX (d)",
    "ALTER TABLE {0} ADD FULLTEXT (x)",
    "ALTER TABLE {0} ADD CHECK (a < 1000)",
    "ALTER TABLE {0} ADD COLUMN q INT, ADD FOREIGN KEY (q) REFERENCES parent_{1} (id)",
    "ALTER TABLE {0} ADD FOREIGN KEY (p) REFERENCES parent_{1} (id) ON UPDATE RESTRICT",
    "ALTER TABLE {0} ADD INDEX (a, b), ALGORITHM=INPLACE",
    "CREATE UNIQUE INDEX both_keys ON {0} (id, u)",
    "ALTER TABLE {0} ADD KEY named (b, a)",
    "ALTER TABLE {0} ADD INDEX (a)",
    "ALTER TABLE {0} ADD UNIQUE (u, a), ADD INDEX (x(10) DESC), ADD CHECK (a > -5)",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mysql_source", "mariadb_source"])
async def test_keys_without_a_name_are_added_once(
    merging_from: Callable[..., Merging], request: pytest.FixtureRequest, kind: str
) -> None:
    source: DatabaseServer = request.getfixturevalue(kind)
    merging = merging_from(source)
    merging.create("parent", "(id INT PRIMARY KEY)", shards=3)
    merging.create("old", COLUMNS, shards=2)
    merging.create("new", COLUMNS, shards=0, with_target=False)
    merging.shards("new", 3)

    def shown(table: str) -> list[str]:
        [(_, text)] = merging.on(merging.target, f"SHOW CREATE TABLE {table}")
        lines = [line.strip().rstrip(",") for line in str(text).splitlines()]
        return [one for one in lines if "KEY" in one or "CHECK" in one or one.startswith("CONS")]

    def own(table: str) -> list[str]:
        """Without foreign keys, which a shard that is created later need not have."""
        return [one for one in shown(table) if "`p`" not in one and "`q`" not in one]

    def changed(*shards: str) -> None:
        for change in CHANGES:
            merging.do(*(change.format(shard, shard[-1]) for shard in shards))

    async with merging.running() as generation:
        merging.do("INSERT INTO parent_1 VALUES (1)", "INSERT INTO parent_3 VALUES (3)")
        changed("old_1")
        merging.do(f"CREATE TABLE new_1 {COLUMNS}")
        changed("new_1")
        await merging.caught_up(generation)
        assert len(shown("new")) == 19, shown("new")
        own_once = own("new")
        merging.do(f"CREATE TABLE new_2 {COLUMNS}", f"CREATE TABLE old_3 {COLUMNS}")
        merging.shards("old", 3)
        changed("old_2", "new_2", "old_3")
        merging.do("CREATE TABLE new_3 LIKE new_2", "INSERT INTO new_3 (id, a) VALUES (1, 1)")
        merging.do("INSERT INTO old_3 (id, a, p) VALUES (1, 1, 3)")
        await merging.check(generation)
        await settles(lambda: [len(own("old")), own("new")], [15, own_once])


FOREIGN = "ADD FOREIGN KEY ({1}) REFERENCES parent_{0} (id)"


@pytest.mark.parametrize(
    "changes",
    [
        ("ADD INDEX (p)",),
        pytest.param(("ADD KEY (p)", "ADD INDEX (p, a)"), marks=pytest.mark.slow),
        pytest.param(("ADD INDEX (p, a)", "ADD INDEX (p)"), marks=pytest.mark.slow),
        pytest.param(("ADD UNIQUE (p)",), marks=pytest.mark.slow),
        pytest.param((FOREIGN.format("{0}", "a"), "ADD INDEX (a)"), marks=pytest.mark.slow),
        pytest.param(("ADD INDEX (p)", "ADD INDEX (p)"), marks=pytest.mark.slow),
    ],
    ids=lambda changes: "+".join(changes),
)
@pytest.mark.parametrize(
    "kind", [pytest.param("mysql_source", marks=pytest.mark.slow), "mariadb_source"]
)
async def test_an_index_over_the_columns_of_a_foreign_key_is_added_once(
    merging_from: Callable[..., Merging],
    request: pytest.FixtureRequest,
    kind: str,
    changes: tuple[str, ...],
) -> None:
    """Servers make an index for a foreign key, and drop it if another one is as good."""
    merging = merging_from(request.getfixturevalue(kind))
    merging.create("parent", "(id INT PRIMARY KEY)", shards=3)
    merging.create("t", "(id INT PRIMARY KEY, p INT, a INT)", shards=0, with_target=False)
    merging.shards("t", 3)

    def keys(server: DatabaseServer, table: str) -> list[str]:
        [(_, text)] = merging.on(server, f"SHOW CREATE TABLE {table}")
        return [line.strip().rstrip(",") for line in str(text).splitlines() if " KEY " in line]

    def create(number: int) -> None:
        foreign = f"FOREIGN KEY (p) REFERENCES parent_{number} (id)"
        columns = f"(id INT PRIMARY KEY, p INT, a INT, {foreign})"
        merging.do(f"CREATE TABLE t_{number} {columns}")

    [source] = merging.sources.values()
    async with merging.running() as generation:
        create(1)
        create(2)
        for number in (1, 2):
            merging.do(*(f"ALTER TABLE t_{number} {change.format(number)}" for change in changes))
        create(3)
        merging.do(*(f"ALTER TABLE t_3 {change.format(3)}" for change in changes))
        merging.do("INSERT INTO t_3 (id) VALUES (1)")
        await merging.check(generation)
        await settles(lambda: len(keys(merging.target, "t")), len(keys(source, "t_3")))
