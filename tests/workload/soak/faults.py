"""The faults of a soak. Each begins, lasts some seconds, and ends; nobody helps the task."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pymysql

from replicator.binlog.positions.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.faulty_proxy import Fault as LineFault
from tests.support.servers.faulty_proxy import FaultyLine
from tests.support.tasks.processes import TaskProcess, place_of
from tests.workload.soak.estate import (
    READER,
    READER_RIGHTS,
    TASK,
    WRITER,
    WRITER_RIGHTS,
    Estate,
    Source,
    processes_of,
    send,
)

SLOW_BYTES_PER_SECOND = 40_000.0
PURGE_SECONDS = 30.0
CLOCK_SECONDS = 5_400
"""How far the clock of a source jumps."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What a fault may act upon.

    Attributes:
        seconds: how long a fault lasts.
        relay: whether the task has relay logs.
    """

    estate: Estate
    task: TaskProcess
    random: Random
    seconds: float
    relay: bool

    def source(self) -> Source:
        return self.random.choice(list(self.estate.sources.values()))

    def line(self) -> FaultyLine:
        lines = [source.line for source in self.estate.sources.values()]
        return self.random.choice([*lines, self.estate.target_line])

    def last(self) -> None:
        """Wait as long as a fault lasts."""
        time.sleep(self.seconds)


def kill_task(scene: Scene) -> None:
    """Kill the task's own process."""
    scene.task.process.kill()
    scene.task.process.wait()


def kill_all(scene: Scene) -> None:
    """Kill the task and every process that it has started."""
    children = list(scene.task.descendants())
    kill_task(scene)
    send(children, signal.SIGKILL)


def kill_child(scene: Scene) -> None:
    """Kill one of the processes that the task has started: Java, or a worker."""
    if children := sorted(scene.task.descendants()):
        send([scene.random.choice(children)], signal.SIGKILL)


def kill_workers(scene: Scene) -> None:
    """Kill all of Spark's Python workers."""
    words = scene.task.descendants()
    send([pid for pid, text in words.items() if "worker_fork" in text], signal.SIGKILL)


def freeze_task(scene: Scene) -> None:
    """Stop the task's own process, and continue it."""
    send([scene.task.process.pid], signal.SIGSTOP)
    scene.last()
    send([scene.task.process.pid], signal.SIGCONT)


def kill_source(scene: Scene) -> None:
    """Kill a source, and start it again."""
    _kill_server(scene, scene.source().server)


def kill_target(scene: Scene) -> None:
    """Kill the target, and start it again."""
    _kill_server(scene, scene.estate.target)


def _kill_server(scene: Scene, server: DatabaseServer) -> None:
    server.kill()
    time.sleep(scene.seconds / 3)
    server.start()


def freeze_source(scene: Scene) -> None:
    """Stop the process of a source, and continue it."""
    _freeze(scene, scene.source().server)


def freeze_target(scene: Scene) -> None:
    """Stop the process of the target, and continue it."""
    _freeze(scene, scene.estate.target)


def _freeze(scene: Scene, server: DatabaseServer) -> None:
    processes = processes_of(server)
    send(processes, signal.SIGSTOP)
    scene.last()
    send(processes, signal.SIGCONT)


def kill_connections(scene: Scene) -> None:
    """End all sessions of the task at a server by KILL."""
    servers = [*scene.estate.servers.values(), scene.estate.target]
    server = scene.random.choice(servers)
    for row in server.execute("SHOW PROCESSLIST"):
        if row[1] in (READER, WRITER):
            with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InternalError):
                server.execute(f"KILL {int(row[0])}")


def slow_network(scene: Scene) -> None:
    """Let a line pass few bytes a second."""
    line = scene.line()
    line.bytes_per_second = SLOW_BYTES_PER_SECOND
    scene.last()
    line.bytes_per_second = None


def cut_network(scene: Scene) -> None:
    """Let a line pass nothing on, and then all that was sent."""
    line = scene.line()
    line.cut()
    scene.last()
    line.mend()


def half_open(scene: Scene) -> None:
    """Let all connections of a line vanish, as behind a firewall that has forgotten them."""
    scene.line().break_all(LineFault.VANISH)


def reset_connections(scene: Scene) -> None:
    """Reset all connections of a line."""
    scene.line().break_all(LineFault.RESET)


def full_task_disk(scene: Scene) -> None:
    """Fill the disk with the task's relay logs and temporary files."""
    _fill(scene, scene.estate.disks["task"])


def full_target_disk(scene: Scene) -> None:
    """Fill the disk with the target's binlog."""
    _fill(scene, scene.estate.disks["target"])


def _fill(scene: Scene, disk: Path) -> None:
    filling = disk / "filling"
    with filling.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), 1 << 20)
    with filling.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 12))
    scene.last()
    filling.unlink()


def purge(scene: Scene) -> None:
    """Purge the binlogs of a source that its replica and the task have read.

    A source whose relay log has all of a file may purge it, else one that the task has saved.
    """
    source = scene.source()
    if source.pair is not None:
        source.pair.until_replicated()
    source.server.execute("FLUSH BINARY LOGS")
    end = end_of(source.server)
    deadline = time.monotonic() + PURGE_SECONDS
    while time.monotonic() < deadline:
        if (place := _kept(scene, source)) is not None and place.key >= end.key:
            source.server.execute(f"PURGE BINARY LOGS TO '{end.file}'")
            return
        time.sleep(0.5)
    # A task that is behind needs its binlog.


def _kept(scene: Scene, source: Source) -> BinlogPosition | None:
    """Return the position up to which the task no longer needs the source."""
    status = scene.task.status(TASK)
    for found in status.sources if status is not None else ():
        if found.source == source.name:
            if not scene.relay:
                return place_of(found.saved_position) if found.saved_position else None
            if found.relay is not None and not found.relay.error:
                return place_of(found.relay.end)
    return None


def fail_over(scene: Scene) -> None:
    """Kill the source that has a replica, and let the replica take over its address."""
    source = next(s for s in scene.estate.sources.values() if s.pair is not None)
    pair = source.pair
    assert pair is not None
    with source.writing:
        pair.until_replicated()
        pair.primary.kill()
        source.server = pair.promote()
        source.line.switch(source.server.port)
    scene.last()
    pair.primary.start()
    pair.follow(pair.primary, pair.replica)
    pair.primary, pair.replica = pair.replica, pair.primary


def jump_clock(scene: Scene) -> None:
    """Let the clock of those who write to a source be wrong by more than an hour."""
    source = scene.source()
    source.clock = scene.random.choice((-1, 1)) * CLOCK_SECONDS
    scene.last()
    source.clock = 0


def lock_source(scene: Scene) -> None:
    """Let a backup at a source hold up all that writes."""
    _lock(scene, scene.source().server, "FLUSH TABLES WITH READ LOCK")


def lock_target(scene: Scene) -> None:
    """Let somebody lock a target's table."""
    _lock(scene, scene.estate.target, "LOCK TABLES merged.plain WRITE, merged.bag WRITE")


def _lock(scene: Scene, server: DatabaseServer, statement: str) -> None:
    with closing(server.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SET lock_wait_timeout = 10")
        with contextlib.suppress(pymysql.err.OperationalError):
            cursor.execute(statement)
            scene.last()


def revoke_at_source(scene: Scene) -> None:
    """Take the task's rights at a source away, end its sessions, and give the rights back."""
    _revoke(scene, scene.source().server, READER, READER_RIGHTS)


def revoke_at_target(scene: Scene) -> None:
    """Take the task's rights at the target away, end its sessions, and give them back."""
    _revoke(scene, scene.estate.target, WRITER, WRITER_RIGHTS)


def _revoke(scene: Scene, server: DatabaseServer, account: str, rights: str) -> None:
    server.execute(f"REVOKE ALL PRIVILEGES, GRANT OPTION FROM '{account}'@'127.0.0.1'")
    for row in server.execute("SHOW PROCESSLIST"):
        if row[1] == account:
            with contextlib.suppress(pymysql.err.OperationalError, pymysql.err.InternalError):
                server.execute(f"KILL {int(row[0])}")
    scene.last()
    server.execute(f"GRANT {rights} TO '{account}'@'127.0.0.1'")


FAULTS: Mapping[str, Callable[[Scene], None]] = {
    fault.__name__.replace("_", "-"): fault
    for fault in (
        kill_task,
        kill_all,
        kill_child,
        kill_workers,
        freeze_task,
        kill_source,
        kill_target,
        freeze_source,
        freeze_target,
        kill_connections,
        slow_network,
        cut_network,
        half_open,
        reset_connections,
        full_task_disk,
        full_target_disk,
        purge,
        fail_over,
        jump_clock,
        lock_source,
        lock_target,
        revoke_at_source,
        revoke_at_target,
    )
}
NEEDS_DISK = {"full-task-disk": "task", "full-target-disk": "target"}
