"""What the target server does without us: loading a file, replaying a binlog, being a replica."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, Backlog, Table
from replicator.sandbox.server import DatabaseServer

REPLICA_SECONDS = 3600


def load_data(
    table: Table, target: DatabaseServer, file: Path, character_set: str = "utf8mb4"
) -> float:
    """Seconds that one LOAD DATA LOCAL takes into the empty merged table."""
    with target.connect(local_infile=True) as connection, connection.cursor() as cursor:
        started = time.monotonic()
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table.merged}"
            f" CHARACTER SET {character_set}"
        )
        return time.monotonic() - started


def replay(backlog: Backlog, target: DatabaseServer) -> float:
    """Seconds that the servers' own clients take to run a source's binlog on the target.

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


def replicate(backlog: Backlog, target: DatabaseServer) -> float:
    """Seconds that a native replica takes, from START SLAVE until it has caught up.

    With two threads that apply in parallel, optimistically. The shards must be there as they were
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
    started = time.monotonic()
    target.execute("START SLAVE")
    ((waited,),) = target.execute(
        f"SELECT MASTER_POS_WAIT('{end.file}', {end.offset}, {REPLICA_SECONDS})"
    )
    seconds = time.monotonic() - started
    status = target.execute("SHOW SLAVE STATUS")[0]
    target.execute("STOP SLAVE", "RESET SLAVE ALL")
    if waited is None or waited < 0:
        raise BenchmarkError(f"the replica has not caught up: {[v for v in status if v]}")
    return seconds


def dump_and_load(source: DatabaseServer, target: DatabaseServer) -> float:
    """Seconds of `mariadb-dump | mariadb` with the shards as they are, into an empty schema."""
    target.execute(f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}")
    dump = [client("mariadb-dump"), "--no-defaults", "--single-transaction", *login(source)]
    dump += ["--default-character-set=utf8mb4", SCHEMA]
    return piped(dump, [client("mariadb"), "--no-defaults", *login(target), SCHEMA])


def piped(reader: list[str], writer: list[str]) -> float:
    """Seconds that one program takes to write what another one reads."""
    started = time.monotonic()
    with subprocess.Popen(reader, stdout=subprocess.PIPE) as reading:
        written = subprocess.run(writer, stdin=reading.stdout, check=False, capture_output=True)
    if reading.returncode or written.returncode:
        raise BenchmarkError(f"{reader[0]} failed: {written.stderr.decode(errors='replace')}")
    return time.monotonic() - started


def login(server: DatabaseServer) -> list[str]:
    """Where a client program finds the server."""
    return [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"]


def client(program: str) -> str:
    """The path of a client program. Raises BenchmarkError."""
    path = shutil.which(program)
    if path is None:
        raise BenchmarkError(f"there is no {program}: install the package mariadb-client")
    return path
