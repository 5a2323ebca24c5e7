"""What changes rows of the targets besides the task: triggers, events, foreign keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from structlog.testing import capture_logs

from actors.errors.faults import FatalError, of_target
from actors.task.target_watch import TargetWatch
from replicator.checks.checked_task import TargetToCheck, TaskToCheck
from replicator.checks.run.all_checks import run_checks
from replicator.checks.target.target_effects import check_target_effects
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.checking import address, failures, one, routed, task

pytestmark = pytest.mark.parametrize("upstream", [MariaDBServer], indirect=True)

FIRES = "CREATE TRIGGER merged.{} {} ON merged.{} FOR EACH ROW SET @x = 1"
EVERY_HOUR = "ON SCHEDULE EVERY 1 HOUR"


@pytest.fixture(params=["mariadb_target", "mysql_source", "mysql56_source"])
def target(request: pytest.FixtureRequest) -> Iterator[DatabaseServer]:
    server: DatabaseServer = request.getfixturevalue(request.param)
    server.execute("CREATE DATABASE merged", "CREATE TABLE merged.t (id INT PRIMARY KEY, a INT)")
    yield server
    server.execute("DROP DATABASE merged")


@pytest.fixture
def wanted(upstream: DatabaseServer, target: DatabaseServer) -> TaskToCheck:
    return task(routed(address(upstream)), target=target)


async def test_a_target_that_nothing_else_changes(
    wanted: TaskToCheck, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE DATABASE reports",
        "CREATE TABLE merged.other (id INT PRIMARY KEY)",
        FIRES.format("fires", "AFTER INSERT", "other"),
        f"CREATE EVENT merged.e {EVERY_HOUR} DO DELETE FROM merged.other",
        f"CREATE EVENT reports.same_name {EVERY_HOUR} DO DELETE FROM reports.t",
        f"CREATE EVENT merged.off {EVERY_HOUR} DISABLE DO DELETE FROM merged.t",
        "CREATE TABLE merged.child (id INT PRIMARY KEY, up INT,"
        " FOREIGN KEY (up) REFERENCES merged.t (id) ON DELETE CASCADE)",
        "ALTER TABLE merged.t ADD CONSTRAINT plain FOREIGN KEY (a) REFERENCES merged.other (id)",
    )
    try:
        assert await check_target_effects(wanted) == []
    finally:
        target.execute("DROP DATABASE reports")


@pytest.mark.parametrize("when", ["BEFORE INSERT", "AFTER INSERT", "BEFORE UPDATE", "AFTER DELETE"])
@pytest.mark.cures("target_triggers")
async def test_a_trigger_fails_the_check(
    wanted: TaskToCheck, target: DatabaseServer, when: str
) -> None:
    target.execute(FIRES.format("fires", when, "t"))
    results = await check_target_effects(wanted)
    assert failures(results) == {"target_triggers"}
    result = one(results, "target_triggers", "failed")
    assert "merged.fires" in result.finding
    target.execute(result.remedies[0])
    assert await check_target_effects(wanted) == []


@pytest.mark.parametrize("resuming", [False, True])
async def test_it_is_looked_at_on_each_start_unless_it_is_ignored_by_name(
    upstream: DatabaseServer, target: DatabaseServer, resuming: bool
) -> None:
    wanted = task(routed(address(upstream)), target=target, resuming=resuming)
    target.execute(FIRES.format("fires", "BEFORE INSERT", "t"))
    for ignored in (frozenset[str](), frozenset({"target_triggers"})):
        results = await run_checks(wanted, ignored)
        found = [result for result in results if result.name == "target_triggers"]
        assert [result.state for result in found] == ([] if ignored else ["failed"])


@pytest.mark.cures("target_events")
async def test_an_event_that_names_a_target_fails_the_check(
    wanted: TaskToCheck, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE DATABASE elsewhere",
        f"CREATE EVENT elsewhere.clean {EVERY_HOUR} DO DELETE FROM merged.T WHERE id < 5"
        if target.execute("SELECT @@lower_case_table_names")[0][0]
        else f"CREATE EVENT elsewhere.clean {EVERY_HOUR} DO DELETE FROM `merged`.`t` WHERE id < 5",
        "CREATE PROCEDURE merged.p() DELETE FROM t",
        f"CREATE EVENT merged.calls {EVERY_HOUR} DO CALL p()",
    )
    try:
        results = await check_target_effects(wanted)
        assert [result.name for result in results] == ["target_events"] * 2
        assert "elsewhere.clean, which names merged.t" in results[0].finding
        assert "merged.calls, which calls" in results[1].finding
        for result in results:
            target.execute(result.remedies[0].partition("; or ")[0])
        assert await check_target_effects(wanted) == []
    finally:
        target.execute("DROP DATABASE elsewhere")


@pytest.mark.parametrize("action", ["ON DELETE CASCADE", "ON DELETE SET NULL", "ON UPDATE CASCADE"])
@pytest.mark.cures("target_foreign_keys")
async def test_a_foreign_key_that_lets_others_change_rows_fails_the_check(
    wanted: TaskToCheck, target: DatabaseServer, action: str
) -> None:
    target.execute(
        "CREATE TABLE merged.parent (id INT PRIMARY KEY)",
        "ALTER TABLE merged.t ADD CONSTRAINT `up``s`"
        f" FOREIGN KEY (a) REFERENCES merged.parent (id) {action}",
    )
    result = one(await check_target_effects(wanted), "target_foreign_keys", "failed")
    assert "merged.parent" in result.finding
    target.execute(result.remedies[0])
    assert await check_target_effects(wanted) == []


async def test_the_parent_may_be_a_target_that_is_blocked_or_has_no_shards(
    wanted: TaskToCheck, target: DatabaseServer
) -> None:
    child, parent = TableName("merged", "t"), TableName("merged", "parent")
    target.execute(
        f"CREATE TABLE {parent.quoted} (id INT PRIMARY KEY)",
        f"ALTER TABLE {child.quoted} ADD CONSTRAINT ups FOREIGN KEY (a)"
        f" REFERENCES {parent.quoted} (id) ON DELETE CASCADE",
    )
    with closing(Connection(wanted.target.address)) as connection:
        watch = TargetWatch(
            wanted.target.address, (), lambda: frozenset({child}), lambda: frozenset({parent})
        )
        await watch.look(connection)


async def test_an_account_that_may_not_see_them_is_told(
    wanted: TaskToCheck, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE USER 'writes'@'127.0.0.1' IDENTIFIED BY 'secret'",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON merged.* TO 'writes'@'127.0.0.1'",
        FIRES.format("fires", "AFTER INSERT", "t"),
    )
    try:
        where = address(target, "writes", "secret")
        account = TaskToCheck(wanted.sources, type(wanted.target)(where, "dm_meta", "merge"))
        result = one(await check_target_effects(account), "target_triggers", "warning")
        target.execute(result.remedies[0])
        one(await check_target_effects(account), "target_triggers", "failed")
    finally:
        target.execute("DROP USER 'writes'@'127.0.0.1'")


async def test_a_running_task_looks_again(wanted: TaskToCheck, target: DatabaseServer) -> None:
    name = TableName("merged", "t")
    connection = Connection(wanted.target.address)
    try:
        for ignored in ((), ("target_events",)):
            watch = TargetWatch(
                wanted.target.address, ignored, lambda: frozenset({name}), frozenset
            )
            await watch.look(connection)
            target.execute(f"CREATE EVENT merged.e {EVERY_HOUR} DO DELETE FROM t")
            if ignored:
                await watch.look(connection)
            else:
                with pytest.raises(FatalError) as caught:
                    await watch.look(connection)
                assert caught.value.event == "target.changed-by-others"
                assert caught.value.scope == of_target(name)
            target.execute("DROP EVENT merged.e")
    finally:
        connection.close()


async def test_a_running_task_tells_once_what_it_may_not_see_any_more(
    wanted: TaskToCheck, target: DatabaseServer
) -> None:
    rights = "SELECT, INSERT, TRIGGER, EVENT ON merged.* {} 'writes'@'127.0.0.1'"
    target.execute(
        "CREATE USER 'writes'@'127.0.0.1' IDENTIFIED BY 'secret'",
        "GRANT " + rights.format("TO"),
    )
    where = address(target, "writes", "secret")
    connection = Connection(where)
    try:
        name = TableName("merged", "t")
        watch = TargetWatch(where, ("target_events",), lambda: frozenset({name}), frozenset)
        with capture_logs() as seen:
            await watch.look(connection)
            target.execute("REVOKE TRIGGER, EVENT ON merged.* FROM 'writes'@'127.0.0.1'")
            await watch.look(connection)
            await watch.look(connection)
            connection.close()
            await watch.look(connection)
        (told,) = seen
        assert told["event"] == "target.unwatched"
        assert "may not see triggers of merged" in told["reason"]
        target.execute(*told["remedies"], FIRES.format("fires", "AFTER INSERT", "t"))
        connection.close()
        with pytest.raises(FatalError):
            await watch.look(connection)
        target.execute("DROP USER 'writes'@'127.0.0.1'")
        connection.close()
        with capture_logs() as seen:
            await watch.look(connection)
            await watch.look(connection)
        assert [told["event"] for told in seen] == ["target.unwatched"]
        assert "refuses the login" in seen[0]["reason"]
    finally:
        connection.close()


async def test_a_time_to_live_of_tidb_fails_the_check(
    upstream: DatabaseServer, tidb_target: DatabaseServer
) -> None:
    where = address(tidb_target, tidb_target.user, tidb_target.password)
    wanted = TaskToCheck((routed(address(upstream)),), TargetToCheck(where, "dm_meta", "merge"))
    tidb_target.execute(
        "CREATE DATABASE merged",
        "CREATE TABLE merged.t (id INT PRIMARY KEY, at DATETIME) TTL = at + INTERVAL 3 MONTH",
    )
    try:
        result = one(await check_target_effects(wanted), "target_events", "failed")
        tidb_target.execute(result.remedies[0])
        assert await check_target_effects(wanted) == []
    finally:
        tidb_target.execute("DROP DATABASE merged")
