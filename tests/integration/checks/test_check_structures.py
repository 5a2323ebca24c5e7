"""Checks of the tables: members against each other, and against their target."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.checks.schema.structures import check_structures
from replicator.checks.source.copying import check_locking
from replicator.checks.source.source_checks import check_source
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.names import TableName
from replicator.routing.allow_list import AllowList
from replicator.routing.columns.column_mapping import ColumnMappings
from replicator.routing.columns.member_columns import ColumnRules, Extraction, NamePart
from replicator.routing.routes import Router, RouteRule, Routes
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.conftest import StartServer
from tests.support.tasks.checking import address, failures, one, routed, task


@pytest.mark.cures("table_schema")
async def test_a_missing_target_table_comes_with_its_statement(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    source = routed(address(upstream))
    results = await check_structures(task(source, target=target, task_mode="incremental"))
    way_out = one(results, "table_schema", "warning").remedies[0]
    assert "CREATE TABLE IF NOT EXISTS `merged`.`t` (" in way_out
    if isinstance(upstream, MariaDBServer):
        for statement in way_out.rstrip(";").split("; "):
            target.execute(statement)
        assert failures(await check_structures(task(source, target=target))) == set()
    results = await check_structures(task(source, target=target, task_mode="all"))
    one(results, "table_schema", "passed")


async def test_members_and_target_that_fit(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE TABLE merged.t (id BIGINT PRIMARY KEY, a VARCHAR(20), shard INT NOT NULL DEFAULT 0)"
    )
    results = await check_structures(task(routed(address(upstream)), target=target))
    assert {r.state for r in results} == {"passed"}, results


@pytest.mark.cures("table_schema")
async def test_a_column_that_does_not_fit(upstream: DatabaseServer, target: DatabaseServer) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(5), b INT NOT NULL)")
    source = routed(address(upstream))
    results = await check_structures(task(source, target=target))
    found = [r for r in results if r.state == "failed"]
    assert {r.name for r in found} == {"table_schema"}
    assert any("`a`" in r.finding and "(a: shop.t1, a: shop.t2)" in r.finding for r in found)
    for result in found:
        target.execute(result.remedies[0].rstrip(";"))
    assert failures(await check_structures(task(source, target=target))) == set()


async def test_differences_that_later_ddl_may_remove_are_warnings(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY)")
    start = SourcePosition(BinlogPosition("binlog.000001", 4))
    source = replace(routed(address(upstream)), start=start)
    results = await check_structures(task(source, target=target, task_mode="incremental"))
    assert failures(results) == set()
    one(results, "table_schema", "warning")


async def test_members_that_differ_and_count_by_themselves(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    mariadb.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id INT AUTO_INCREMENT PRIMARY KEY)",
        "CREATE TABLE shop2.t2 (id INT AUTO_INCREMENT PRIMARY KEY, extra INT)",
    )
    try:
        source = routed(address(mariadb), schema="shop2")
        results = await check_structures(task(source, target=target))
        assert failures(results) == {"schema_of_shard_tables"}
        assert "`extra`" in one(results, "schema_of_shard_tables", "failed").finding
        finding = one(results, "auto_increment_ID", "warning").finding
        assert "a: shop2.t1" in finding
        assert "a: shop2.t2" in finding
        uncoordinated = await check_structures(task(source, target=target, equal_structures=False))
        assert failures(uncoordinated) == set()
    finally:
        mariadb.execute("DROP DATABASE shop2")


async def test_members_must_agree_for_a_full_copy_also_where_the_target_is_missing(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    mariadb.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1)",
        "CREATE TABLE shop2.t2 (id BIGINT NOT NULL, a VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL)",
        "CREATE TABLE shop2.t3 (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET latin1)",
    )
    source = routed(address(mariadb), schema="shop2")
    try:
        for mode in ("full", "all"):
            wanted = task(source, target=target, task_mode=mode)
            results = await check_structures(wanted)
            assert failures(results) == {"schema_of_shard_tables"}
            finding = one(results, "schema_of_shard_tables", "failed").finding
            assert "differ from a: shop2.t1: in a: shop2.t2 " in finding
            assert "`id` is bigint(20) NOT NULL, not int(11) NOT NULL" in finding
            assert "`a` is varchar(9) utf8mb4 NOT NULL, not varchar(9) latin1" in finding
            assert "unique keys are none, not (id)" in finding
            one(results, "table_schema", "passed")
            uncoordinated = await check_structures(replace(wanted, equal_structures=False))
            assert failures(uncoordinated) == set()
            one(uncoordinated, "schema_of_shard_tables", "warning")
    finally:
        mariadb.execute("DROP DATABASE shop2")


async def test_unlike_shards_of_a_target_that_takes_the_rows_of_all(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    mariadb.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id INT PRIMARY KEY, a VARCHAR(9) CHARACTER SET utf8)",
        "CREATE TABLE shop2.t2 (id BIGINT PRIMARY KEY, a VARCHAR(19) CHARACTER SET utf8mb4 NOT NULL"
        ", c INT NOT NULL DEFAULT 3)",
    )
    source = routed(address(mariadb), schema="shop2")
    wanted = task(source, target=target, equal_structures=False, joins_structures=True)
    try:
        results = await check_structures(wanted)
        assert failures(results) == set()
        assert "takes the rows of all" in one(results, "schema_of_shard_tables", "passed").finding
        target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(9) CHARSET utf8)")
        narrow = [r for r in await check_structures(wanted) if r.state == "failed"]
        assert {r.name for r in narrow} == {"table_schema"}
        (way_out,) = {r.remedies[0] for r in narrow}
        target.execute(way_out.rstrip(";"))
        assert failures(await check_structures(wanted)) == set()
        mariadb.execute("CREATE TABLE shop2.t3 (id BIGINT PRIMARY KEY, c DATE)")
        refused = one(await check_structures(wanted), "schema_of_shard_tables", "failed")
        assert "int(11): a: shop2.t2; date: a: shop2.t3" in refused.finding
        mariadb.execute(
            "DROP TABLE shop2.t3",
            "CREATE TABLE shop2.t3 (id BIGINT PRIMARY KEY, g INT AS (id + 2))",
            "ALTER TABLE shop2.t2 ADD g INT AS (id + 1)",
        )
        refused = one(await check_structures(wanted), "schema_of_shard_tables", "failed")
        for shard, added in (("t2", 1), ("t3", 2)):
            assert f"AS (`id` + {added}): a: shop2.{shard}" in refused.finding
    finally:
        mariadb.execute("DROP DATABASE shop2")


async def test_what_a_target_is_made_without_and_what_no_binlog_tells(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop2.t1 (id INT AUTO_INCREMENT PRIMARY KEY, up INT, CONSTRAINT up"
        " FOREIGN KEY (up) REFERENCES shop2.parent (id) ON DELETE CASCADE)",
        "CREATE TABLE shop2.t2 LIKE shop2.t1",
    )
    source = routed(address(upstream), schema="shop2")
    try:
        copied = await check_structures(task(source, target=target, task_mode="full"))
        assert failures(copied) == set()
        assert not [r for r in copied if r.name == "foreign_keys"]
        assert "`on-duplicate-logical`" in one(copied, "auto_increment_ID", "warning").finding
        followed = await check_structures(task(source, target=target, task_mode="incremental"))
        finding = one(followed, "foreign_keys", "passed").finding
        assert "foreign keys of a: shop2.t1 change or delete rows" in finding
        assert "stop the task" in one(followed, "auto_increment_ID", "warning").finding
        # The statement for a target that has to be made by hand names the parent's target.
        (way_out,) = [
            r.remedies[0] for r in followed if r.name == "table_schema" and "merged.t" in r.finding
        ]
        assert "CREATE TABLE IF NOT EXISTS `merged`.`t` (" in way_out
        assert "FOREIGN KEY (`up`) REFERENCES `shop2`.`parent` (`id`) ON DELETE CASCADE" in way_out
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_foreign_keys_with_actions_pass(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    keyed = "(id INT PRIMARY KEY, up INT, FOREIGN KEY (up) REFERENCES {} (id) ON DELETE CASCADE)"
    mariadb.execute("CREATE DATABASE shop2", f"CREATE TABLE shop2.t1 {keyed.format('shop2.t1')}")
    wanted = task(routed(address(mariadb), schema="shop2"), target=target)
    try:
        for mode in ("all", "incremental"):
            results = await check_structures(replace(wanted, task_mode=mode))
            assert failures(results) == set()
            finding = one(results, "foreign_keys", "passed").finding
            assert finding.endswith(
                "the server does not log it: the task does the same to merged.t"
            )
    finally:
        mariadb.execute("DROP DATABASE shop2")


async def test_rows_that_go_along_with_their_parent_are_in_no_binlog(
    upstream: DatabaseServer,
) -> None:
    """What the warning says is so: the child's row is gone, and no event tells of it."""
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop2.child (id INT PRIMARY KEY, up INT, FOREIGN KEY (up)"
        " REFERENCES shop2.parent (id) ON DELETE CASCADE)",
        "INSERT INTO shop2.parent VALUES (1)",
        "INSERT INTO shop2.child VALUES (7, 1)",
    )
    try:
        ((file, offset, *_),) = upstream.execute("SHOW MASTER STATUS")
        upstream.execute("DELETE FROM shop2.parent")
        assert upstream.execute("SELECT * FROM shop2.child") == ()
        events = upstream.execute(f"SHOW BINLOG EVENTS IN '{file}' FROM {offset}")
        # MariaDB names the child's table, too, but no event has rows of it.
        named = {row[5].split()[1]: row[5] for row in events if row[2] == "Table_map"}
        changed = [named[row[5].split()[1]] for row in events if row[2].startswith("Delete_rows")]
        assert len(changed) == 1
        assert "shop2.parent" in changed[0]
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_collations_that_the_target_lacks(
    upstream: DatabaseServer, tidb_target: DatabaseServer
) -> None:
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.t1 (id VARCHAR(9) PRIMARY KEY) CHARACTER SET latin1",
    )
    try:
        wanted = task(routed(address(upstream), schema="shop2"), target=tidb_target)
        login = DatabaseAddress(
            tidb_target.host, tidb_target.port, tidb_target.user, tidb_target.password
        )
        wanted = replace(wanted, target=replace(wanted.target, address=login))
        found = one(await check_structures(wanted), "table_schema", "warning")
        assert "in merged.t latin1_swedish_ci becomes latin1_bin" in found.finding
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_tables_must_be_lockable_where_snapshots_have_no_place(
    start_server: StartServer, mysql56_source: DatabaseServer, target: DatabaseServer
) -> None:
    # One that has had no XA transaction.
    mariadb = start_server(MariaDBServer)
    for server in (mariadb, mysql56_source):
        server.execute(
            "CREATE DATABASE shop2",
            "CREATE TABLE shop2.t1 (a INT PRIMARY KEY)",
            "CREATE TABLE shop2.t2 (a INT PRIMARY KEY)",
            "GRANT SELECT ON shop2.* TO 'copier'@'127.0.0.1' IDENTIFIED BY 'secret'",
        )
    source = routed(address(mysql56_source, "copier", "secret"), schema="shop2")
    wanted = task(source, target=target, task_mode="all")
    try:
        followed = await check_structures(replace(wanted, task_mode="incremental"))
        assert failures(followed) == set()
        copied = await check_structures(replace(wanted, task_mode="full"))
        assert failures(copied) == {"dump_privilege"}
        results = await check_structures(wanted)
        assert failures(results) == {"dump_privilege"}
        way_out = one(results, "dump_privilege", "failed").remedies[0]
        assert way_out == "GRANT SELECT, LOCK TABLES ON `shop2`.* TO 'copier'@'127.0.0.1';"
        mysql56_source.execute(way_out)
        found = one(await check_structures(wanted), "dump_privilege", "passed")
        assert "shop2.t1, shop2.t2" in found.finding
        with mysql56_source.connect() as busy, busy.cursor() as cursor:
            # Somebody else's lock is waited for, but not for long, and is no refusal.
            cursor.execute("LOCK TABLES shop2.t1 WRITE, shop2.t2 WRITE")
            results = [*await check_locking(source, [TableName("shop2", "t1")])]
        assert [result.state for result in results] == ["passed"]
        # MariaDB tells the place of a snapshot: nothing is locked there.
        telling = routed(address(mariadb, "copier", "secret"), schema="shop2")
        results = await check_structures(task(telling, target=target, task_mode="all"))
        assert not [r for r in results if r.name == "dump_privilege"]
        # It does not tell it exactly while XA transactions are committed.
        insert = "INSERT INTO shop2.t1 VALUES (1)"
        mariadb.execute("XA START 'a'", insert, "XA END 'a'", "XA COMMIT 'a' ONE PHASE")
        results = await check_structures(task(telling, target=target, task_mode="all"))
        assert failures(results) == {"dump_privilege"}
    finally:
        mysql56_source.execute("DROP DATABASE shop2", "DROP USER 'copier'@'127.0.0.1'")


@pytest.mark.cures("merge_tables")
async def test_merge_tables(upstream: DatabaseServer) -> None:
    upstream.execute(
        "CREATE DATABASE shop2",
        "CREATE DATABASE shop3",
        "CREATE TABLE shop2.t1 (id INT, KEY (id)) ENGINE=MyISAM",
        "CREATE TABLE shop2.t9 (id INT, KEY (id)) ENGINE=MERGE UNION=(shop2.t1)",
        "CREATE TABLE shop3.other (id INT, KEY (id)) ENGINE=MERGE UNION=(shop2.t1)",
    )
    try:
        followed = routed(address(upstream), schema="shop2")
        found = [r for r in await check_source(followed) if r.name == "merge_tables"]
        assert [result.state for result in found] == ["failed"] * 2
        assert "shop2.t9 have the rows of other tables" in found[0].finding
        assert "shop3.other is a MERGE table over shop2.t1" in found[1].finding
        upstream.execute("DROP TABLE shop2.t9", found[1].remedies[0].partition(";")[0])
        assert not [r for r in await check_source(followed) if r.name == "merge_tables"]
    finally:
        upstream.execute("DROP DATABASE shop2", "DROP DATABASE shop3")


@pytest.mark.cures("storage_engine")
async def test_tables_that_have_no_snapshots(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    upstream.execute(
        "CREATE DATABASE shop2", "CREATE TABLE shop2.t1 (id INT PRIMARY KEY) ENGINE=MyISAM"
    )
    try:
        followed = routed(address(upstream), schema="shop2")
        assert not [r for r in await check_source(followed) if r.name == "storage_engine"]
        both = replace(followed, copies_rows=True)
        found = one(await check_source(both), "storage_engine", "warning")
        assert "shop2.t1 have no consistent snapshots (engine MyISAM)" in found.finding
        copied = replace(both, reads_binlog=False)
        assert "MyISAM" in one(await check_source(copied), "storage_engine", "passed").finding
        wanted = task(both, target=target, task_mode="all")
        assert "InnoDB in place of MyISAM" in (
            one(await check_structures(wanted), "table_schema", "passed").finding
        )
        target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY) ENGINE=MyISAM")
        result = one(await check_structures(wanted), "storage_engine", "failed")
        target.execute(result.remedies[0])
        results = await check_structures(wanted)
        assert not [r for r in results if r.name == "storage_engine"]
        upstream.execute(found.remedies[0])
        assert one(await check_source(both), "storage_engine", "passed")
    finally:
        upstream.execute("DROP DATABASE shop2")


async def test_a_source_that_joins_a_task_is_compared_and_the_others_are_not(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(5))")
    followed = replace(routed(address(upstream)), followed=True)
    resumed = task(followed, target=target, resuming=True)
    assert await check_structures(resumed) == []
    upstream.execute(
        "CREATE DATABASE joining", "CREATE TABLE joining.t1 (id INT PRIMARY KEY, b INT)"
    )
    try:
        joining = routed(address(upstream), schema="joining", source_id="b")
        results = await check_structures(replace(resumed, sources=(followed, joining)))
    finally:
        upstream.execute("DROP DATABASE joining")
    finding = one(results, "table_schema", "failed").finding
    assert "`b`" in finding
    assert "b: joining.t1" in finding
    assert not [result for result in results if "a: shop" in result.finding]
    assert not [result for result in results if result.name == "target_rows"]


async def test_a_source_that_joins_with_a_change_that_the_others_have_is_warned_of(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY)")
    followed = replace(routed(address(upstream)), followed=True)
    joining = routed(address(upstream), source_id="b")
    results = await check_structures(task(followed, joining, target=target, resuming=True))
    assert failures(results) == set()
    finding = one(results, "table_schema", "warning").finding
    assert "`a`" in finding
    assert "a schema change that the task goes on with" in finding


async def test_a_target_that_has_rows_before_a_full_copy(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(20))")
    source = routed(address(upstream))
    results = await check_structures(task(source, target=target))
    assert "empty" in one(results, "target_rows", "passed").finding
    target.execute(
        "INSERT INTO merged.t WITH RECURSIVE n AS"
        " (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 500) SELECT i, 'x' FROM n",
        "ANALYZE TABLE merged.t",
    )
    for mode in ("full", "all"):
        results = await check_structures(task(source, target=target, task_mode=mode))
        told = one(results, "target_rows", "warning")
        assert "merged.t has rows before the full copy, about 500 by" in told.finding
        assert told.remedies[0].endswith("TRUNCATE TABLE `merged`.`t`;")
        assert failures(results) == set()
    results = await check_structures(task(source, target=target, task_mode="incremental"))
    assert not [result for result in results if result.name == "target_rows"]


async def test_a_target_of_a_single_row_is_not_empty(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(20))",
        "INSERT INTO merged.t VALUES (1, 'x')",
    )
    results = await check_structures(task(routed(address(upstream)), target=target))
    assert "about " in one(results, "target_rows", "warning").finding


@pytest.mark.cures("foreign_keys", "table_schema")
async def test_targets_with_extracted_columns_and_a_cascade(
    mariadb: DatabaseServer, target: DatabaseServer
) -> None:
    """The statements can be executed in the order of the findings: the child comes first."""
    mariadb.execute(
        "CREATE DATABASE shop2",
        "CREATE TABLE shop2.parent (id INT PRIMARY KEY)",
        "CREATE TABLE shop2.child (id INT PRIMARY KEY, up INT, FOREIGN KEY (up)"
        " REFERENCES shop2.parent (id) ON DELETE CASCADE)",
    )
    routes = Routes([RouteRule("all", "shop2", "", "merged", "")], case_sensitive=False)
    source = replace(
        routed(address(mariadb), schema="shop2"),
        router=Router(AllowList(do_dbs=["shop2"], case_sensitive=False), routes),
        routes=routes,
        columns=ColumnRules(
            "a",
            routes,
            {"all": (Extraction(NamePart.SCHEMA, "(.*)", "shop"),)},
            ColumnMappings([], case_sensitive=False),
        ),
    )
    wanted = task(source, target=target, task_mode="all")
    try:
        missing = [r for r in await check_structures(wanted) if r.state == "failed"]
        assert [r.name for r in missing] == ["table_schema"] * 2
        for result in missing:
            creation, key = result.remedies
            target.execute(*filter(None, creation.split("; ")))
            assert key.endswith(" DROP PRIMARY KEY, ADD PRIMARY KEY (`id`, `shop`);")
            target.execute(key.removeprefix("If shards have equal keys: "))
        results = await check_structures(wanted)
        assert failures(results) == set()
        found = one(results, "foreign_keys", "warning")
        assert "also those of other shards" in found.finding
        target.execute(*filter(None, found.remedies[0].split("; ")))
        assert not [r for r in await check_structures(wanted) if r.state == "warning"]
    finally:
        mariadb.execute("DROP DATABASE shop2")
