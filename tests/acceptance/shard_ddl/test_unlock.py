"""The operator forces locks; shows them; and hears in time of binlogs that are purged."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext
from structlog.testing import capture_logs

from actors.control.protocol import Reply
from actors.counting.task_counts import TaskCounts
from actors.errors.faults import FatalError
from actors.reading import purge_watch
from actors.task.operator import operator_commands
from actors.task.operator.blocked_parts import BlockedParts
from actors.task.status_report import RateMeter, task_status
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from replicator.status import LockStatus, now
from tests.conftest import StartServer
from tests.support.tasks.processes import task_process
from tests.support.tasks.running import PATIENCE
from tests.support.tasks.shard_ddl import ShardedEstate
from tests.support.tasks.task_files import write_task


@pytest.fixture
def estate(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
) -> ShardedEstate:
    sources = {"a": mariadb_source, "b": mariadb_source_full}
    return ShardedEstate(sources, target_server, database_name, spark, tmp_path)


def locks(estate: ShardedEstate) -> tuple[LockStatus, ...]:
    status = task_status(
        "orders",
        "running",
        now(),
        1,
        None,
        BlockedParts(),
        estate.generation,
        RateMeter(TaskCounts()),
    )
    return status.locks


async def unlock(estate: ShardedEstate, lock: str = "", owner: str = "", skip: bool = False) -> str:
    """Unlock (by default the first lock) and wait for the end of it; the error, if any."""
    arguments = {"lock": lock or locks(estate)[0].id, "owner": owner, "skip": skip}
    reply: Reply = await operator_commands.unlock(estate.running.coordination, arguments)
    if reply.ok:
        with anyio.fail_after(PATIENCE):
            while any(found.id == arguments["lock"] for found in locks(estate)):
                await anyio.sleep(0.02)
    return reply.error


async def rows(estate: ShardedEstate, expected: list[tuple[bytes | None, ...]]) -> None:
    """Wait until the target has these rows."""
    with anyio.move_on_after(PATIENCE):
        while sorted(estate.rows().elements(), key=str) != sorted(expected, key=str):
            await anyio.sleep(0.05)
    assert sorted(estate.rows().elements(), key=str) == sorted(expected, key=str)


async def test_a_shard_that_has_the_structure_already_is_not_to_make_the_statement(
    estate: ShardedEstate,
) -> None:
    """The remedy that is named instead is executed."""
    estate.create("A1", "B1", "B2")
    estate.ddl("B1", "ADD c INT DEFAULT 0")
    estate.task = estate.started_now()
    async with estate.merging():
        estate.ddl("A1", "ADD c INT DEFAULT 0")
        await estate.caught_up()
        [lock] = locks(estate)
        run, now_, _ = lock.remedies
        assert f"(b: {estate.name('B2')})" in run
        assert f"can't make it: b: {estate.name('B1')}. The shards that lack it may" in now_
        estate.ddl("B2", "ADD c INT DEFAULT 0")
        await estate.caught_up()
        [lock] = locks(estate)
        first, _ = lock.remedies
        assert first.endswith(f"and can't make it: b: {estate.name('B1')}.")
        assert await unlock(estate) == ""
        for shard in estate.shards:
            estate.put(shard, "{}, 5")
        await estate.settled()


async def test_case_102_unlock_with_another_default(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.insert("B1", "7")
        estate.ddl("A1", "ADD c INT DEFAULT 0")
        estate.insert("A1", "1, 5")
        estate.ddl("B1", "ADD c INT DEFAULT -1")
        await estate.caught_up()
        [lock] = locks(estate)
        assert lock.state == "conflict"
        assert lock.conflict is not None
        assert {lock.conflict.ours.member, lock.conflict.theirs.member} == {f"{estate.db}.t1"}
        assert "DEFAULT -1" in lock.conflict.ours.statements[0] + lock.conflict.theirs.statements[0]
        refused = await operator_commands.unlock(
            estate.running.coordination, {"lock": lock.id, "owner": "", "skip": False}, "orders"
        )
        assert not refused.ok
        assert "choose the one to execute" in refused.error
        choices = refused.body["remedies"]
        assert tuple(choices) == lock.remedies
        assert [way.split("`")[1] for way in choices] == [
            f"replicator unlock-ddl-lock orders {lock.id} {how}"
            for how in ("--owner a", "--owner b", "--action skip")
        ]
        assert "DEFAULT 0" in choices[0]
        assert f"source a: {estate.db}.t1" in choices[0]
        assert "DEFAULT -1" in choices[1]
        assert locks(estate) == (lock,), "nothing has been decided"
        assert await unlock(estate, owner="a") == ""
        estate.run("B1", "INSERT INTO {t} (id) VALUES (2)")
        await rows(estate, [(b"7", b"0"), (b"1", b"5"), (b"2", b"-1")])
        assert locks(estate) == ()


async def test_a_conflict_within_a_source_names_the_shard(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c SMALLINT")
        estate.ddl("A2", "ADD c INT")
        estate.insert("A2", "1, 70000")
        await estate.caught_up()
        assert "shards of source a have different statements" in await unlock(estate, owner="a")
        [lock] = locks(estate)
        commands = [way.split("`")[1] for way in lock.remedies]
        assert commands[1].endswith(f"{lock.id} --owner a --shard {estate.db}.t2")
        arguments = {"lock": lock.id, "owner": "a", "shard": f"{estate.db}.t2", "skip": False}
        assert (await operator_commands.unlock(estate.running.coordination, arguments)).ok
        await rows(estate, [(b"1", b"70000")])
        other = {"lock": lock.id, "owner": "", "shard": "x.t2", "skip": False}
        refused = await operator_commands.unlock(estate.running.coordination, other)
        assert "together with its source" in refused.error


async def test_each_unlock_finds_the_next_lock(estate: ShardedEstate) -> None:
    """It is open, or opens when the lock before it is resolved."""
    estate.create("A1", "B1")
    async with estate.merging():
        for number in range(3):
            estate.ddl("A1", f"ADD c{number} INT")
            estate.insert("A1", ", ".join(map(str, range(number, 2 * number + 2))))
        await estate.caught_up()
        for version in range(1, 4):
            arguments = {"lock": f"{estate.db}.t:{version}", "owner": "", "skip": False}
            reply = await operator_commands.unlock(estate.running.coordination, arguments)
            assert reply.ok, reply.error
        columns = [None if kept is None else str(kept).encode() for kept in (0, 1, None, None)]
        await rows(
            estate,
            [tuple(columns), (b"1", b"2", b"3", None), (b"2", b"3", b"4", b"5")],
        )


async def test_case_011_unlocked_for_the_other_source(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c1 INT")
        estate.ddl("B1", "ADD c1 BIGINT")
        estate.insert("A1", "1, 2")
        estate.insert("B1", "3, 5000000000")
        await estate.caught_up()
        assert await unlock(estate, owner="b") == ""
        await rows(estate, [(b"1", b"2"), (b"3", b"5000000000")])
        # Both have had their own statement: the next one is an ordinary one.
        estate.ddl("A1", "ADD d INT")
        estate.ddl("B1", "ADD d INT")
        estate.insert("B1", "4, 1, 2")
        await rows(estate, [(b"1", b"2", None), (b"3", b"5000000000", None), (b"4", b"1", b"2")])


async def test_unlock_before_the_other_shard_has_it(estate: ShardedEstate) -> None:
    estate.create("A1", "A2", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD c INT DEFAULT 9")
        estate.insert("A1", "1, 1")
        estate.insert("A2", "2")
        await estate.caught_up()
        [lock] = locks(estate)
        assert (lock.state, lock.owner, lock.rows_held) == ("waiting", "", 1)
        assert [(s.source, s.ready, s.missing) for s in lock.sources] == [
            ("a", False, (f"{estate.db}.t2",)),
            ("b", False, (f"{estate.db}.t1",)),
        ]
        assert lock.since is not None
        assert abs((now() - lock.since).total_seconds()) < PATIENCE
        assert await unlock(estate) == ""
        estate.insert("A2", "3")
        estate.insert("B1", "4")
        await rows(estate, [(b"1", b"1"), (b"2", b"9"), (b"3", b"9"), (b"4", b"9")])
        estate.ddl("A2", "ADD c INT DEFAULT 9")
        estate.ddl("B1", "ADD c INT DEFAULT 9")
        await estate.caught_up()
        await estate.equal()
        with anyio.fail_after(PATIENCE):
            while locks(estate):
                await anyio.sleep(0.02)


async def test_skip_leaves_the_target_alone(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        estate.ddl("A1", "ADD UNIQUE KEY u (id)")
        estate.insert("A1", "1")
        estate.insert("B1", "2")
        await estate.caught_up()
        assert await unlock(estate, skip=True) == ""
        await rows(estate, [(b"1",), (b"2",)])
        keys = estate.target.execute(f"SHOW KEYS FROM {estate.db}.t")
        assert {str(key[2]) for key in keys} == {"PRIMARY"}


async def test_what_cannot_be_unlocked(estate: ShardedEstate) -> None:
    estate.create("A1", "B1")
    async with estate.merging():
        error = await unlock(estate, "s.t:1")
        assert "there is no lock s.t:1; open locks: none" in error
        estate.ddl("A1", "ADD c INT")
        await estate.caught_up()
        assert f"open locks: {estate.db}.t:1" in await unlock(estate, "s.t:1")
        assert "source b has no statement" in await unlock(estate, owner="b")
    reply = await operator_commands.unlock(None, {"lock": "x", "owner": "", "skip": False})
    assert "resume it" in reply.error


async def test_locks_are_unlocked_one_right_after_the_other(estate: ShardedEstate) -> None:
    """Each unlock restarts the source whose rows it releases."""
    estate.create("A1", "B1")
    async with estate.merging():
        for number, column in enumerate("cde", start=1):
            estate.ddl("A1", f"ADD {column} INT")
            estate.insert("A1", ", ".join([str(number)] * (number + 1)))
        await estate.caught_up()
        for version in (1, 2, 3):
            assert await unlock(estate, f"{estate.db}.t:{version}", "a") == ""
        for column in "cde":
            estate.ddl("B1", f"ADD {column} INT")
        await estate.settled()


@pytest.mark.slow
def test_the_commands_show_a_lock_and_unlock_it(estate: ShardedEstate, tmp_path: Path) -> None:
    estate.create("A1", "B1")
    path = write_task(tmp_path, {**estate.task, "shard-mode": "pessimistic"})
    lock = f"{estate.db}.t:1"
    with task_process(path, tmp_path) as task:
        task.until_logged("task.running")
        estate.ddl("A1", "ADD c INT")
        task.until_logged("lock.item")
        shown = task.cli("show-ddl-locks", str(path), "--json")
        assert shown.returncode == 0, shown.stderr
        [found] = json.loads(shown.stdout)["locks"]
        assert (found["id"], found["owner"], found["state"]) == (lock, "a", "waiting")
        assert [s["missing"] for s in found["sources"]] == [[], [f"{estate.db}.t1"]]
        for command in ("show-ddl-locks", "status"):
            text = task.cli(command, estate.db).stdout
            assert lock in text
            assert "unlock-ddl-lock" in text
        wrong = task.cli("unlock-ddl-lock", estate.db, lock, "--shard", f"{estate.db}.t1")
        assert wrong.returncode == 2
        refused = task.cli("unlock-ddl-lock", estate.db, "nowhere.t:1")
        assert refused.returncode == 1
        assert f"open locks: {lock}" in refused.stderr.replace("\n", " ")
        assert task.cli("unlock-ddl-lock", "nowhere", lock).returncode == 3
        done = task.cli("unlock-ddl-lock", estate.db, lock, "--owner", "a")
        assert done.returncode == 0, done.stderr
        task.until_logged("lock.resolved")
        assert "no open locks" in task.cli("show-ddl-locks", estate.db).stdout


async def test_purging_is_told_early_and_when_it_has_happened(
    start_server: StartServer,
    target_server: DatabaseServer,
    database_name: str,
    spark: SparkContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purge_watch, "WATCH_SECONDS", 0.1)
    source = start_server(MariaDBServer)
    estate = ShardedEstate({"a": source}, target_server, database_name, spark, tmp_path)
    estate.create("A1", "A2")
    with capture_logs() as logged, pytest.raises(BaseExceptionGroup) as raised:
        await _purge_what_is_needed(estate, source)
    near = [entry for entry in logged if entry["event"] == "source.purge-near"]
    assert near, "told before it happened"
    assert (near[-1]["files_left"], near[-1]["locks"]) == (0, [f"{estate.db}.t:1"])
    leaves = raised.value.subgroup(FatalError)
    assert leaves is not None
    fault: BaseException = leaves
    while isinstance(fault, BaseExceptionGroup):
        [fault] = fault.exceptions
    assert isinstance(fault, FatalError)
    assert fault.event == "source.purged"
    assert f"{estate.db}.t:1" in fault.message


async def _purge_what_is_needed(estate: ShardedEstate, source: DatabaseServer) -> None:
    async with estate.merging() as generation:
        estate.ddl("A1", "ADD c INT")
        await estate.caught_up()
        for key in range(2):
            source.execute("FLUSH BINARY LOGS")
            estate.insert("A1", f"{key}, 1")
        await estate.caught_up()
        assert generation.running is not None
        with anyio.fail_after(PATIENCE):
            while generation.running.watch.distances["a"].files_behind < 2:
                await anyio.sleep(0.02)
        [lock] = locks(estate)
        [found] = lock.sources
        assert found.distance is not None
        assert (found.distance.files_behind, found.distance.files_left) == (2, 0)
        assert found.distance.bytes_behind > 0
        last = source.execute("SHOW MASTER STATUS")[0][0]
        with anyio.move_on_after(PATIENCE):
            while True:
                # The server keeps files back for a while that its own recovery may need.
                source.execute(f"PURGE BINARY LOGS TO '{last}'")
                await anyio.sleep(0.2)
