"""Columns of the target that hold a part of the shard's name, in copy, binlog and DDL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import anyio
import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import PATIENCE, fault_of, settles
from tests.support.tasks.tables import rows_of

EXTRACTS: dict[str, object] = {
    "extract-table": {"table-regexp": "_(.)$", "target-column": "c_table"},
    "extract-source": {"source-regexp": "(.*)", "target-column": "C_Source"},
}
SHARD = "(id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20))"


def expected(
    merging: Merging, table: str, shards: int, columns: str
) -> Counter[tuple[object, ...]]:
    """The shards' rows, with what is extracted of their names in front."""
    found: Counter[tuple[object, ...]] = Counter()
    for source, server in merging.sources.items():
        for number in range(1, shards + 1):
            rows = rows_of(server, f"{merging.database}.{table}_{number}", columns)
            for row, count in rows.items():
                found[(str(number).encode(), source.encode(), *row)] += count
    return found


async def equal(merging: Merging, table: str, shards: int, columns: str) -> None:
    """With coordination, rows behind a change arrive after their source was read again."""
    qualified = f"{merging.database}.{table}"
    wanted = expected(merging, table, shards, columns)

    def there() -> Counter[tuple[object, ...]]:
        names = {row[0] for row in merging.on(merging.target, f"SHOW COLUMNS FROM {table}")}
        if not names.issuperset(columns.split(", ")):
            return Counter()
        return rows_of(merging.target, qualified, f"c_table, c_source, {columns}")

    await settles(there, wanted)


def write(merging: Merging, shards: int, round_: int) -> None:
    """The same keys in all shards: changed, moved, deleted, and rows that come."""
    for server in merging.sources.values():
        for number in range(1, shards + 1):
            x = f"x_{number}"
            merging.on(
                server,
                *(f"INSERT INTO {x} (v) VALUES ('{round_} {n}')" for n in range(4)),
                f"UPDATE {x} SET v = 'changed {round_}' ORDER BY id DESC LIMIT 1",
                f"DELETE FROM {x} ORDER BY id LIMIT 1",
                f"UPDATE {x} SET id = -id WHERE id > 0 ORDER BY id LIMIT 1",
            )
        merging.on(
            server,
            "BEGIN",
            f"INSERT INTO x_1 (id, v) SELECT {round_}000000, v FROM x_2 ORDER BY id DESC LIMIT 1",
            "DELETE FROM x_2 ORDER BY id DESC LIMIT 1",
            "COMMIT",
        )


@pytest.mark.parametrize(
    ("mode", "key"),
    [
        pytest.param("", "PRIMARY KEY (c_table, C_Source, id)", marks=pytest.mark.slow),
        ("pessimistic", "UNIQUE KEY (id, c_source, c_table)"),
        pytest.param(
            "pessimistic",
            "PRIMARY KEY (c_source, id, c_table), UNIQUE KEY u (id, c_table, c_source)",
            marks=pytest.mark.slow,
        ),
        pytest.param("", "KEY (id)", marks=pytest.mark.slow),
        ("optimistic", "PRIMARY KEY (c_table, C_Source, id)"),
    ],
)
async def test_equal_keys_of_all_shards_live_side_by_side(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mode: str,
    key: str,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.mode, merging.routes = "all", EXTRACTS
    merging.more["shard-mode"] = mode
    target = (
        "(c_table CHAR(1) NOT NULL, id BIGINT NOT NULL, v VARCHAR(20),"
        f" c_source VARCHAR(9) NOT NULL, {key})"
    )
    merging.create("x", SHARD, shards=2, target=target)
    write(merging, 2, 1)
    async with merging.running() as generation:
        await merging.copied(generation)
        write(merging, 2, 2)
        await equal(merging, "x", 2, "id, v")
    write(merging, 2, 3)
    async with merging.running() as generation:
        for server in merging.sources.values():
            for shard in ("x_1", "x_2"):
                merging.on(server, f"ALTER TABLE {shard} ADD w INT DEFAULT 7, ADD KEY (v)")
        write(merging, 2, 4)
        await equal(merging, "x", 2, "id, v, w")
        for server in merging.sources.values():
            merging.on(
                server,
                "CREATE TABLE x_3 LIKE x_1",
                "INSERT INTO x_3 SELECT * FROM x_1",
                "UPDATE x_3 SET w = id",
            )
        write(merging, 3, 5)
        await equal(merging, "x", 3, "id, v, w")
        for server in merging.sources.values():
            for shard in ("x_3", "x_1", "x_2"):
                merging.on(server, f"ALTER TABLE {shard} ADD y INT DEFAULT 8 AFTER id")
        write(merging, 3, 6)
        await equal(merging, "x", 3, "id, v, w, y")


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_target_that_can_not_take_it_is_a_fault(merging: Merging) -> None:
    merging.routes = {"extract-source": EXTRACTS["extract-source"]}
    merging.create("x", "(id INT PRIMARY KEY)")
    for mode in ("all", "incremental"):
        merging.changed(mode=mode)
        generation = merging.generation()
        merging.do(f"INSERT INTO x_1 VALUES ({len(mode)})")
        with anyio.fail_after(PATIENCE):
            fault = await fault_of(generation.run(anyio.Event(), anyio.Event()))
        assert fault.event == "rows.no-plan"
        assert "no column `C_Source`" in fault.message
        assert "ADD COLUMN `C_Source` VARCHAR(64) NOT NULL" in fault.message
        merging.on(merging.target, f"DROP DATABASE {merging.database}_meta")


@pytest.mark.remedy("target.not-created", "resume")
@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_missing_target_is_not_made_without_the_column(merging: Merging) -> None:
    merging.mode, merging.routes = "full", EXTRACTS
    merging.create("x", SHARD, with_target=False)
    fault = await fault_of(merging.copy())
    assert fault.event == "target.not-created"
    assert "C_Source, c_table" in fault.message
    assert merging.on(merging.target, "SHOW TABLES") == ()
    merging.on(
        merging.target,
        "CREATE TABLE x (c_table VARCHAR(9), c_source VARCHAR(9), id INT, v VARCHAR(20),"
        " PRIMARY KEY (c_table, c_source, id))",
    )
    merging.do("INSERT INTO x_1 VALUES (1, 'a'), (2, 'b')")
    await merging.copy()
    await equal(merging, "x", 1, "id, v")


@pytest.mark.parametrize(
    ("source", "mode", "statement", "words"),
    [
        ("mariadb_source", "", "ALTER TABLE x_1 ADD b INT, ADD COLUMN C_TABLE INT", "c_table"),
        ("mysql_source", "pessimistic", "ALTER TABLE x_1 CHANGE v c_source INT", "C_Source"),
        ("mariadb_source", "pessimistic", "RENAME TABLE x_1 TO x_3", "RENAME changes the values"),
        ("mysql_source", "", "CREATE TABLE `x_!` LIKE x_2", "does not match 'x_!'"),
    ],
    indirect=["source"],
)
async def test_statements_that_would_mix_columns_are_faults(
    merging: Merging, mode: str, statement: str, words: str
) -> None:
    merging.routes = {
        "extract-table": {"table-regexp": r"_(\w)$", "target-column": "c_table"},
        "extract-source": EXTRACTS["extract-source"],
    }
    merging.more["shard-mode"] = mode
    target = "(id INT, v VARCHAR(20), c_table CHAR(1), c_source CHAR(1), KEY (id))"
    merging.create("x", SHARD, shards=2, target=target)
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 VALUES (1, 'a')", statement)
    fault = await merging.fault()
    assert fault.event == "ddl.not-supported"
    assert words in fault.message
    assert merging.on(merging.target, "SELECT * FROM x") == ((1, "a", "1", "a"),)
