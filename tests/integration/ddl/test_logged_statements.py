"""Changes of tables that are not replicated, logged as statements: what they write unseen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from actors.errors.faults import DdlEvent
from replicator.sandbox.server import DatabaseServer
from replicator.schema.effects.overridden_effects import OverrideAction
from tests.support.tasks.merging import Merging
from tests.support.tasks.overriding import override
from tests.unit.replicator.ddl.analysis.test_side_effects import CHECKSUM

LOGGED = "SET binlog_format = STATEMENT"


@pytest.fixture(params=["mariadb_source", "mysql_source"])
def merging(
    merging_from: Callable[..., Merging],
    request: pytest.FixtureRequest,
) -> Merging:
    """A shard ``t_1``, and tables, a view and a function in a schema that is left out."""
    server: DatabaseServer = request.getfixturevalue(request.param)
    found = merging_from(server)
    db = found.database
    found.create("t", "(id INT PRIMARY KEY, v INT)")
    found.do(
        f"CREATE DATABASE {db}_x",
        f"CREATE TABLE {db}_x.u (id INT PRIMARY KEY)",
        f"CREATE TABLE {db}_x.free (id INT PRIMARY KEY, n INT)",
        f"CREATE VIEW {db}_x.w AS SELECT id FROM t_1",
        f"CREATE TRIGGER {db}_x.fires AFTER INSERT ON {db}_x.u FOR EACH ROW"
        f" INSERT INTO {db}.t_1 VALUES (NEW.id + 100, 1)",
    )
    return found


async def test_what_a_trigger_may_have_written_is_a_fault(merging: Merging) -> None:
    db = merging.database
    async with merging.running() as generation:
        merging.do("INSERT INTO t_1 VALUES (1, 1)")
        await merging.check(generation)
    merging.do("INSERT INTO t_1 VALUES (2, 1)", LOGGED, f"INSERT INTO {db}_x.u VALUES (1)")
    found = await merging.fault()
    assert found.event == "ddl.not-supported"
    assert "has triggers: fires" in found.message
    assert isinstance(found.about, DdlEvent)
    # What stands before it is there.
    assert merging.on(merging.target, "SELECT id FROM t") == ((1,), (2,))
    merging.do(f"DROP TRIGGER {db}_x.fires")
    assert "DROP TRIGGER" in (await merging.fault()).message


@pytest.mark.remedy("ddl.not-supported", "skip")
async def test_rows_after_a_statement_in_its_transaction_are_not_left_out(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    """A start after the transaction would leave them out."""
    merging = merging_from(mariadb_source)
    merging.create("bag", "(n INT, v VARCHAR(40))")
    async with merging.running():
        pass
    merging.do(
        "SET binlog_format = MIXED",
        "BEGIN",
        "INSERT INTO bag_1 SELECT 1, UUID()",
        "INSERT INTO bag_1 VALUES (2, 'as a statement')",
        "INSERT INTO bag_1 SELECT 3, UUID()",
        "COMMIT",
    )
    found = await merging.fault()
    assert found.event == "ddl.not-supported"
    assert not [way for way in found.remedies if "--remove-meta" in way]
    merging.on(merging.target, "INSERT INTO bag VALUES (2, 'as a statement')")
    await override(merging, found, OverrideAction.SKIP)
    async with merging.running() as generation:
        await merging.check(generation)


async def test_a_view_may_be_one_of_a_replicated_table(merging: Merging) -> None:
    async with merging.running():
        pass
    merging.do(LOGGED, f"INSERT INTO {merging.database}_x.w VALUES (5)")
    assert "is a view" in (await merging.fault()).message


async def test_what_can_write_nothing_else_is_passed_over(merging: Merging) -> None:
    db = merging.database
    checksum = CHECKSUM.replace("`percona`.`checksums`", f"{db}_x.sums").replace(
        "`s`.`t1`", f"{db}.t_1"
    )
    merging.do(
        f"CREATE TABLE {db}_x.sums (db CHAR(9), tbl CHAR(9), chunk INT PRIMARY KEY, this_cnt INT,"
        " this_crc CHAR(16))",
    )
    async with merging.running() as generation:
        merging.do(
            "INSERT INTO t_1 VALUES (1, 1)",
            LOGGED,
            checksum,
            f"INSERT INTO {db}_x.free VALUES (1, 1), (2, LENGTH('a'))",
            f"UPDATE {db}_x.free SET n = 7 WHERE id IN (1, 2)",
            f"DELETE FROM {db}_x.free WHERE id = 2",
        )
        merging.do("INSERT INTO t_1 VALUES (2, 1)")
        await merging.check(generation)
        assert generation.counts.sources["a"].reconnects == 0


CHILD = "(id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p_1 (id) ON DELETE CASCADE)"
PLAIN = "(id INT PRIMARY KEY, p INT)"


async def test_the_task_repeats_what_a_foreign_key_changes_without_logging_it(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    merging.create("p", "(id INT PRIMARY KEY)")
    merging.create("c", PLAIN)
    async with merging.running() as generation:
        merging.do(f"CREATE TABLE c_2 {CHILD}")
        merging.shards("c", 2)
        merging.do("INSERT INTO p_1 VALUES (1), (2)", "INSERT INTO c_2 VALUES (1, 1), (2, 2)")
        merging.do("DELETE FROM p_1 WHERE id = 1")
        await merging.check(generation)


async def test_a_filter_does_not_let_a_foreign_key_change_rows_unseen(
    merging_from: Callable[..., Merging], mariadb_source: DatabaseServer
) -> None:
    merging = merging_from(mariadb_source)
    rule = {"schema-pattern": "*", "events": ["modify constraint"], "action": "Ignore"}
    merging.more["filters"] = {"keys": rule}
    merging.instance["filter-rules"] = ["keys"]
    merging.create("p", "(id INT PRIMARY KEY)")
    merging.create("c", PLAIN)
    added = "ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p_1 (id) ON DELETE CASCADE"
    async with merging.running() as generation:
        merging.do("INSERT INTO p_1 VALUES (1), (2)", "INSERT INTO c_1 VALUES (1, 1), (2, 2)")
        merging.do(f"ALTER TABLE c_1 {added}", "DELETE FROM p_1 WHERE id = 1")
        await merging.check(generation)


async def test_what_a_foreign_key_changes_arrives_where_it_is_logged(
    merging_from: Callable[..., Merging], mysql_source: DatabaseServer
) -> None:
    merging = merging_from(mysql_source)
    merging.create("p", "(id INT PRIMARY KEY)")
    merging.create("c", CHILD, target=PLAIN)
    async with merging.running() as generation:
        merging.shards("c", 2)
        merging.do(
            f"CREATE TABLE c_2 {CHILD}",
            "INSERT INTO p_1 VALUES (1), (2)",
            "INSERT INTO c_1 VALUES (1, 1), (2, 2)",
            "INSERT INTO c_2 VALUES (3, 1), (4, 2)",
            "DELETE FROM p_1 WHERE id = 1",
        )
        await merging.check(generation)
        assert merging.on(merging.target, "SELECT id FROM c ORDER BY id") == ((2,), (4,))
