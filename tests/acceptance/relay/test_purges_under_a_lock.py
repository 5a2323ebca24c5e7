"""Sources purge while a lock is open: all rows arrive, and no source sends an event twice.

``REPLICATOR_LOCK_MINUTES`` is the time for which the lock is open, with a purge every minute. By
default it is open for a few purges, without a pause between them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.acceptance.crashes.test_crashes import stop
from tests.acceptance.crashes.test_moved_rows import is_equal
from tests.conftest import StartServer
from tests.support.memory import resident
from tests.support.servers.binlog_ends import end_of
from tests.support.servers.relay import Relay, shut
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

MINUTES = float(os.environ.get("REPLICATOR_LOCK_MINUTES", "0"))
PURGES = max(6, int(MINUTES))
PURGE_SECONDS = 60.0 * MINUTES / PURGES
LONG = PATIENCE + 30 * MINUTES
"""Seconds in which the held rows are applied."""
PAUSE = 1.0 if MINUTES else 0.1
"""Seconds between two rounds of changes."""
DUMPS = (0x12, 0x1E)
"""COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID."""
FRAMING = 1.1
"""The packets of the events may have this many times their size."""
BUFFERED = 8 << 20
"""Bytes that a server may have sent when the checks and look-ups of a start end their reading."""
BACKLOG = "INSERT INTO bag (a, b) SELECT seq, REPEAT('y', 1950) FROM seq_1_to_8000"
"""Is written before the first start: a source that sends it twice has sent too much."""


class CountingLine(Relay):
    """Passes connections on, and counts the bytes that the server sends.

    Attributes:
        dumped: bytes of the connections that have requested the binlog, from then on.
        others: bytes of all other answers.
        dumps: number of requests for the binlog.
    """

    def __init__(self, backend: int) -> None:
        self.dumped = self.others = self.dumps = 0
        super().__init__(backend)

    def _take(self, client: socket.socket, server: socket.socket) -> None:
        self._start(partial(self._serve, client, server))

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        dumping = threading.Event()
        with client, server:
            back = threading.Thread(
                target=self._answers, args=(server, client, dumping), daemon=True
            )
            back.start()
            self._requests(client, server, dumping)
            back.join()

    def _requests(
        self, client: socket.socket, server: socket.socket, dumping: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if not dumping.is_set() and any(command in DUMPS for command in commands(data)):
                    dumping.set()
                    with self._lock:
                        self.dumps += 1
                server.sendall(data)
        shut(server)

    def _answers(
        self, server: socket.socket, client: socket.socket, dumping: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                with self._lock:
                    if dumping.is_set():
                        self.dumped += len(data)
                    else:
                        self.others += len(data)
                client.sendall(data)
        shut(client)


def commands(data: bytes) -> Iterator[int]:
    """The commands of packets; a client sends small ones, and several of them together."""
    while len(data) > 4:
        if data[3] == 0:
            yield data[4]
        data = data[4 + int.from_bytes(data[:3], "little") :]


@pytest.fixture
def shards(start_server: StartServer, target_server: DatabaseServer, database_name: str) -> Shards:
    servers = [start_server(MariaDBServer) for _ in range(2)]
    for server in servers:
        server.execute("FLUSH BINARY LOGS")
    return Shards(servers, target_server, database_name)


@pytest.fixture
def lines(shards: Shards) -> Iterator[dict[str, CountingLine]]:
    with ExitStack() as opened:
        yield {
            source: opened.enter_context(CountingLine(server.port))
            for source, server in shards.sources.items()
        }


@pytest.mark.slow
@pytest.mark.timeout(900 + 120 * MINUTES)
def test_no_event_is_sent_twice(
    shards: Shards, lines: dict[str, CountingLine], tmp_path: Path
) -> None:
    values = shards.task(**{"shard-mode": "pessimistic"})
    for source in values["sources"]:
        source |= {"relay-dir": str(tmp_path / "relay"), "enable-relay": True}
        source["from"]["port"] = lines[source["source-id"]].port
    path, memory = write_task(tmp_path, values), list[int]()
    sizes: dict[str, dict[str, int]] = {source: {} for source in shards.sources}
    for server in shards.servers:
        server.execute(BACKLOG, database=shards.database)
    with shards.changing(pause=PAUSE):
        with task_process(path, tmp_path) as task:
            task.until_logged("task.running")
            alter(shards, "a", "t1")
            for _ in range(PURGES // 2):
                purge(shards, task, sizes)
                memory.append(resident(task.process.pid) >> 20)
            # The next one begins with the lock open, and has nothing but the files.
            task.process.kill()
            task.until_alone()
        with task_process(path, tmp_path) as task:
            for _ in range(PURGES - PURGES // 2):
                purge(shards, task, sizes)
                memory.append(resident(task.process.pid) >> 20)
            (lock,) = task.until_state(shards.database, "running").locks
            for source, table in (("a", "t2"), ("b", "t1"), ("b", "t2")):
                alter(shards, source, table)
            task.until_applied(shards.database, shards.sources, LONG)
    with task_process(path, tmp_path) as task:
        task.until_applied(shards.database, shards.sources, LONG)
        state = partial(task.until_state, shards.database, "running")
        task.until(lambda: not state().locks, "the end of the lock", LONG)
        # The held rows are read again, from the files, when the lock is resolved.
        task.until(partial(is_equal, shards), "equal rows", LONG)
        note_sizes(shards, sizes)
        stop(task, shards.database)
    figures = {
        source: {
            "written": sum(sizes[source].values()),
            "dumped": line.dumped,
            "dumps": line.dumps,
            "others": line.others,
            "files": len(sizes[source]),
        }
        for source, line in lines.items()
    }
    ((rows,),) = shards.target.execute(f"SELECT COUNT(*) FROM {shards.database}.t")
    found = {**figures, "rows": rows, "held": lock.rows_held, "MiB": memory}
    logging.getLogger(__name__).warning(json.dumps(found))
    logged = {entry["event"] for entry in task.events()}
    assert not logged & {"relay.failed", "relay.set-aside", "source.purged", "source.purge-near"}
    for figure in figures.values():
        assert figure["files"] > PURGES
        assert figure["written"] <= figure["dumped"] < FRAMING * figure["written"] + BUFFERED


def alter(shards: Shards, source: str, table: str) -> None:
    shards.sources[source].execute(f"ALTER TABLE {shards.database}.{table} ADD c INT DEFAULT 5")


def purge(shards: Shards, task: TaskProcess, sizes: dict[str, dict[str, int]]) -> None:
    """Let the sources write for a while, and then keep only their newest files."""
    time.sleep(PURGE_SECONDS)
    task.until_applied(shards.database, shards.sources)
    for server in shards.servers:
        server.execute("FLUSH BINARY LOGS")
    note_sizes(shards, sizes)
    for server in shards.servers:
        newest = end_of(server).file

        def alone(server: DatabaseServer = server, newest: str = newest) -> bool:
            # The server keeps files back for a while that its own recovery may need.
            server.execute(f"PURGE BINARY LOGS TO '{newest}'")
            return bool(server.execute("SHOW BINARY LOGS")[0][0] == newest)

        task.until(alone, "a purge")


def note_sizes(shards: Shards, sizes: dict[str, dict[str, int]]) -> None:
    """Note the sizes of the present files of all sources."""
    for source, server in shards.sources.items():
        sizes[source] |= {name: size for name, size, *_ in server.execute("SHOW BINARY LOGS")}
