"""Checks of a target, and of a task as a whole."""

from __future__ import annotations

from dataclasses import replace

from replicator.checks.checked_task import TargetToCheck, TaskToCheck
from replicator.checks.run.all_checks import run_checks
from replicator.checks.schema.structures import check_structures
from replicator.checks.target.target_checks import check_target
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.checking import address, failures, global_setting, one, routed, task


async def test_a_target_that_is_ready_passes_and_is_left_as_it_was(
    upstream: DatabaseServer,
) -> None:
    before = upstream.execute("SHOW DATABASES")
    results = await check_target(TargetToCheck(address(upstream), "dm_meta", "merge"))
    assert {r.state for r in results} == {"passed"}
    assert upstream.execute("SHOW DATABASES") == before


async def test_a_read_only_target(upstream: DatabaseServer) -> None:
    upstream.execute(
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, ALTER, DROP, INDEX ON *.*"
        " TO 'writer'@'127.0.0.1' IDENTIFIED BY 'secret'"
    )
    target = TargetToCheck(address(upstream, "writer", "secret"), "dm_meta", "merge")
    assert failures(await check_target(target)) == set()
    with global_setting(upstream, "read_only", "1"):
        assert failures(await check_target(target)) == {"read_only"}


async def test_a_target_that_may_not_be_changed(upstream: DatabaseServer) -> None:
    upstream.execute(
        "CREATE DATABASE IF NOT EXISTS dm_meta",
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP ON dm_meta.*"
        " TO 'noalter'@'127.0.0.1' IDENTIFIED BY 'secret'",
    )
    try:
        target = TargetToCheck(address(upstream, "noalter", "secret"), "dm_meta", "merge")
        results = await check_target(target)
        assert failures(results) == {"target_privilege"}
        assert "ALTER" in one(results, "target_privilege", "failed").finding
        assert upstream.execute("SHOW TABLES FROM dm_meta") == ()
    finally:
        upstream.execute("DROP DATABASE dm_meta")


async def test_a_target_that_is_slow_to_load(upstream: DatabaseServer) -> None:
    target = TargetToCheck(address(upstream), "dm_meta", "merge")
    with (
        global_setting(upstream, "local_infile", "0"),
        global_setting(upstream, "max_allowed_packet", "1048576"),
    ):
        results = await check_target(target)
    assert failures(results) == set()
    one(results, "local_infile", "warning")
    one(results, "max_allowed_packet", "warning")


async def test_a_target_table_that_may_not_be_written(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute(
        "CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(10))",
        "GRANT SELECT, TRIGGER ON merged.* TO 'looker'@'127.0.0.1' IDENTIFIED BY 'secret'",
    )
    wanted = task(routed(address(upstream)), target=target)
    looker = replace(wanted.target, address=address(target, "looker", "secret"))
    results = await check_structures(replace(wanted, target=looker))
    assert failures(results) == {"target_privilege"}


async def test_a_target_table_that_somebody_has_locked(
    upstream: DatabaseServer, target: DatabaseServer
) -> None:
    target.execute("CREATE TABLE merged.t (id INT PRIMARY KEY, a VARCHAR(10))")
    wanted = task(routed(address(upstream)), target=target)
    where = replace(address(target), session=(("lock_wait_timeout", "1"),))
    wanted = replace(wanted, target=replace(wanted.target, address=where))
    with target.connect() as session, session.cursor() as cursor:
        cursor.execute("LOCK TABLES merged.t READ")
        assert failures(await check_structures(wanted)) == set()


async def test_a_whole_task(upstream: DatabaseServer, target: DatabaseServer) -> None:
    away = DatabaseAddress("nowhere.invalid", 3306, "root")
    sources = (routed(address(upstream)), routed(away, source_id="b"))
    results = await run_checks(task(*sources, target=target), frozenset({"version", "wrong"}))
    assert {(r.name, r.where) for r in results if r.state == "failed"} == {("connection", "b")}
    one(results, "ignore-checking-items", "warning")
    assert not [r for r in results if r.name == "version"]
    one(results, "table_schema", "passed")
    followed = (replace(source, followed=True) for source in sources)
    resumed = await run_checks(task(*followed, target=target, resuming=True), frozenset())
    assert not [r for r in resumed if r.name == "table_schema"]


async def test_all_leaves_everything_out() -> None:
    away = DatabaseAddress("nowhere.invalid", 3306, "root")
    wanted = TaskToCheck((routed(away),), TargetToCheck(away, "dm_meta", "merge"))
    assert await run_checks(wanted, frozenset({"all"})) == []
    results = await run_checks(wanted, frozenset({"connection"}))
    assert {(r.name, r.where) for r in results} == {("connection", "a"), ("connection", "target")}
