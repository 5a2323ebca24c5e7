"""What the target server does without us: loading a file, replaying a binlog, being a replica."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pymysql.cursors import Cursor

from benchmarks.errors import BenchmarkError
from benchmarks.estate import SCHEMA, Backlog, Estate, Table, cursors_of, types_of
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


CHUNK_ROWS = 50_000
"""Rows of a chunk of sync_diff_inspector's, by itself (its ``CalculateChunkSize``)."""

DIGITS = {"float": 5, "double": 14}
"""Digits behind the first one that count of a number, by its type."""


def chunk_checksums(
    estate: Estate, table: Table, target: DatabaseServer, function: str
) -> Baseline:
    """Checksums of chunks over one connection to each server, as sync_diff_inspector makes them.

    Chunk by chunk of the target's key, its checksum and those of all shards. ``function``: ``MD5``
    is that of pingcap/tiflow (``sync_diff_inspector/utils``, ``GetCountAndMD5Checksum``), and of
    pingcap/tidb-tools since its pull request 787 (2024); ``CRC32`` is that before it.
    """
    shards = estate.shards_of(table)
    with ExitStack() as resources, _timed() as taken:
        cursors = cursors_of((*estate.servers, target), resources)
        cursor = cursors[target.port]
        digest = _digest(types_of(cursor, table.merged), function)
        lower, differing = -1, 0
        while True:
            cursor.execute(
                f"SELECT id FROM {table.merged} WHERE id>{lower} ORDER BY id"
                f" LIMIT 1 OFFSET {CHUNK_ROWS - 1}"
            )
            found = cursor.fetchall()
            upper = found[0][0] if found else None
            where = f"id>{lower}" + (f" AND id<={upper}" if found else "")
            ours = _checksum(cursor, table.merged, digest, where)
            theirs = [_checksum(cursors[s.server.port], s.name, digest, where) for s in shards]
            rows, checksum = 0, 0
            for count, of_shard in theirs:
                rows, checksum = rows + count, checksum ^ of_shard
            differing += ours != (rows, checksum)
            if upper is None:
                break
            lower = upper
    if differing:
        raise BenchmarkError(f"{differing} chunks of {table.merged} differ")
    return taken


def _digest(types: Mapping[str, str], function: str) -> str:
    texts = [_text(column, DIGITS.get(kind, 0)) for column, kind in types.items()]
    columns, nulls = ",".join(texts), ",".join(f"ISNULL({text})" for text in texts)
    row = f"{function}(CONCAT_WS(',',{columns},CONCAT({nulls})))"
    if function == "CRC32":
        return f"CAST({row} AS UNSIGNED)"
    halves = (f"CAST(CONV(SUBSTRING({row},{at},16),16,10) AS UNSIGNED)" for at in (1, 17))
    return "^".join(halves)


def _text(column: str, digits: int) -> str:
    # A zero gives NULL so, as it does there.
    return f"ROUND({column},{digits}-FLOOR(LOG10(ABS({column}))))" if digits else column


def _checksum(cursor: Cursor, table: str, digest: str, where: str) -> tuple[int, int]:
    cursor.execute(f"SELECT COUNT(*),BIT_XOR({digest}) FROM {table} WHERE {where}")
    ((rows, checksum),) = cursor.fetchall()
    return int(rows), int(checksum)


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
