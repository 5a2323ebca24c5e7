"""What the target server does without us: loading a file, replaying a binlog."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

from benchmarks.task import BenchmarkError
from benchmarks.workloads import TARGET_SCHEMA, Table
from replicator.binlog.position import BinlogPosition
from replicator.sandbox.server import DatabaseServer


def load_data(table: Table, target: DatabaseServer, file: Path) -> float:
    """Seconds that one LOAD DATA LOCAL takes into the empty merged table."""
    table.create_target(target)
    with target.connect(local_infile=True) as connection, connection.cursor() as cursor:
        started = time.monotonic()
        cursor.execute(
            f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {TARGET_SCHEMA}.{table.name}"
            " CHARACTER SET utf8mb4"
        )
        return time.monotonic() - started


def replay(
    source: DatabaseServer, start: BinlogPosition, end: BinlogPosition, target: DatabaseServer
) -> float:
    """Seconds that the servers' own clients take to run the source's binlog on the target.

    It makes the shards there, which must be as they were at ``start``.
    """
    if start.file != end.file:
        raise BenchmarkError("the backlog lies in several binlog files")
    reader = [
        client("mariadb-binlog"),
        "--no-defaults",
        f"--start-position={start.offset}",
        f"--stop-position={end.offset}",
        str(source.folder / "data" / start.file),
    ]
    writer = [
        client("mariadb"),
        "--no-defaults",
        f"--host={target.host}",
        f"--port={target.port}",
        f"--user={target.user}",
    ]
    started = time.monotonic()
    with subprocess.Popen(reader, stdout=subprocess.PIPE) as reading:
        written = subprocess.run(writer, stdin=reading.stdout, check=False, capture_output=True)
    if reading.returncode or written.returncode:
        raise BenchmarkError(f"the replay failed: {written.stderr.decode(errors='replace')}")
    return time.monotonic() - started


def client(program: str) -> str:
    """The path of a client program. Raises BenchmarkError."""
    path = shutil.which(program)
    if path is None:
        raise BenchmarkError(f"there is no {program}: install the package mariadb-client")
    return path
