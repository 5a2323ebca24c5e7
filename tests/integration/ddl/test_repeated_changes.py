"""Without coordination: what several shards bring changes their target once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from actors.faults import COPY_AGAIN, DdlEvent
from actors.task.operator.removal import remove_task
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.ddl_overrides import DdlOverride, DdlOverrideStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging

COLUMNS = "(id INT PRIMARY KEY, a INT, b INT, c INT, v INT)"
WALK = (
    "DROP c",
    "ADD c INT DEFAULT 7",
    "CHANGE a b INT, CHANGE b a INT",
    "MODIFY v BIGINT",
    "MODIFY v VARCHAR(40)",
    "ADD d INT, ADD INDEX i (d)",
    "DROP d",
    "ADD d INT DEFAULT 9, ADD UNIQUE INDEX i (id, d)",
)
"""What a repeat of would take values away, exchange them, or make a type narrower again."""


def shards_of(merging: Merging) -> Iterator[tuple[DatabaseServer, str]]:
    for server in merging.sources.values():
        for table in ("t_1", "t_2"):
            yield server, table


@pytest.mark.slow
@pytest.mark.not_on_tidb("it refuses two columns that exchange their names")
async def test_each_change_is_made_once(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql56_source: DatabaseServer,
) -> None:
    merging = merging_from(mariadb_source, mysql56_source)
    merging.create("t", COLUMNS, shards=2)
    key = count(1)
    first, *others, last = shards_of(merging)

    def walk(server: DatabaseServer, table: str) -> None:
        merging.on(server, *(f"ALTER TABLE {table} {change}" for change in WALK))
        merging.on(
            server,
            f"INSERT INTO {table} (id, a, b, c, v, d) VALUES ({next(key)}, 10, 20, 30, 'x', 50)",
            f"UPDATE {table} SET c = 31, d = 51, v = CONCAT(v, 'y')",
        )

    async with merging.running() as generation:
        for server, table in shards_of(merging):
            merging.on(server, f"INSERT INTO {table} VALUES ({next(key)}, 1, 2, 3, 4)")
        await merging.caught_up(generation)
        walk(*first)
        await merging.caught_up(generation)
    for shard in others:
        walk(*shard)
    async with merging.running() as generation:
        await merging.caught_up(generation)
        walk(*last)
        await merging.check(generation, {"t": "id, a, b, c, v, d"})


@pytest.mark.remedy("rows.recreated-column", "copy anew")
@pytest.mark.slow
@pytest.mark.not_on_tidb("it refuses two columns that exchange their names")
async def test_rows_of_shards_that_lag_behind(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", COLUMNS, shards=3)
    key = count(1)
    shards = ("t_1", "t_2", "t_3")

    def rows() -> None:
        for shard in shards:
            merging.do(
                f"INSERT INTO {shard} (id, a, c, v) VALUES ({next(key)}, 1, 30, 4)",
                f"UPDATE {shard} SET c = c + 1, v = v + 1",
            )

    async with merging.running() as generation:
        rows()
        for change in ("DROP c, ADD c INT DEFAULT 7", "MODIFY v BIGINT", "DROP c, ADD c BIGINT"):
            for shard in shards:
                await merging.caught_up(generation)
                merging.do(f"ALTER TABLE {shard} {change}")
                rows()
        await merging.check(generation, {"t": "id, a, b, c, v"})
        # What it writes would come to stand under another name.
        merging.do("ALTER TABLE t_1 CHANGE a b INT, CHANGE b a INT")
        await merging.caught_up(generation)
    merging.do("INSERT INTO t_2 (id, a) VALUES (999, 1)")
    found = await merging.fault()
    assert found.event == "rows.recreated-column"
    assert COPY_AGAIN in found.remedies[0]
    for shard in ("t_2", "t_3"):
        merging.do(f"ALTER TABLE {shard} CHANGE a b INT, CHANGE b a INT")
    merging.on(merging.target, "TRUNCATE TABLE t")
    merging.changed(mode="all")
    await remove_task(merging.task)
    async with merging.running() as generation:
        await merging.copied(generation)
        rows()
        await merging.check(generation, {"t": "id, a, b, c, v"})


@pytest.mark.remedy("ddl.unclear", "skip")
async def test_what_cannot_be_told_waits_for_the_operator(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", COLUMNS, shards=2)
    async with merging.running() as generation:
        merging.do(
            "ALTER TABLE t_1 MODIFY v BIGINT",
            "ALTER TABLE t_1 MODIFY v VARCHAR(40)",
            "INSERT INTO t_1 VALUES (1, 1, 2, 3, '12')",
        )
        await merging.caught_up(generation)
    merging.do("ALTER TABLE t_2 CHANGE v v BIGINT")
    found = await merging.fault()
    assert found.event == "ddl.unclear"
    assert "modify v varchar" in found.message
    assert isinstance(found.about, DdlEvent)
    place = found.about.position
    await answer(
        merging,
        DdlOverride(found.about.source, place.file, place.offset, place.key, OverrideAction.SKIP),
    )
    async with merging.running() as generation:
        await merging.caught_up(generation)
        merging.do(
            "ALTER TABLE t_2 MODIFY v VARCHAR(40)", "INSERT INTO t_2 VALUES (2, 1, 2, 3, 'v')"
        )
        await merging.check(generation)


async def answer(merging: Merging, override: DdlOverride) -> None:
    """What `replicator binlog` does."""
    server, name = merging.target, merging.database
    connection = Connection(DatabaseAddress(server.host, server.port, server.user, server.password))
    lease = Lease(f"{name}_meta", name, this_process())
    await lease.begin(connection)
    await DdlOverrideStore(MetaStore(connection, f"{name}_meta", name, lease)).put(override)
    connection.close()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("ADD d INT DEFAULT 7",), "ADD d INT DEFAULT 9"),
        (("ADD d INT DEFAULT 7", "ALTER d SET DEFAULT 8"), "ADD d INT DEFAULT 7"),
        (("ADD d INT AS (a + 1) STORED",), "ADD d INT AS (a + 2) STORED"),
    ],
    ids=["default", "default since", "formula"],
)
async def test_a_column_with_other_values_for_older_rows_is_a_fault(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    first: tuple[str, ...],
    second: str,
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("t", COLUMNS, shards=2)
    async with merging.running() as generation:
        merging.do("INSERT INTO t_2 (id, a) VALUES (2, 1)")
        merging.do(*(f"ALTER TABLE t_1 {change}" for change in first))
        merging.do("INSERT INTO t_2 (id, a) VALUES (3, 1)")
        await merging.caught_up(generation)
    merging.do(f"ALTER TABLE t_2 {second}")
    found = await merging.fault()
    assert found.event == "ddl.other-values"
    assert "d has " in found.message
