"""Event filters: what they name stays out of the target, and nothing else does."""

from __future__ import annotations

import pytest

from actors.errors.faults import DdlEvent
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import settles


def filtered(merging: Merging, *rules: dict[str, object]) -> None:
    names = {f"f{number}": rule for number, rule in enumerate(rules)}
    merging.more["filters"] = {
        name: {"schema-pattern": merging.database, **rule} for name, rule in names.items()
    }
    merging.instance["filter-rules"] = list(names)


def on_target(merging: Merging, sql: str) -> list[tuple[object, ...]]:
    return sorted(merging.on(merging.target, sql))


async def arrives(merging: Merging, sql: str, expected: list[tuple[object, ...]]) -> None:
    """With coordination, rows behind a change arrive after their source was read again."""
    await settles(lambda: on_target(merging, sql), expected)


@pytest.mark.parametrize("source", ["mariadb_source", "mysql_source"], indirect=True)
async def test_kinds_of_rows_are_left_out_by_table(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v INT)", shards=2)
    merging.create("y", "(id INT PRIMARY KEY, v INT)")
    filtered(
        merging,
        {"table-pattern": "x_*", "events": ["delete"], "action": "Ignore"},
        {"table-pattern": "x_2", "events": ["Insert", "delete"], "action": "Do"},
    )
    async with merging.running() as generation:
        merging.do(
            *(f"INSERT INTO {t} VALUES ({n}, 0)" for n, t in enumerate(("x_1", "x_2", "y_1"))),
            *(f"UPDATE {t} SET v = 1" for t in ("x_1", "x_2", "y_1")),
            *(f"DELETE FROM {t}" for t in ("x_1", "x_2", "y_1")),
            "INSERT INTO y_1 VALUES (9, 9)",
        )
        await merging.caught_up(generation)
    assert on_target(merging, "SELECT * FROM x") == [(0, 1), (1, 0)]
    assert on_target(merging, "SELECT * FROM y") == [(9, 9)]


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_statements_are_left_out_and_rows_go_on(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY, v INT, c INT)", shards=2)
    filtered(
        merging,
        {"events": ["drop index", "drop column", "truncate table"], "action": "Ignore"},
        {"sql-pattern": [r"^create\s+index"], "action": "Ignore"},
    )
    changes = ("DROP COLUMN c", "ADD COLUMN d INT")
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 1)", "INSERT INTO x_2 VALUES (2, 2, 2)")
        # One shard alone: nobody waits for the other.
        merging.do("CREATE INDEX i ON x_1 (v)", "DROP INDEX i ON x_1")
        merging.do(f"ALTER TABLE x_1 {changes[0]}")
        merging.do("INSERT INTO x_1 VALUES (3, 3)", "INSERT INTO x_2 VALUES (4, 4, 4)")
        await merging.caught_up(generation)
        expected: list[tuple[object, ...]] = [(1, 1, 1), (2, 2, 2), (3, 3, None), (4, 4, 4)]
        assert on_target(merging, "SELECT * FROM x") == expected
        for shard in ("x_1", "x_2"):
            merging.do(f"ALTER TABLE {shard} {changes[1]}")
        merging.do("INSERT INTO x_1 VALUES (5, 5, 50)", "INSERT INTO x_2 VALUES (6, 6, 6, 60)")
        merging.do("TRUNCATE x_1")
        behind = "SELECT * FROM x WHERE id > 4"
        expected = [(5, 5, None, 50), (6, 6, 6, 60)]
        await arrives(merging, behind, expected)
    async with merging.running():
        merging.do("INSERT INTO x_1 VALUES (7, 7, 70)")
        await arrives(merging, behind, [*expected, (7, 7, None, 70)])
    assert on_target(merging, "SELECT id FROM x WHERE id < 4") == [(1,), (2,), (3,)]
    assert merging.on(merging.target, "SHOW INDEX FROM x WHERE Key_name = 'i'") == ()


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
async def test_statements_are_left_out_by_what_the_table_was_before(
    merging: Merging, mode: str
) -> None:
    merging.more["shard-mode"] = mode
    merging.create(
        "x", "(id INT PRIMARY KEY, v VARCHAR(20), UNIQUE KEY u (v), KEY k (v))", shards=2
    )
    filtered(merging, {"events": ["value range decrease", "drop unique key"], "action": "Ignore"})
    async with merging.running() as generation:
        # One shard alone: nobody waits for the other.
        merging.do("ALTER TABLE x_1 MODIFY v VARCHAR(10)", "DROP INDEX u ON x_1")
        merging.do("INSERT INTO x_1 VALUES (1, 'a')", "INSERT INTO x_2 VALUES (2, 'b')")
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT * FROM x") == [(1, "a"), (2, "b")]
        for shard in ("x_1", "x_2"):
            merging.do(f"ALTER TABLE {shard} ADD w INT, DROP INDEX k")
        rows = ("x_1 VALUES (3, 'c', 3)", "x_2 VALUES (4, 'd', 4)")
        merging.do(*(f"INSERT INTO {row}" for row in rows))
        await arrives(merging, "SELECT id FROM x", [(1,), (2,), (3,), (4,)])
    (shown,) = merging.on(merging.target, "SHOW CREATE TABLE x")
    assert "`v` varchar(20)" in str(shown)
    assert "`u`" in str(shown)
    assert "`k`" not in str(shown)


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize("mode", ["", "pessimistic", "optimistic"])
async def test_incompatible_changes_are_an_error(merging: Merging, mode: str) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    filtered(merging, {"events": ["incompatible ddl changes"], "action": "Error"})
    wider, narrower = (f"ALTER TABLE x_1 MODIFY v {kind}" for kind in ("BIGINT", "SMALLINT"))
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("ALTER TABLE x_1 ADD w INT", wider, "INSERT INTO x_1 VALUES (1, 1, 1)")
    merging.do(narrower, "INSERT INTO x_1 VALUES (2, 2, 2)")
    fault = await merging.fault()
    assert fault.event == "ddl.forbidden"
    assert narrower in fault.message
    await override(merging, fault, OverrideAction.REPLACE, narrower)
    async with merging.running():
        await arrives(merging, "SELECT id FROM x", [(1,), (2,)])
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
async def test_a_statement_that_can_not_be_carried_over_is_left_out(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    text = r"^insert\s+into\s+x_1"
    filtered(merging, {"schema-pattern": "*", "sql-pattern": [text], "action": "Ignore"})
    async with merging.running() as generation:
        merging.do("SET binlog_format=STATEMENT", "INSERT INTO x_1 VALUES (1, 1)")
        merging.do("INSERT INTO x_1 VALUES (2, 2)")
        await merging.caught_up(generation)
    assert on_target(merging, "SELECT * FROM x") == [(2, 2)]


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.parametrize("mode", ["", "pessimistic"])
@pytest.mark.remedy("ddl.forbidden", "reload")
async def test_an_error_is_a_fault_until_the_rule_or_the_statement_is_changed(
    merging: Merging, mode: str
) -> None:
    merging.more["shard-mode"] = mode
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    filtered(merging, {"events": ["alter table"], "action": "Error"})
    async with merging.running() as generation:
        await merging.caught_up(generation)
    merging.do("INSERT INTO x_1 VALUES (1, 1)", "ALTER TABLE x_1 ADD w INT")
    merging.do("INSERT INTO x_1 VALUES (2, 2, 2)")
    fault = await merging.fault()
    assert fault.event == "ddl.forbidden"
    assert "`f0`" in fault.message
    assert "ALTER TABLE x_1 ADD w INT" in fault.message
    assert isinstance(fault.about, DdlEvent)
    assert set(fault.about.actions) == {"skip", "replace"}
    assert on_target(merging, "SELECT * FROM x") == [(1, 1)], "what stood before it is applied"
    filtered(merging, {"events": ["drop table"], "action": "Error"})
    merging.changed(mode="incremental")
    async with merging.running():
        await arrives(merging, "SELECT id FROM x", [(1,), (2,)])
    assert merging.differences() == {}


@pytest.mark.parametrize("source", ["mariadb_source"], indirect=True)
@pytest.mark.remedy("ddl.forbidden", "replace", "skip")
async def test_forbidden_statements_are_skipped_or_replaced(merging: Merging) -> None:
    merging.create("x", "(id INT PRIMARY KEY, v INT)")
    filtered(merging, {"events": ["alter table"], "action": "Error"})
    async with merging.running() as generation:
        await merging.caught_up(generation)
    add = "ALTER TABLE x_1 ADD w INT"
    merging.do("INSERT INTO x_1 VALUES (1, 1)", "ALTER TABLE x_1 ADD KEY (v)")
    merging.do("UPDATE x_1 SET v = 2", add, "INSERT INTO x_1 VALUES (2, 2, 2)")
    for action, statements in ((OverrideAction.SKIP, ()), (OverrideAction.REPLACE, (add,))):
        fault = await merging.fault()
        assert fault.event == "ddl.forbidden"
        await override(merging, fault, action, *statements)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (3, 3, 3)")
        await merging.check(generation)
    assert len(merging.on(merging.target, "SHOW INDEX FROM x")) == 1
