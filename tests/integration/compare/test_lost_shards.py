"""Rows of shards that went away, can't be read or are not replicated any more are never changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from actors.comparing.comparing import CompareOptions, TargetComparer
from actors.reading import purge_watch
from actors.task.startup.check_scope import task_to_check
from replicator.checks.run.all_checks import run_checks
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.row_owners import COLUMNS, NOW, QUIET, Owners
from tests.support.tasks.running import copied, settles
from tests.support.tasks.task_files import start_of

Logs = list[Any]


@pytest.fixture
def owners(
    mariadb_source: DatabaseServer,
    mariadb_target: DatabaseServer,
    spark: SparkContext,
    database_name: str,
    tmp_path: Path,
) -> Iterator[Owners]:
    made = Owners(database_name, mariadb_source, mariadb_target, spark, tmp_path)
    yield made
    made.clean()


async def merged(owners: Owners, *more: str) -> None:
    """Two schemas are merged; afterwards the target lacks a row of the first one."""
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1),(12,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
    owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=1", *more)


def lose_the_route(owners: Owners) -> None:
    owners.pattern = f"{owners.db}_1"


def rename_away(owners: Owners) -> None:
    owners.source.execute(QUIET, f"RENAME TABLE {owners.db}_2.t TO {owners.db}_2.old")


def rename_out_of_sight(owners: Owners) -> None:
    """To a schema that the rules leave out and that the account can't see."""
    owners.source.execute(
        QUIET,
        f"CREATE DATABASE {owners.db}_hidden",
        f"RENAME TABLE {owners.db}_2.t TO {owners.db}_hidden.t",
    )


def replace_by_a_view(owners: Owners) -> None:
    rename_away(owners)
    owners.source.execute(QUIET, f"CREATE VIEW {owners.db}_2.t AS SELECT * FROM {owners.db}_2.old")


def drop_schema(owners: Owners) -> None:
    owners.source.execute(QUIET, f"DROP DATABASE {owners.db}_2")
    owners.made.remove(2)


WAYS = [lose_the_route, rename_away, rename_out_of_sight, replace_by_a_view, drop_schema]


@pytest.mark.parametrize(
    "way", [WAYS[0], *(pytest.param(w, marks=pytest.mark.slow) for w in WAYS[1:])]
)
async def test_rows_of_a_shard_that_is_gone_stay(owners: Owners, way: Any) -> None:
    await merged(owners, f"DELETE FROM {owners.db}.t WHERE id=11")
    way(owners)
    try:
        result = await owners.compared()
    finally:
        owners.source.execute(QUIET, f"DROP DATABASE IF EXISTS {owners.db}_hidden")
    assert (result.failure, result.retired, result.extra) == ("", 1, 0), result
    assert (result.missing, result.repaired) == (1, 1), result
    assert owners.rows() == [1, 2, 12]


@pytest.mark.slow
async def test_rows_of_sources_that_are_away_or_out_of_the_task_file_stay(
    owners: Owners, mysql_source: DatabaseServer
) -> None:
    name = f"{owners.db}_3"
    mysql_source.execute(
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {name}.t VALUES (31,1)",
    )
    owners.others["b"] = mysql_source
    try:
        owners.schema(1, "(1,1),(2,2)")
        async with owners.running() as generation:
            await copied(generation)
            await settles(lambda: owners.rows(), [1, 2, 31])
        owners.target.execute(f"INSERT INTO {owners.db}.t VALUES (9,9)")
        owners.place = {"port": 1}
        result = await owners.compared()
        assert "can't be read" in result.failure, result
        assert "a: " in result.failure
        assert (result.extra, result.repaired) == (0, 0)
        assert owners.rows() == [1, 2, 9, 31]
        owners.place = {}
        del owners.others["b"]
        result = await owners.compared()
        assert (result.failure, result.extra, result.retired) == ("", 0, 2), result
        assert any("not in the task file" in remark for remark in result.remarks)
        assert owners.rows() == [1, 2, 9, 31]
        owners.others["b"] = mysql_source
        result = await owners.compared()
        assert (result.extra, result.repaired, result.retired) == (1, 1, 0), result
        assert owners.rows() == [1, 2, 31]
    finally:
        mysql_source.execute(f"DROP DATABASE {name}")


@pytest.mark.slow
async def test_a_condition_and_a_repair_file(owners: Owners) -> None:
    """A repair file has no statement for rows of shards that are gone."""
    await merged(owners, f"UPDATE {owners.db}.t SET v=9 WHERE id=2")
    drop_schema(owners)
    result = await owners.compared(CompareOptions(where="id <> 12"))
    assert (result.failure, result.retired, result.missing, result.different) == ("", 1, 1, 1)
    owners.target.execute(
        *filter(None, (owners.folder / "repair.sql").read_text("ascii").split(";\n"))
    )
    assert owners.rows() == [1, 2, 11, 12]
    result = await owners.compared(CompareOptions(where="id = 12"))
    assert (result.retired, result.differing) == (1, 0), result
    owners.source.execute(QUIET, f"DROP DATABASE {owners.db}_1")
    owners.made.remove(1)
    result = await owners.compared(CompareOptions(where="id = 12"))
    assert (result.failure, result.retired, result.differing) == ("", 1, 0), result
    assert owners.rows() == [1, 2, 11, 12]


@pytest.mark.slow
async def test_a_comparison_that_goes_on_knows_the_shards_of_now(owners: Owners) -> None:
    """It was broken off, and meanwhile a shard can't be read any more, or is gone."""
    await merged(owners)
    resumed = CompareOptions(chunk_rows=1, repair_now=True, resume=True)
    result = await owners.compared(resumed)
    assert (result.repaired, result.extra) == (1, 0), result
    owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=2")
    owners.revoke(2)
    result = await owners.compared(resumed)
    assert "GRANT SELECT" in result.failure
    assert owners.rows() == [1, 11, 12]
    drop_schema(owners)
    owners.grant(2)
    result = await owners.compared(resumed)
    assert (result.failure, result.retired, result.repaired) == ("", 2, 1), result
    assert owners.rows() == [1, 2, 11, 12]


@pytest.mark.slow
@pytest.mark.parametrize("keyless", [False, True], ids=["key", "no key"])
async def test_mapped_columns_tell_rows_of_a_shard_that_is_gone(
    owners: Owners, keyless: bool
) -> None:
    owners.more["column-mappings"] = {
        "bits": {
            "schema-pattern": f"{owners.db}_?",
            "table-pattern": "t",
            "expression": "partition id",
            "source-column": "id",
            "target-column": "id",
            "arguments": ["", owners.db, "", "_"],
        }
    }
    owners.instance["column-mapping-rules"] = ["bits"]
    columns = "(id BIGINT, v INT)" if keyless else "(id BIGINT PRIMARY KEY, v INT)"
    owners.schema(1, "(1,1),(2,2)", columns=columns)
    owners.schema(2, "(1,1),(2,2)", columns=columns)
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: len(owners.rows()), 4)
    drop_schema(owners)
    before = owners.rows()
    first = min(before)
    owners.source.execute(QUIET, f"DELETE FROM {owners.db}_1.t WHERE id=1")
    result = await owners.compared()
    assert (result.failure, result.retired, result.extra) == ("", 2, 1), result
    assert owners.rows() == [row for row in before if row != first]


@pytest.mark.slow
async def test_a_server_that_may_lack_what_the_task_has_applied_is_not_compared(
    owners: Owners, mariadb11_source: DatabaseServer
) -> None:
    owners.schema(1, "(1,1),(2,2)")
    async with owners.running() as generation:
        await copied(generation)
        owners.insert(1, "(3,3)")
        owners.source.execute(f"UPDATE {owners.db}_1.t SET v=5 WHERE id=1")
        await settles(lambda: owners.rows(), [1, 2, 3])
    name, other = f"{owners.db}_1", mariadb11_source
    other.execute(
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t (id INT PRIMARY KEY, v INT)",
        f"INSERT INTO {name}.t VALUES (1,1),(2,2)",
    )
    try:
        owners.place = {"port": other.port, "user": other.user, "password": other.password}
        result = await owners.compared()
    finally:
        other.execute(f"DROP DATABASE {name}")
    assert "is another server" in result.failure, result
    assert (result.incomplete, result.repaired) == (True, 0)
    owners.place = {}
    checkpoint = f"{owners.db}_meta.{owners.db}_checkpoint"
    owners.target.execute(f"UPDATE {checkpoint} SET binlog_offset = binlog_offset + 1000000")
    result = await owners.compared()
    assert "before" in result.failure, result
    found = owners.target.execute(f"SELECT id, v FROM {owners.db}.t ORDER BY id")
    assert found == ((1, 5), (2, 2), (3, 3))
    owners.target.execute(f"UPDATE {checkpoint} SET binlog_offset = binlog_offset - 1000000")
    result = await owners.compared()
    assert (result.failure, result.differing) == ("", 0), result


@pytest.mark.slow
@pytest.mark.parametrize("copied_before", [False, True], ids=["loaded", "copied by an earlier run"])
async def test_rows_of_a_shard_that_was_gone_before_an_incremental_task_stay(
    owners: Owners, copied_before: bool
) -> None:
    """The account sees everything, so no shard can be hidden from it."""
    owners.place = {"user": owners.source.user, "password": owners.source.password}
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1),(12,2)")
    if copied_before:
        async with owners.running() as generation:
            await copied(generation)
            await settles(lambda: owners.rows(), [1, 2, 11, 12])
        owners.target.execute(f"DROP DATABASE {owners.db}_meta")
    else:
        owners.target.execute(
            f"CREATE TABLE {owners.db}.t {COLUMNS}",
            f"INSERT INTO {owners.db}.t VALUES (1,1),(2,2),(11,1),(12,2)",
        )
    owners.drop(2)
    owners.more["task-mode"] = "incremental"
    owners.instance["meta"] = start_of(owners.source)
    async with owners.running():
        owners.insert(1, "(3,3)")
        await settles(lambda: owners.rows(), [1, 2, 3, 11, 12])
    owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=1")
    result = await owners.compared()
    assert (result.failure, result.extra, result.missing) == ("", 2, 1), result
    assert (result.repaired, owners.rows()) == (1, [1, 2, 3, 11, 12])
    assert any("the task has made no full copy" in text for text in result.remarks)
    assert "DELETE" not in (owners.folder / "repair.sql").read_text("ascii")


def ignored(*events: str) -> dict[str, Any]:
    """A filter of the first schema."""
    return {"schema-pattern": "{db}_1", "table-pattern": "t", "events": events, "action": "Ignore"}


FILTERS = [
    {"filters": ignored("delete")},
    {"expression-filters": {"schema": "{db}_1", "table": "t", "delete-value-expr": "v = 1"}},
    {"filters": ignored("truncate table")},
]


@pytest.mark.slow
@pytest.mark.parametrize("rule", FILTERS, ids=["events", "expression", "statement"])
async def test_rows_whose_deletion_a_filter_leaves_out_stay(
    owners: Owners, rule: dict[str, Any]
) -> None:
    [(key, words)] = rule.items()
    named = {n: w.format(db=owners.db) if isinstance(w, str) else w for n, w in words.items()}
    owners.more["filters" if key == "filters" else "expression-filter"] = {"keep": named}
    owners.instance["filter-rules" if key == "filters" else key] = ["keep"]
    owners.schema(1, "(1,1),(2,1)")
    owners.schema(2, "(11,1),(12,2)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 2, 11, 12])
        emptied = named.get("events") == ("truncate table",)
        name = f"{owners.db}_1.t"
        owners.source.execute(f"TRUNCATE {name}" if emptied else f"DELETE FROM {name}")
        owners.insert(1, "(3,3)")
        await settles(lambda: owners.rows(), [1, 2, 3, 11, 12])
    owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=12")
    result = await owners.compared()
    assert (result.failure, result.extra, result.missing) == ("", 2, 1), result
    assert (result.repaired, owners.rows()) == (1, [1, 2, 3, 11, 12])
    assert any("filters of the task file leave out deletions" in text for text in result.remarks)
    assert "DELETE" not in (owners.folder / "repair.sql").read_text("ascii")


async def test_older_values_that_a_filter_keeps_stay(owners: Owners) -> None:
    words = ignored("update")
    owners.more["filters"] = {"keep": {**words, "schema-pattern": f"{owners.db}_1"}}
    owners.instance["filter-rules"] = ["keep"]
    owners.schema(1, "(1,1),(2,1)")
    async with owners.running() as generation:
        await copied(generation)
        owners.source.execute(f"UPDATE {owners.db}_1.t SET v = 99 WHERE id = 1")
        owners.insert(1, "(3,3)")
        await settles(lambda: owners.rows(), [1, 2, 3])
    result = await owners.compared()
    assert (result.failure, result.different, result.repaired) == ("", 1, 0), result
    assert owners.target.execute(f"SELECT v FROM {owners.db}.t WHERE id = 1") == ((1,),)
    assert any("filters of the task file leave out changes" in text for text in result.remarks)


async def test_without_saved_state_no_repair_deletes_a_row(owners: Owners) -> None:
    """A task that copies again finds the rows of the shard that is gone, and saves that."""
    owners.place = {"user": owners.source.user, "password": owners.source.password}
    owners.schema(1, "(1,1)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 11])
    owners.drop(2)
    name = f"{owners.db}.t"
    owners.target.execute(f"DROP DATABASE {owners.db}_meta", f"DELETE FROM {name} WHERE id=1")
    result = await owners.compared()
    assert (result.failure, result.unowned, result.extra) == ("", 1, 0), result
    assert (result.missing, result.repaired, result.incomplete) == (1, 1, True), result
    assert ("unowned", "11") in [(example.kind, example.key) for example in result.examples]
    assert any("has not saved which shards" in text for text in result.remarks)
    assert "DELETE" not in (owners.folder / "repair.sql").read_text("ascii")
    owners.target.execute(f"DELETE FROM {name} WHERE id=1")
    async with owners.running() as generation:
        await copied(generation)
        owners.insert(1, "(2,1)")
        await settles(lambda: owners.rows(), [1, 2, 11])
    result = await owners.compared()
    assert (result.failure, result.extra, result.repaired) == ("", 1, 0), result
    assert any("had rows before the task wrote" in text for text in result.remarks)
    assert owners.rows() == [1, 2, 11]


@pytest.mark.slow
async def test_rows_without_a_key_of_a_shard_that_is_gone(owners: Owners) -> None:
    owners.schema(1, "(1,1),(1,1),(2,2)", columns="(id INT, v INT)")
    owners.schema(2, "(1,1),(11,1)", columns="(id INT, v INT)")
    async with owners.running() as generation:
        await copied(generation)
        await settles(lambda: owners.rows(), [1, 1, 1, 2, 11])
        owners.drop(2)
        owners.insert(1, "(3,3)")
        await settles(lambda: owners.rows(), [1, 1, 1, 2, 3, 11])
    owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=2")
    result = await owners.compared()
    assert (result.failure, result.retired, result.missing) == ("", 2, 1), result
    assert owners.rows() == [1, 1, 1, 2, 3, 11]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["pessimistic", "optimistic"])
async def test_coordinated_modes(owners: Owners, mode: str) -> None:
    """A shard that the account can't read, one that is dropped, and one that comes back."""
    owners.more["shard-mode"] = mode
    owners.schema(1, "(1,1),(2,2)")
    owners.schema(2, "(11,1)")
    async with owners.running() as generation:
        await copied(generation)
        owners.schema(3, "(31,1)", granted=False)
        await settles(lambda: owners.rows(), [1, 2, 11, 31])
        result = await owners.compared()
        assert "GRANT SELECT" in result.failure, result
        assert result.repaired == 0
        owners.drop(3)
        owners.drop(2)
        owners.schema(2, "(21,1)")
        await settles(lambda: owners.rows(), [1, 2, 11, 21, 31])
        owners.target.execute(f"DELETE FROM {owners.db}.t WHERE id=1")
        result = await owners.compared()
        # Nobody can tell whether a table is there that the account may not look at.
        assert "GRANT SELECT" in result.failure, result
        owners.grant(3)
        result = await owners.compared()
    assert (result.failure, result.retired, result.missing) == ("", 2, 1), result
    assert owners.rows() == [1, 2, 11, 21, 31]


@pytest.mark.parametrize(
    "dropped", [pytest.param([2], id="one"), pytest.param([2, 3], marks=pytest.mark.slow, id="two")]
)
async def test_shards_that_are_dropped_without_coordination(
    owners: Owners, dropped: list[int]
) -> None:
    """While other shards are there their rows stay; the target goes with the last shard."""
    for number in (1, 2, 3):
        owners.schema(number, f"({number}1,1),({number}2,2)")
    async with owners.running() as generation:
        await copied(generation)
        for number in dropped:
            owners.insert(number, f"({number}3,3)")
            owners.source.execute(f"DROP TABLE {owners.db}_{number}.t")
        owners.insert(1, "(13,3)")
        rows = [11, 12, 13, 21, 22, *(n * 10 + 3 for n in dropped), 31, 32]
        await settles(lambda: owners.rows(), sorted(rows))
        for created in (False, True):
            if created:
                owners.source.execute(f"CREATE TABLE {owners.db}_2.t {COLUMNS}")
                owners.insert(2, "(24,4)")
                rows.append(24)
                await settles(lambda: owners.rows(), sorted(rows))
            name = f"{owners.db}.t"
            owners.target.execute(
                f"DELETE FROM {name} WHERE id=12", f"UPDATE {name} SET v=9 WHERE id=13"
            )
            result = await owners.compared()
            assert (result.failure, result.extra, result.retired) == ("", 0, 3 * len(dropped))
            assert (result.missing, result.different, result.repaired) == (1, 1, 2), result
            assert owners.rows() == sorted(rows)
        drops = [f"DROP TABLE IF EXISTS {owners.db}_{number}.t" for number in (1, 2, 3)]
        owners.source.execute(*drops)
        await settles(lambda: owners.rows(), [])
        owners.source.execute(f"CREATE TABLE {owners.db}_3.t {COLUMNS}")
        owners.insert(3, "(34,4)")
        await settles(lambda: owners.rows(), [34])
        owners.target.execute(f"INSERT INTO {owners.db}.t VALUES (99,1)")
        result = await owners.compared()
        # All rows of former shards went with the former target.
        assert (result.failure, result.extra, result.retired, result.repaired) == ("", 1, 0, 1)
        assert owners.rows() == [34]


@pytest.mark.slow
async def test_privileges_that_are_lost_while_a_comparison_runs(owners: Owners) -> None:
    await merged(owners)
    result = await owners.compared(begun=lambda: owners.revoke(2))
    assert result.failure, result
    assert (result.extra, result.repaired) == (0, 0), result
    assert owners.rows() == [2, 11, 12]


async def test_a_shard_that_can_not_be_read_is_logged_and_checked(
    owners: Owners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.2)
    owners.schema(1, "(1,1)")

    def told(logs: Logs) -> list[Any]:
        return [one for one in logs if one["event"] == "shard.unreadable"]

    with capture_logs() as logs:
        async with owners.running() as generation:
            await copied(generation)
            owners.schema(2, "(11,1)", granted=False)
            await settles(lambda: owners.rows(), [1, 11])
            with anyio.fail_after(30):
                while not told(logs):
                    await anyio.sleep(0.1)
            owners.insert(2, "(12,1)")
            await settles(lambda: owners.rows(), [1, 11, 12])
            # A privilege that the account loses later is reported, too, each time once.
            owners.grant(2)
            await settles(lambda: generation.counts.unreadable.status(), ())
            owners.revoke(2)
            await settles(lambda: len(told(logs)), 2)
            owners.revoke(1)
            await settles(lambda: len(told(logs)), 3)
            shown = [shard.shard for shard in generation.counts.unreadable.status()]
            assert shown == [f"{owners.db}_1.t", f"{owners.db}_2.t"]
            owners.grant(1)
            await settles(lambda: len(generation.counts.unreadable.status()), 1)
    assert len(told(logs)) == 3
    record = told(logs)[0]
    assert record["shard"] == f"{owners.db}_2.t"
    assert "GRANT SELECT ON" in record["remedy"]
    found = await checked(owners)
    assert [(one.state, f"{owners.db}_2.t" in one.finding) for one in found] == [("warning", True)]
    owners.source.execute(QUIET, *(r for r in found[0].remedies if r.startswith("GRANT")))
    assert [one.state for one in await checked(owners)] in ([], ["passed"])


async def checked(owners: Owners) -> list[Any]:
    results = await run_checks(await task_to_check(owners.task), frozenset())
    return [one for one in results if one.name == "followed_shards"]


@pytest.mark.slow
async def test_the_validation_says_that_it_can_not_look_in_a_shard(owners: Owners) -> None:
    """A row that has moved to a shard that the account can't read is no error."""
    owners.more["validators"] = {
        "quick": {
            "mode": "full",
            "validate-interval": "500ms",
            "check-interval": "300ms",
            "row-error-delay": "1s",
        }
    }
    owners.instance["validator-config-name"] = "quick"
    owners.schema(1, "(1,1),(2,2)")
    async with owners.running() as generation:
        await copied(generation)
        backlog = generation.counts.validation
        owners.schema(2, granted=False)
        name = owners.db
        owners.source.execute(
            f"INSERT INTO {name}_1.t VALUES (5,5)",
            f"DELETE FROM {name}_1.t WHERE id=5",
            f"INSERT INTO {name}_2.t VALUES (5,5)",
        )
        await settles(lambda: owners.rows(), [1, 2, 5])
        with anyio.fail_after(60):
            while not backlog.left_out:
                await anyio.sleep(0.1)
        [reason] = backlog.left_out.values()
        assert f"{name}_2.t can't be read" in reason
        assert "GRANT SELECT ON" in reason
        assert not sum(backlog.errors.values())


@pytest.mark.parametrize(
    "mode", ["pessimistic", *(pytest.param(m, marks=pytest.mark.slow) for m in ("", "optimistic"))]
)
@pytest.mark.parametrize(
    "removes", ["TRUNCATE TABLE", pytest.param("ALTER TABLE", marks=pytest.mark.slow)]
)
async def test_no_statement_removes_rows_of_a_source_that_is_out_of_the_task_file(
    owners: Owners, mysql_source: DatabaseServer, mode: str, removes: str
) -> None:
    """Its shards may still be there. They count again when the source is back."""
    parts = " PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN MAXVALUE)"
    columns = COLUMNS + (parts if removes == "ALTER TABLE" else "")
    statement = f"{removes} {{}}.t{' TRUNCATE PARTITION p' if columns != COLUMNS else ''}"
    owners.more["shard-mode"] = mode
    name = f"{owners.db}_3"
    mysql_source.execute(
        f"CREATE DATABASE {name}",
        f"CREATE TABLE {name}.t {columns}",
        f"INSERT INTO {name}.t VALUES (31,1)",
    )
    owners.others["b"] = mysql_source
    try:
        owners.schema(1, "(1,1),(2,2)", columns=columns)
        async with owners.running() as generation:
            await copied(generation)
            await settles(lambda: owners.rows(), [1, 2, 31])
        del owners.others["b"]
        async with owners.running() as generation:
            await copied(generation)
            owners.source.execute(statement.format(f"{owners.db}_1"))
            owners.insert(1, "(4,4)")

            def shown() -> list[bool]:
                assert generation.running is not None
                locks = generation.running.coordination.open_locks()
                return ["TRUNCATE" in lock.view.item.statements[0] for lock in locks]

            await settles(shown, [True])
            assert owners.rows() == [1, 2, 31]
        owners.others["b"] = mysql_source
        async with owners.running() as generation:
            await copied(generation)
            mysql_source.execute(statement.format(name), f"INSERT INTO {name}.t VALUES (32,1)")
            await settles(lambda: owners.rows(), [4, 32])
    finally:
        mysql_source.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize(
    "columns", [COLUMNS, pytest.param("(id INT, v INT)", marks=pytest.mark.slow)]
)
async def test_no_row_is_repaired_as_if_its_shard_still_lacked_a_column(
    owners: Owners, columns: str
) -> None:
    owners.schema(1, "(1,1)", columns=columns)
    owners.schema(2, "(11,1)", columns=columns)
    added = "ALTER TABLE {0}.t ADD c INT", "INSERT INTO {0}.t VALUES ({1}2,2,3)"
    async with owners.running() as generation:
        await copied(generation)
        owners.source.execute(*(text.format(f"{owners.db}_1", 1) for text in added))
        await settles(lambda: owners.rows(), [1, 11, 12])

        async def context() -> SparkContext:
            owners.source.execute(*(text.format(f"{owners.db}_2", 2) for text in added))
            await settles(lambda: owners.rows(), [1, 11, 12, 22])
            return owners.spark

        [result] = await TargetComparer(owners.task, NOW, context).run()
    assert (result.failure, result.differing, result.repaired) == ("", 0, 0), result
    assert owners.target.execute(f"SELECT c FROM {owners.db}.t WHERE id = 22") == ((3,),)
