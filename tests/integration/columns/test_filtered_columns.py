"""A statement that changes what an expression filter says of rows is a fault, and can be mended."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import pytest

from actors.control.arguments import OnChangedRules
from actors.errors.faults import of_target
from replicator.mysql.names import TableName
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.integration.columns.test_expression_filters import arrives, on_target, rules
from tests.support.tasks.copying import copied_some, slow_copy
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE, fault_of

COLUMNS = """(id INT PRIMARY KEY, a INT, b INT NOT NULL,
    name VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_swedish_ci)"""
MODES = pytest.mark.parametrize(
    "mode",
    [
        "",
        pytest.param("pessimistic", marks=pytest.mark.slow),
        pytest.param("optimistic", marks=pytest.mark.slow),
    ],
)


def filtered(merging: Merging, expression: str) -> None:
    merging.create("x", COLUMNS, shards=2)
    rules(merging, "x_1", {"insert-value-expr": expression})


@MODES
@pytest.mark.parametrize(
    ("expression", "statement"),
    [
        ("a > 5", "MODIFY a VARCHAR(9)"),
        ("a > 5", "CHANGE a a TINYINT"),
        ("a > 5", "DROP a, ADD a INT DEFAULT 9"),
        ("a > 5", "CHANGE a b INT, CHANGE b a INT NOT NULL"),
        ("name = 'A'", "MODIFY name VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin"),
        ("name = 'A'", "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"),
    ],
)
async def test_a_column_of_a_filter_is_converted(
    merging_from: Callable[..., Merging],
    mariadb_source: DatabaseServer,
    mode: str,
    expression: str,
    statement: str,
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    filtered(merging, expression)
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 7, 'a'), (2, 9, 1, 'b')")
        await merging.caught_up(generation)
    merging.do(f"ALTER TABLE x_1 {statement}")
    found = await merging.fault()
    assert found.event == "ddl.filtered-column"
    assert expression in found.message
    assert found.scope is not None
    assert [str(name) for name in found.scope.targets] == [f"{merging.database}.x"]


@MODES
async def test_what_can_change_no_answer_goes_on(
    merging_from: Callable[..., Merging], mysql_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mysql_source)
    merging.more["shard-mode"] = mode
    filtered(merging, "a > 5 AND name = 'a'")
    changes = (
        "MODIFY a BIGINT DEFAULT 7",
        "MODIFY name VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
        "MODIFY b VARCHAR(9)",
        "ALTER a SET DEFAULT 8",
        "ADD KEY (a)",
    )
    async with merging.running() as generation:
        for number, change in enumerate(changes):
            merging.do(*(f"ALTER TABLE {shard} {change}" for shard in ("x_1", "x_2")))
            merging.do(f"INSERT INTO x_1 VALUES ({2 * number}, 9, 1, 'A')")
            merging.do(f"INSERT INTO x_1 VALUES ({2 * number + 1}, 1, 1, 'A')")
        wanted: list[tuple[object, ...]] = [(2 * n + 1,) for n in range(len(changes))]
        await arrives(merging, "SELECT id FROM x", wanted)
        await merging.caught_up(generation)


@MODES
@pytest.mark.remedy("ddl.filtered-column", "replace")
async def test_the_operator_answers_for_the_rows(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    filtered(merging, "a > 5")
    change = "MODIFY a TINYINT"
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 7, 'a'), (2, 300, 1, 'b')")
        await merging.caught_up(generation)
    merging.do("SET sql_mode=''", "UPDATE x_1 SET b = 8 WHERE id = 1", f"ALTER TABLE x_1 {change}")
    merging.do(f"ALTER TABLE x_2 {change}", "INSERT INTO x_1 VALUES (3, 4, 1, 'c')")
    found = await merging.fault()
    assert found.event == "ddl.filtered-column"
    await override(
        merging, found, OverrideAction.REPLACE, f"ALTER TABLE {merging.database}.x_1 {change}"
    )
    async with merging.running() as generation:
        await arrives(merging, "SELECT id, a, b FROM x", [(1, 1, 8), (3, 4, 1)])
        await merging.caught_up(generation)


@pytest.mark.remedy("ddl.filtered-column", "skip")
@pytest.mark.parametrize("mode", ["", "pessimistic"])
async def test_a_statement_that_an_event_filter_leaves_out(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.more["shard-mode"] = mode
    filtered(merging, "a > 5")
    rule = {"schema-pattern": "*", "table-pattern": "x_*", "events": ["alter table"]}
    merging.more["filters"] = {"keep": {**rule, "action": "Ignore"}}
    merging.instance["filter-rules"] = ["keep"]
    async with merging.running() as generation:
        merging.do("INSERT INTO x_1 VALUES (1, 1, 7, 'a'), (2, 300, 1, 'b')")
        await merging.caught_up(generation)
    merging.do("SET sql_mode=''", "ALTER TABLE x_1 ADD KEY (b)", "ALTER TABLE x_1 MODIFY a TINYINT")
    merging.do("INSERT INTO x_1 VALUES (3, 4, 1, 'c'), (4, 6, 1, 'd')")
    found = await merging.fault()
    assert found.event == "ddl.filtered-column"
    assert "a (int(11), now tinyint(4))" in found.message
    # What others wait for is not what is left out.
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        await arrives(merging, "SELECT id, a FROM x", [(1, 1), (3, 4)])
        await merging.caught_up(generation)
        assert merging.on(merging.target, "SHOW COLUMNS FROM x LIKE 'a'")[0][1] == "int(11)"
        running = generation.running
        assert running is not None
        assert not running.coordination.open_locks()


@MODES
@pytest.mark.remedy("ddl.filtered-column", "reload")
async def test_the_target_is_copied_anew(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer, mode: str
) -> None:
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.more["shard-mode"] = mode
    filtered(merging, "a > 5")
    merging.do("INSERT INTO x_1 VALUES (1, 1, 7, 'a'), (2, 9, 1, 'b')")
    async with merging.running() as generation:
        await merging.copied(generation)
        await merging.caught_up(generation)
        assert on_target(merging, "SELECT id FROM x") == [(1,)]
    changes = "DROP a", "ADD a INT AFTER id"
    merging.do(*(f"ALTER TABLE {shard} {change}" for shard in ("x_1", "x_2") for change in changes))
    merging.do("UPDATE x_1 SET a = 9 WHERE id = 1", "INSERT INTO x_1 VALUES (3, 4, 1, 'c')")
    merging.do("ALTER TABLE x_1 MODIFY a SMALLINT", "ALTER TABLE x_2 MODIFY a SMALLINT")
    found = await merging.fault()
    assert found.event == "ddl.filtered-column"
    assert any("--on-changed-rules recopy" in way for way in found.remedies)
    rules(merging, "x_1", {"insert-value-expr": "(a > 5)"})
    merging.on_changed_rules = OnChangedRules.RECOPY
    merging.changed(mode="all")
    async with merging.running() as generation:
        await arrives(merging, "SELECT id FROM x", [(2,), (3,)])
        await merging.caught_up(generation)
        merging.do("INSERT INTO x_1 VALUES (4, 9, 1, 'd'), (5, 5, 1, 'e')")
        await arrives(merging, "SELECT id FROM x", [(2,), (3,), (5,)])


async def test_the_target_is_copied_anew_while_another_holds_the_position_back(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """The statement is read again before the place from which the shard was copied."""
    merging = merging_from(mariadb_source)
    merging.mode = "all"
    merging.create("z", "(id INT PRIMARY KEY)")
    filtered(merging, "a > 5")
    merging.do("INSERT INTO x_1 VALUES (1, 1, 7, 'a'), (2, 300, 1, 'b')")
    async with merging.running() as generation:
        await merging.copied(generation)
    merging.blocked = of_target(TableName(merging.database, "z"))
    merging.do("INSERT INTO z_1 VALUES (1)", "INSERT INTO x_1 VALUES (3, 9, 1, 'c')")
    merging.do("SET sql_mode=''", "ALTER TABLE x_1 MODIFY a TINYINT")
    assert (await merging.fault()).event == "ddl.filtered-column"
    rules(merging, "x_1", {"insert-value-expr": "(a > 5)"})
    merging.on_changed_rules = OnChangedRules.RECOPY
    merging.changed(mode="all")
    async with merging.running() as generation:
        with anyio.fail_after(PATIENCE):
            while generation.copy is None or generation.copy.progress.figures().state != "finished":
                await anyio.sleep(LOOK_SECONDS)
        merging.do("INSERT INTO x_1 VALUES (4, 2, 1, 'd'), (5, 9, 1, 'e')")
        await arrives(merging, "SELECT id FROM x", [(1,), (4,)])


async def test_rows_of_a_deferred_shard_were_filtered_before_the_statement(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """Chunks that were copied before it have rows that the filter leaves out now."""
    merging = slow_copy(merging_from(mariadb_source), 200)
    merging.create("x", "(id INT PRIMARY KEY, a INT)", shards=1)
    rules(merging, "x_1", {"insert-value-expr": "a > 5"})
    merging.do("INSERT INTO x_1 SELECT seq, 1 FROM seq_1_to_300")

    async def change() -> None:
        async with merging.running() as generation:
            await copied_some(generation, 2)
            merging.do("ALTER TABLE x_1 DROP a, ADD a INT DEFAULT 9")
            await anyio.sleep_forever()

    with anyio.fail_after(PATIENCE):
        assert (await fault_of(change())).event == "ddl.filtered-column"
    rules(merging, "x_1", {"insert-value-expr": "(a > 5)"})
    merging.on_changed_rules = OnChangedRules.RECOPY
    merging.changed(mode="all")
    async with merging.running() as generation:
        await merging.copied(generation)
        merging.do("INSERT INTO x_1 VALUES (1000, 2), (1001, 7)")
        await arrives(merging, "SELECT id FROM x", [(1000,)])
