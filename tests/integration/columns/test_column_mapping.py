"""Keys with the shards' numbers in their upper bits, in copy, binlog and DDL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from actors.errors.faults import FatalError
from replicator.routing.columns.column_mapping import VALUE_LIMIT
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import copy_all_anew
from tests.support.tasks.running import fault_of, settles
from tests.support.tasks.tables import rows_of

SERVERS = pytest.mark.parametrize("source", ["mariadb_source", "mysql_source"], indirect=True)
NUMBERS = {"a": 3, "b": 15}


def mapped(merging: Merging, table: str = "x", **more: object) -> None:
    """Map ``id``: the number of the source in 4 bits, then that of the table in 8."""
    merging.more["column-mappings"] = {
        source: {
            "schema-pattern": merging.database,
            "table-pattern": f"{table}_*",
            "expression": "partition id",
            "source-column": "id",
            "target-column": "ID",
            "arguments": [str(NUMBERS[source]), "", table, "_"],
            **more,
        }
        for source in merging.sources
    }
    merging.routes = {"table-pattern": f"{table}_*"}
    for source in merging.sources:
        merging.instances[source] = {"column-mapping-rules": [source]}


def expected(
    merging: Merging, table: str, shards: tuple[int, ...], columns: str
) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for source, server in merging.sources.items():
        for number in shards:
            upper = NUMBERS[source] << 59 | number << 51
            rows = rows_of(server, f"{merging.database}.{table}_{number}", columns)
            for (key, *row), count in rows.items():
                assert isinstance(key, bytes | None)
                new = None if key is None else b"%d" % (int(key) | upper)
                found[(new, *row)] += count
    return found


async def equal(merging: Merging, table: str, shards: int, columns: str, *more: int) -> None:
    """With coordination, rows behind a change arrive after their source was read again."""
    wanted = expected(merging, table, (*range(1, shards + 1), *more), columns)

    def there() -> Counter[tuple[object, ...]]:
        names = {row[0] for row in merging.on(merging.target, f"SHOW COLUMNS FROM {table}")}
        if not names.issuperset(columns.split(", ")):
            return Counter()
        return rows_of(merging.target, f"{merging.database}.{table}", columns)

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
                f"UPDATE {x} SET id = id + 2000000 WHERE id < 1000000 ORDER BY id LIMIT 1",
            )
        merging.on(
            server,
            "BEGIN",
            f"INSERT INTO x_1 (id, v) SELECT {round_ + 3}000000, v FROM x_2 ORDER BY id LIMIT 1",
            "DELETE FROM x_2 ORDER BY id LIMIT 1",
            "COMMIT",
        )


@pytest.mark.parametrize(
    ("mode", "key", "types"),
    [
        ("", "PRIMARY KEY (id)", ("INT UNSIGNED", "BIGINT")),
        ("pessimistic", "PRIMARY KEY (id)", ("BIGINT UNSIGNED", "BIGINT")),
        pytest.param("", "KEY (id)", ("BIGINT", "BIGINT UNSIGNED"), marks=pytest.mark.slow),
        pytest.param(
            "pessimistic",
            "UNIQUE KEY (v, id), PRIMARY KEY (id, v)",
            ("MEDIUMINT", "BIGINT"),
            marks=pytest.mark.slow,
        ),
        pytest.param("optimistic", "PRIMARY KEY (id)", ("INT", "BIGINT"), marks=pytest.mark.slow),
    ],
)
async def test_equal_keys_of_all_shards_live_side_by_side(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mode: str,
    key: str,
    types: tuple[str, str],
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.mode = "all"
    merging.more["shard-mode"] = mode
    mapped(merging)
    shard, target = (
        f"(v VARCHAR(20), id {kind} NOT NULL{more}, {keys})"
        for kind, more, keys in (
            (types[0], " AUTO_INCREMENT", "PRIMARY KEY (id)"),
            (types[1], "", key),
        )
    )
    merging.create("x", shard, shards=2, target=target)
    write(merging, 2, 1)
    async with merging.running() as generation:
        await merging.copied(generation)
        write(merging, 2, 2)
        await equal(merging, "x", 2, "id, v")
    write(merging, 2, 3)
    async with merging.running() as generation:
        for server in merging.sources.values():
            for table in ("x_1", "x_2"):
                merging.on(server, f"ALTER TABLE {table} ADD w INT DEFAULT 7, ADD KEY (v)")
        write(merging, 2, 4)
        await equal(merging, "x", 2, "id, v, w")
        for server in merging.sources.values():
            merging.on(
                server, "CREATE TABLE x_255 LIKE x_1", "INSERT INTO x_255 VALUES ('n', 1, 1)"
            )
        await equal(merging, "x", 2, "id, v, w", 255)


@SERVERS
async def test_nulls_stay_and_the_lower_bits_are_all_used(merging: Merging) -> None:
    merging.mode = "all"
    mapped(merging)
    merging.create("x", "(id BIGINT, v INT PRIMARY KEY)")
    merging.do(f"INSERT INTO x_1 VALUES (NULL, 1), (0, 2), ({VALUE_LIMIT - 1}, 3)")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do(f"INSERT INTO x_1 VALUES (NULL, 4), (0, 5), ({VALUE_LIMIT - 1}, 6)")
        await equal(merging, "x", 1, "id, v")
    assert (b"%d" % (3 << 59 | 1 << 51 | VALUE_LIMIT - 1), b"6") in rows_of(
        merging.target, f"{merging.database}.x", "id, v"
    )


def last_row_event(merging: Merging) -> str:
    """The place of the last event that inserts rows, as the server itself tells it."""
    (file, *_) = merging.on(merging.source, "SHOW BINARY LOGS")[-1]
    found = merging.on(merging.source, f"SHOW BINLOG EVENTS IN '{file}'")
    return [f"{file}:{at}" for _, at, kind, *_ in found if str(kind).startswith("Write_rows")][-1]


@pytest.mark.remedy("rows.no-room", "copy anew")
@pytest.mark.remedy("copy.no-room", "resume")
@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("mariadb_source", -1),
        ("mysql_source", VALUE_LIMIT),
        ("mysql56_source", (1 << 63) - 1),
    ],
    indirect=["source"],
)
async def test_a_value_without_room_is_a_fault(merging: Merging, value: int) -> None:
    mapped(merging)
    merging.create("x", "(id BIGINT PRIMARY KEY, v INT)")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1)")
        await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 VALUES (2, 2)", f"INSERT INTO x_1 VALUES (5, 5), ({value}, 3)")
    fault = await merging.fault()
    assert fault.event == "rows.no-room"
    assert f"x_1, row event at {last_row_event(merging)} of the binlog" in fault.where
    assert "key (id)" in fault.where
    assert "and mapped values go from 0 to 17592186044415" in fault.message
    assert f"the value {value}" not in str(fault)
    merging.on(merging.target, "TRUNCATE x", f"DROP DATABASE {merging.database}_meta")
    for on_duplicate in ("error", "ignore"):
        merging.instance["loader"] = {"on-duplicate-logical": on_duplicate}
        merging.changed(mode="full")
        fault = await fault_of(merging.copy())
        assert fault.event == "copy.no-room"
        assert f"{value} is not between 0 and 17592186044415" not in fault.message
        merging.show_values = True
        merging.changed(mode="full")
        fault = await fault_of(merging.copy())
        assert f"{value} is not between 0 and 17592186044415" in fault.message
        merging.show_values = False
        assert merging.on(merging.target, "SELECT * FROM x") == ()
    merging.do(f"UPDATE x_1 SET id = 4 WHERE id = {value}")
    await merging.copy()
    await equal(merging, "x", 1, "id, v")


@pytest.mark.remedy("copy.no-room", "copy anew")
async def test_shards_are_told_apart_by_an_extracted_column_instead(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    mapped(merging)
    merging.mode = "all"
    merging.create("x", "(id BIGINT PRIMARY KEY, v INT)", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 1), (-1, 2)", "INSERT INTO x_2 VALUES (1, 3), (-1, 4)")
    assert (await merging.fault()).event == "copy.no-room"
    extracted_instead(merging)
    await copy_all_anew(merging, "x", columns={"x": "id, v"})
    found = merging.on(merging.target, "SELECT `of`, v FROM x ORDER BY v")
    assert found == (("1", 1), ("1", 2), ("2", 3), ("2", 4))


def extracted_instead(merging: Merging) -> None:
    """Tell the shards apart by the extracted column ``of`` instead of the mapping."""
    del merging.more["column-mappings"]
    merging.instances.clear()
    merging.routes["extract-table"] = {"table-regexp": "x_(.)", "target-column": "of"}
    merging.on(
        merging.target,
        "DROP TABLE x",
        "CREATE TABLE x (id BIGINT, v INT, `of` CHAR(1), PRIMARY KEY (id, `of`))",
    )
    merging.changed(mode="all")


async def without_room(merging: Merging) -> FatalError:
    """Let two shards get a row each that the mapping has no room for; the fault of the first."""
    mapped(merging)
    merging.mode = "all"
    merging.create("x", "(id BIGINT PRIMARY KEY, v INT)", shards=2)
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 2)", "INSERT INTO x_2 VALUES (1, 3)")
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.do(
        "INSERT INTO x_1 VALUES (3, 4), (-1, 5)",
        f"UPDATE x_2 SET id = {VALUE_LIMIT}",
        "DELETE FROM x_1 WHERE id = 2",
    )
    return await merging.fault()


@pytest.mark.remedy("rows.no-room", "copy anew")
async def test_a_row_is_renumbered_and_all_is_copied_again(
    merging_from: Callable[..., Merging], mysql56_source: DatabaseServer
) -> None:
    merging = merging_from(mysql56_source)
    fault = await without_room(merging)
    assert (fault.event, len(fault.remedies)) == ("rows.no-room", 2)
    merging.do("UPDATE x_1 SET id = 6 WHERE id = -1", f"DELETE FROM x_2 WHERE id = {VALUE_LIMIT}")
    await copy_all_anew(merging, "x", columns={"x": "v"})
    await equal(merging, "x", 2, "id, v")


@pytest.mark.slow
@pytest.mark.remedy("rows.no-room", "copy anew")
async def test_an_extracted_column_replaces_a_mapping_without_room(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    fault = await without_room(merging)
    assert fault.remedies[0].startswith("tell the shards apart by an extracted column")
    extracted_instead(merging)
    await copy_all_anew(merging, "x", columns={"x": "id, v"})
    found = merging.on(merging.target, "SELECT `of`, v FROM x ORDER BY v")
    assert found == (("1", 1), ("2", 3), ("1", 4), ("1", 5))


@pytest.mark.parametrize(
    ("source", "mode", "statement", "words"),
    [
        ("mysql_source", "", "ALTER TABLE x_1 MODIFY id INT UNSIGNED", "changes its column ID"),
        (
            "mariadb_source",
            "pessimistic",
            "ALTER TABLE x_1 DROP COLUMN id",
            "changes its column ID",
        ),
        ("mysql_source", "pessimistic", "RENAME TABLE x_1 TO x_3", "RENAME changes the values"),
        ("mariadb_source", "", "CREATE TABLE x_256 LIKE x_2", "256 does not fit into the 8 bits"),
    ],
    indirect=["source"],
)
async def test_statements_that_the_mapping_does_not_bear_are_faults(
    merging: Merging, mode: str, statement: str, words: str
) -> None:
    mapped(merging)
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT, v INT)", shards=2, target="(id BIGINT, v INT)")
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 VALUES (1, 2)", statement)
    fault = await merging.fault()
    assert fault.event == "ddl.not-supported"
    assert words in fault.message
    assert merging.on(merging.target, "SELECT v FROM x") == ((2,),)


@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_source_may_get_its_first_shard_later(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    mode: str,
) -> None:
    merging = merging_from(mariadb_source, mysql_source)
    merging.more["shard-mode"] = mode
    mapped(merging)
    merging.routes["extract-source"] = {"source-regexp": "(.*)", "target-column": "shard"}
    shard = "(id INT UNSIGNED PRIMARY KEY, v VARCHAR(20))"
    target = "(shard VARCHAR(9), id BIGINT, v VARCHAR(20), PRIMARY KEY (shard, id))"
    merging.create("x", shard, target=target)
    late = merging.sources["b"]
    merging.on(late, "DROP TABLE x_1")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 'one')")
        await merging.caught_up(generation)
        merging.on(late, f"CREATE TABLE x_1 {shard}", "INSERT INTO x_1 VALUES (1, 'late')")
        await equal(merging, "x", 1, "id, v")
        for server in merging.sources.values():
            merging.on(server, "ALTER TABLE x_1 ADD w INT DEFAULT 3")
            merging.on(server, "INSERT INTO x_1 VALUES (2, 'two', 2)")
        await equal(merging, "x", 1, "id, v, w")
    rows = merging.on(merging.target, "SELECT shard, COUNT(*) FROM x GROUP BY shard ORDER BY shard")
    assert rows == (("a", 2), ("b", 2))


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_duplicate_names_the_other_shard_by_its_own_value(merging: Merging) -> None:
    merging.mode = "full"
    merging.show_values = True
    mapped(merging, arguments=["1", "", ""])
    merging.routes["extract-table"] = {"table-regexp": "_([12])?", "target-column": "shard"}
    target = "(id BIGINT, shard VARCHAR(9), v INT, PRIMARY KEY (shard, id))"
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2, target=target)
    merging.do("CREATE TABLE x_3 LIKE x_1", "CREATE TABLE x_4 LIKE x_1")
    for shard, key in (("x_1", 5), ("x_2", 5), ("x_3", 7), ("x_4", 7)):
        merging.do(f"INSERT INTO {shard} VALUES ({key}, 0)")
    fault = await fault_of(merging.copy())
    assert fault.event == "copy.duplicate"
    first, second = f"{merging.database}.x_3", f"{merging.database}.x_4"
    assert first in fault.message
    assert second in fault.message
    assert str(1 << 59 | 7) in fault.message
    assert "x_1" not in fault.message


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize(
    "column", ["INT", "INT(5) UNSIGNED ZEROFILL", "MEDIUMINT UNSIGNED", "BIGINT UNSIGNED"]
)
async def test_a_copy_makes_the_target_wide_enough(merging: Merging, column: str) -> None:
    merging.mode = "full"
    mapped(merging)
    merging.create(
        "x",
        f"(`a, b` VARCHAR(9) DEFAULT '`id` int', id {column} NOT NULL AUTO_INCREMENT COMMENT 'key',"
        " v INT, PRIMARY KEY (id))",
        shards=2,
        with_target=False,
    )
    for number in (1, 2):
        merging.do(f"INSERT INTO x_{number} (id, v) VALUES (1, {number})")
    await merging.copy()
    (kind,) = (
        row[1] for row in merging.on(merging.target, "SHOW COLUMNS FROM x") if row[0] == "id"
    )
    assert str(kind).startswith("bigint")
    found = merging.on(
        merging.target, "SELECT v, id & 0xfffffffffff, id > 1000000 FROM x ORDER BY v"
    )
    assert found == ((1, 1, 1), (2, 1, 1))
