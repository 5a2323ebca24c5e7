"""What the target server does without us: loading a file, replaying a binlog, being a replica."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, Backlog, Table
from benchmarks.processes import tree_seconds
from replicator.sandbox.server import DatabaseServer

REPLICA_SECONDS = 3600


@dataclass(slots=True)
class Baseline:
    """What one took: ``seconds``, and the CPU seconds of client and servers together."""

    seconds: float = 0.0
    cpu: float = 0.0

    def raw(self) -> dict[str, Any]:
        """All figures."""
        return asdict(self)


@contextmanager
def _timed() -> Iterator[Baseline]:
    """Filled in at the end of the block."""
    taken = Baseline()
    began, busy = time.monotonic(), tree_seconds(os.getpid())
    yield taken
    taken.seconds = time.monotonic() - began
    taken.cpu = tree_seconds(os.getpid()) - busy


def load_data(
    table: Table, target: DatabaseServer, file: Path, character_set: str = "utf8mb4"
) -> Baseline:
    """One LOAD DATA LOCAL into the empty merged table."""
    with (
        target.connect(local_infile=True) as connection,
        connection.cursor() as cursor,
        _timed() as taken,
    ):
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table.merged}"
            f" CHARACTER SET {character_set}"
        )
    return taken


def replay(backlog: Backlog, target: DatabaseServer) -> Baseline:
    """The servers' own clients run a source's binlog on the target.

    The shards must be there as they were at the backlog's start.
    """
    (source,), (start,), (end,) = backlog.estate.servers, backlog.starts, backlog.ends
    if start.file != end.file:
        raise BenchmarkError("the backlog lies in several binlog files")
    reader = [
        client("mariadb-binlog"),
        "--no-defaults",
        f"--start-position={start.offset}",
        f"--stop-position={end.offset}",
        str(source.folder / "data" / start.file),
    ]
    return piped(reader, [client("mariadb"), "--no-defaults", *login(target)])


def replicate(backlog: Backlog, target: DatabaseServer) -> Baseline:
    """The target as a native replica, from START SLAVE until it has caught up.

    Two threads apply in parallel, optimistically. The shards must be there as they were
    at the backlog's start.
    """
    (source,), (start,), (end,) = backlog.estate.servers, backlog.starts, backlog.ends
    target.execute(
        "SET GLOBAL slave_parallel_threads=2",
        "SET GLOBAL slave_parallel_mode='optimistic'",
        f"CHANGE MASTER TO master_host='{source.host}', master_port={source.port},"
        f" master_user='{source.user}', master_log_file='{start.file}',"
        f" master_log_pos={start.offset}, master_use_gtid=no",
    )
    with _timed() as taken:
        target.execute("START SLAVE")
        ((waited,),) = target.execute(
            f"SELECT MASTER_POS_WAIT('{end.file}', {end.offset}, {REPLICA_SECONDS})"
        )
    status = target.execute("SHOW SLAVE STATUS")[0]
    target.execute("STOP SLAVE", "RESET SLAVE ALL")
    if waited is None or waited < 0:
        raise BenchmarkError(f"the replica has not caught up: {[v for v in status if v]}")
    return taken


def dump_and_load(source: DatabaseServer, target: DatabaseServer) -> Baseline:
    """`mariadb-dump | mariadb` with the shards as they are, into an empty schema."""
    target.execute(f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}")
    dump = [client("mariadb-dump"), "--no-defaults", "--single-transaction", *login(source)]
    dump += ["--default-character-set=utf8mb4", SCHEMA]
    return piped(dump, [client("mariadb"), "--no-defaults", *login(target), SCHEMA])


def piped(reader: list[str], writer: list[str]) -> Baseline:
    """One program writes what another one reads."""
    with _timed() as taken, subprocess.Popen(reader, stdout=subprocess.PIPE) as reading:
        written = subprocess.run(writer, stdin=reading.stdout, check=False, capture_output=True)
    if reading.returncode or written.returncode:
        raise BenchmarkError(f"{reader[0]} failed: {written.stderr.decode(errors='replace')}")
    return taken


def login(server: DatabaseServer) -> list[str]:
    """Where a client program finds the server."""
    return [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"]


def client(program: str) -> str:
    """The path of a client program. Raises BenchmarkError."""
    path = shutil.which(program)
    if path is None:
        raise BenchmarkError(f"there is no {program}: install the package mariadb-client")
    return path
