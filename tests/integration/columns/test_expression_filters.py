"""Expression filters in a whole task: full copy, binlog, both shard modes, restarts in between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.control.arguments import OnChangedRules
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.merging import Merging
from tests.support.tasks.running import settles

COLUMNS = """(id INT PRIMARY KEY, v INT, name VARCHAR(20) CHARACTER SET latin1, amount DECIMAL(8,2),
    day DATE, ok BIT(1), kind ENUM('a','b') CHARACTER SET latin1)"""


def rules(merging: Merging, table: str, *given: dict[str, str]) -> None:
    names = {f"f{number}": rule for number, rule in enumerate(given)}
    merging.more["expression-filter"] = {
        name: {"schema": merging.database, "table": table, **rule} for name, rule in names.items()
    }
    merging.instance["expression-filters"] = list(names)


def on_target(merging: Merging, sql: str) -> list[tuple[object, ...]]:
    return sorted(merging.on(merging.target, sql))


async def arrives(merging: Merging, sql: str, expected: list[tuple[object, ...]]) -> None:
    await settles(lambda: on_target(merging, sql), expected)


@pytest.mark.parametrize("source", ["mariadb_source", "mysql_source"], indirect=True)
@pytest.mark.parametrize(
    "mode", ["", "pessimistic", pytest.param("optimistic", marks=pytest.mark.slow)]
)
async def test_rows_are_left_out_of_the_copy_and_of_the_binlog_alike(
    merging: Merging, mode: str
) -> None:
    merging.mode = "all"
    merging.more["shard-mode"] = mode
    merging.create("x", COLUMNS, shards=2)
    out = "name LIKE 'draft%' OR (amount / 3 < 1 AND day >= '2024-01-01' AND kind = 'a')"
    rules(merging, "x_1", {"insert-value-expr": out})
    merging.more["mydumpers"] = {"d": {"rows": 2}}
    merging.instance["mydumper-config-name"] = "d"
    draft, kept = "'draft \u00e9', 5, '2020-01-01', 1, 'b'", "'done', 1, '2024-02-01', 0, 'b'"
    merging.do(
        *(f"INSERT INTO x_1 VALUES ({n}, {n}, {draft})" for n in range(1, 5)),
        f"INSERT INTO x_1 VALUES (5, 5, {kept}), (6, 6, 'x', 2.99, '2024-01-01', NULL, 'a')",
        f"INSERT INTO x_1 VALUES (7, 7, NULL, NULL, NULL, NULL, 'a'), (8, 8, {kept})",
        f"INSERT INTO x_2 VALUES (11, 11, {draft})",
    )
    ids = "SELECT id, v FROM x"
    async with merging.running() as generation:
        await merging.copied(generation)
        assert on_target(merging, ids) == [(5, 5), (7, 7), (8, 8), (11, 11)]
        merging.do(
            f"INSERT INTO x_1 VALUES (20, 0, {draft}), (21, 0, {kept})",
            "UPDATE x_1 SET name = 'done' WHERE id = 1",
            "UPDATE x_1 SET name = 'Draft again' WHERE id = 5",
            "UPDATE x_1 SET v = 70 WHERE id IN (2, 7)",
            "DELETE FROM x_1 WHERE id IN (3, 8)",
            "UPDATE x_2 SET v = 12",
        )
        await merging.caught_up(generation)
        expected: list[tuple[object, ...]] = [(1, 1), (7, 70), (11, 12), (21, 0)]
        assert on_target(merging, ids) == expected
        assert sum(target.filtered for target in generation.counts.targets.values()) == 3
        assert not sum(t.missing for t in generation.counts.targets.values()), generation.counts
    merging.do(
        "UPDATE x_1 SET id = id + 100, name = 'draft' WHERE id IN (1, 21)",
        "UPDATE x_1 SET id = id + 100, name = 'done' WHERE id IN (2, 20)",
    )
    expected = [(7, 70), (11, 12), (102, 70), (120, 0)]
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
        assert on_target(merging, ids) == expected
        merging.do(*(f"ALTER TABLE {t} ADD w INT DEFAULT 1 FIRST" for t in ("x_1", "x_2")))
        merging.do("UPDATE x_1 SET w = 2, name = 'draft' WHERE id = 7")
        merging.do(f"INSERT INTO x_1 VALUES (9, 30, 0, {kept})")
        expected = [(11, 12), (30, 0), (102, 70), (120, 0)]
        await arrives(merging, ids, expected)
    condition = "WHERE NOT (name <=> 'draft' OR name LIKE 'draft%')"
    union = merging.on(merging.source, f"SELECT * FROM x_1 {condition} UNION SELECT * FROM x_2")
    there = on_target(merging, "SELECT * FROM x")
    assert [row for row in sorted(union) if row[1] != 6] == there


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_changes_are_left_out_by_their_kind(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v INT, UNIQUE (v))")
    rules(
        merging,
        "x_1",
        {"update-old-value-expr": "v < 10", "update-new-value-expr": "v > 20"},
        {"delete-value-expr": "v MOD 2 = 1"},
    )
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO x_1 VALUES (1, 1), (2, 2), (3, 3), (4, 14)",
            "UPDATE x_1 SET v = 30 WHERE id = 1",
            "UPDATE x_1 SET v = 12 WHERE id = 2",
            "UPDATE x_1 SET v = 40 WHERE id = 4",
            "DELETE FROM x_1 WHERE id = 3",
            "DELETE FROM x_1 WHERE id = 4",
        )
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT * FROM x") == [(1, 1), (2, 12), (3, 3)]
        # In one batch the row changes back to what the target never had.
        merging.do("UPDATE x_1 SET v = 31 WHERE id = 1", "UPDATE x_1 SET v = 30 WHERE id = 1")
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT * FROM x") == [(1, 30), (2, 12), (3, 3)]


@pytest.mark.parametrize("source", ["mysql_source"], indirect=True)
async def test_rows_without_a_key_are_counted_as_the_rules_say(merging: Merging) -> None:
    merging.create("x", "(v INT, s VARCHAR(10) COLLATE latin1_swedish_ci)")
    rules(merging, "x_1", {"insert-value-expr": "s = 'no'"})
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO x_1 VALUES (1, 'no'), (1, 'yes'), (1, 'yes'), (2, 'NO '), (3, NULL)",
            "UPDATE x_1 SET s = 'yes' WHERE v = 1 AND s = 'no'",
            "UPDATE x_1 SET s = 'n\u00f3' WHERE v = 3",
            "DELETE FROM x_1 WHERE v = 2",
        )
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT * FROM x") == [(1, "yes"), (1, "yes"), (1, "yes")]
        assert not sum(t.missing for t in generation.counts.targets.values()), generation.counts


@pytest.mark.remedy("rows.filter-unfit", "reload")
@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_rule_that_no_longer_fits_the_table_stops_its_rows(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    rules(merging, "x_1", {"insert-value-expr": "v = 1"})
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 2)")
        await merging.caught_up(generation)
    merging.do("ALTER TABLE x_1 CHANGE v w INT", "INSERT INTO x_1 VALUES (3, 1), (4, 4)")
    fault = await merging.fault()
    assert fault.event == "rows.filter-unfit"
    assert "`v`: the table has no such column (line 1, column 1)" in fault.message
    assert on_target(merging, "SELECT * FROM x") == [(2, 2)]
    rules(merging, "x_1", {"insert-value-expr": "w = 1"})
    merging.changed(mode="incremental")
    merging.on_changed_rules = OnChangedRules.KEEP
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT * FROM x") == [(2, 2), (4, 4)]


@pytest.mark.remedy("rows.unfiltered", "reload")
@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_row_that_has_no_answer_is_a_fault_that_names_it(
    merging: Merging, merging_from: Callable[..., Merging], source: DatabaseServer
) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v BIGINT UNSIGNED)")
    rules(merging, "x_1", {"insert-value-expr": "v - 1 > 5"})
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 VALUES (1, 1)", "INSERT INTO x_1 VALUES (2, 0)")
    fault = await merging.fault()
    assert fault.event == "rows.unfiltered"
    assert "a result is out of the range of a BIGINT" in fault.message
    rules(merging, "x_1", {"insert-value-expr": "v > 0 AND v - 1 > 5"})
    merging.changed(mode="incremental")
    merging.on_changed_rules = OnChangedRules.KEEP
    async with merging.running() as generation:
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT id FROM x") == [(1,), (2,)]


@pytest.mark.remedy("copy.refused", "run")
@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_copy_whose_filter_has_no_answer_goes_on_with_another_filter(
    merging: Merging,
) -> None:
    merging.mode = "all"
    merging.create("x", "(id INT PRIMARY KEY, v BIGINT UNSIGNED)")
    rules(merging, "x_1", {"insert-value-expr": "v - 1 > 5"})
    merging.do("INSERT INTO x_1 VALUES (1, 1), (2, 0), (3, 9)")
    fault = await merging.fault()
    assert fault.event == "copy.refused"
    assert "--on-changed-rules keep" in fault.remedies[0]
    rules(merging, "x_1", {"insert-value-expr": "v > 0 AND v - 1 > 5"})
    merging.changed(mode="all")
    merging.on_changed_rules = OnChangedRules.KEEP
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (4, 0), (5, 9)")
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT id FROM x") == [(1,), (2,), (4,)]


@pytest.mark.parametrize("source", ["mysql_source"], indirect=True)
async def test_a_text_column_that_is_added_is_compared_as_the_source_compares_it(
    merging: Merging,
) -> None:
    merging.create("x", "(id INT PRIMARY KEY)")
    rules(merging, "x_1", {"insert-value-expr": "t = 'a'"})
    async with merging.running() as generation:
        # The target lacks MySQL's default collation, and has a binary one in its place.
        merging.do(
            "ALTER TABLE x_1 ADD t VARCHAR(9) CHARACTER SET utf8mb4",
            "INSERT INTO x_1 VALUES (1, 'a'), (2, 'A'), (3, '\u00e1'), (4, 'a '), (5, 'b')",
        )
        await merging.caught_up(generation)
        collation = "SELECT COLLATION_NAME FROM information_schema.COLUMNS WHERE COLUMN_NAME = 't'"
        own = f"{collation} AND TABLE_SCHEMA = DATABASE()"
        assert on_target(merging, own) == [("utf8mb4_nopad_bin",)]
        assert on_target(merging, "SELECT id FROM x") == [(4,), (5,)]
