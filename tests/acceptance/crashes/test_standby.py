"""Hosts that take a task over from one another: exactly once, and two never write.

A folder of its own is a runtime directory of its own, as on another host.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from replicator.failpoints import Failpoint
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.faulty_proxy import Fault, FaultyLine, Trap, Way
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import LOOK_SECONDS, PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow

STEPS = (
    f"{Failpoint.CHUNK_COMMITTED}:3",
    f"{Failpoint.COPY_FINISHED}:1",
    f"{Failpoint.SEGMENT_READ}:3",
    f"{Failpoint.BATCH_SUBMITTED}:3",
    f"{Failpoint.ROWS_WRITTEN}:3",
    f"{Failpoint.WATERMARKS_WRITTEN}:3",
    f"{Failpoint.BUCKET_COMMITTED}:3",
    f"{Failpoint.BATCH_APPLIED}:3",
    f"{Failpoint.CHECKPOINT_OPEN}:3",
    f"{Failpoint.CHECKPOINT_SAVED}:3",
    f"{Failpoint.LOCK_AGREED}:1",
    f"{Failpoint.LOCK_DECIDED}:1",
    f"{Failpoint.DDL_RECORDED}:1",
    f"{Failpoint.DDL_EXECUTED}:1",
    f"{Failpoint.DDL_FINISHED}:1",
)
"""Where one host after the other dies, each while the next one stands by."""


class Hosts:
    """Processes that stand by, each in a folder of its own."""

    def __init__(self, held: ExitStack, folder: Path) -> None:
        self._held = held
        self._folder = folder
        self._number = 0

    def start(self, file: Path, crash_at: str = "", *, own_name: bool = False) -> TaskProcess:
        """``own_name``: with a name of the host of its own, so that nobody sees there that the
        process of another host is gone, but only that its lease has run out."""
        self._number += 1
        name = f"host{self._number}"
        folder = self._folder / name
        folder.mkdir()
        env = {"REPLICATOR_CRASH_AT": crash_at} if crash_at else {}
        program = ("-m", "cli")
        if own_name:
            env["REPLICATOR_TEST_HOST"] = name
            program = ("-m", "tests.support.tasks.other_host")
        context = task_process(file, folder, "--standby", env=env, program=program)
        return self._held.enter_context(context)


def is_equal(shards: Shards) -> bool:
    """Whether target and shards are equal: rows that a lock holds come later than others."""
    try:
        shards.assert_equal()
    except AssertionError:
        return False
    return True


def until_it_runs(host: TaskProcess) -> None:
    """Wait until a process has the lease, or has had it: it may die at any moment."""
    deadline = time.monotonic() + PATIENCE
    while "task.running" not in {e["event"] for e in host.events()}:
        assert time.monotonic() < deadline, host.tail()
        time.sleep(LOOK_SECONDS)


def test_each_host_takes_over_from_one_that_was_killed(
    mariadb_source: DatabaseServer,
    mariadb_source_full: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source, mariadb_source_full], target_server, database_name)
    shards.change()
    file = write_task(tmp_path, {**copy_task(shards), "shard-mode": "pessimistic"})
    with ExitStack() as held:
        hosts = Hosts(held, tmp_path)
        first = hosts.start(file, STEPS[0])
        for step in (*STEPS[1:], ""):
            until_it_runs(first)
            # The first one may die before this one stands by.
            second = hosts.start(file, step)
            if first.status(database_name) is not None:
                shards.change()
                shards.alter()
                shards.change()
            assert first.process.wait(PATIENCE) == -signal.SIGKILL, first.tail()
            first = second
        first.until(lambda: is_equal(shards), "equal rows")
        assert first.cli("stop", database_name).returncode == 0
        assert first.process.wait(PATIENCE) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may name a host")
def test_a_host_that_is_cut_off_writes_nothing_when_it_is_back(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source], target_server, database_name)
    values = shards.task()
    direct = write_task(tmp_path, values)
    with ExitStack() as held:
        to_target = held.enter_context(FaultyLine(target_server.port))
        to_source = held.enter_context(FaultyLine(mariadb_source.port))
        values["target-database"]["port"] = to_target.port
        values["sources"][0]["from"]["port"] = to_source.port
        (tmp_path / "by-lines").mkdir()
        hosts = Hosts(held, tmp_path)
        first = hosts.start(write_task(tmp_path / "by-lines", values), own_name=True)
        first.until_state(database_name, "running")
        second = hosts.start(direct, own_name=True)
        seen = second.until_state(database_name, "standby")
        assert f"process {first.process.pid} on host host1" in seen.standby_for
        with shards.changing():
            # A transaction is open, with rows and watermarks in it, and its COMMIT on the way.
            commit = to_target.set(Trap(Way.TO_SERVER, Fault.STALL, b"COMMIT"))
            assert commit.sprung.wait(PATIENCE)
            to_target.cut()
            to_source.cut()
            second.until_logged("task.takeover")
            second.until_state(database_name, "running")
            second.until_applied(database_name, shards.sources)
            to_target.mend()
            to_source.mend()
            first.until_logged("task.lease-lost")
            first.until_state(database_name, "standby")
        second.until_applied(database_name, shards.sources)
        shards.assert_equal()
        # And back again, as often as it has to be.
        second.process.kill()
        first.until_logged("task.takeover")
        shards.change()
        first.until_applied(database_name, shards.sources)
        shards.assert_equal()
        assert first.cli("stop", database_name).returncode == 0
        assert first.process.wait(PATIENCE) == 0
        told = [
            e["event"] for e in first.events() if e["event"] in ("task.standby", "task.stopped")
        ]
        assert told == ["task.standby", "task.stopped"]
