"""How fast a full copy is, beside the servers' own dump and load of the same rows.

``python -m benchmarks.full_copy`` needs nothing but the installed servers; see docs/performance.md.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from benchmarks.baselines import client
from benchmarks.processes import ProcessTreeWatch, cpu_seconds, machine_seconds
from benchmarks.task import BenchmarkError, endpoint
from benchmarks.workloads import ORDERS, SCHEMA, TARGET_SCHEMA
from replicator.sandbox.errors import SandboxError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer

OPTIONS = {
    "skip_log_bin": None,
    "innodb_buffer_pool_size": "2G",
    "innodb_log_file_size": "1G",
    "max_allowed_packet": "64M",
}
"""Room for all rows, so that no server waits for the disk."""

COPY_SECONDS = 3600.0
MIB = 1 << 20

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class CopyRun:
    """One run; ``seconds`` of the copy from its first look at the source to its end, ``start``
    what comes before (Java, Spark), CPU in seconds, memory in bytes."""

    rows: int
    size: int
    seconds: float
    start: float
    dump_seconds: float
    cpu: float
    cpu_servers: float
    cpu_machine: float
    memory: int
    memory_driver: int

    @property
    def ratio(self) -> float:
        """Our rate as a share of that of dump and load."""
        return self.dump_seconds / self.seconds


def main(
    rows: Annotated[int, typer.Option(help="Rows of nine columns, over four shards.")] = 3_000_000,
    runs: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 3,
    settings: Annotated[str, typer.Option(help="More of the task file, as YAML.")] = "{}",
    output: Annotated[Path, typer.Option(help="Where to write all figures as JSON.")] = Path(
        "benchmark-copy.json"
    ),
) -> None:
    """Measure the full copy and `mariadb-dump | mariadb` of the same rows, on private servers."""
    done: list[CopyRun] = []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="replicator-bench-") as name,
            MariaDBServer(OPTIONS) as source,
            MariaDBServer(OPTIONS) as target,
        ):
            with console.status("filling the shards"):
                _fill(source, rows)
            for number in range(runs):
                with console.status(f"run {number + 1} of {runs}"):
                    done.append(_run(source, target, Path(name), yaml.safe_load(settings)))
                console.print(done[-1], f"ratio {done[-1].ratio:.2f}")
                output.write_text(json.dumps([asdict(r) | {"ratio": r.ratio} for r in done]))
    except (BenchmarkError, SandboxError) as error:
        console.print(f"[red]{error}[/]")
        sys.exit(1)
    print(_markdown(done))


def _fill(source: DatabaseServer, rows: int) -> None:
    ORDERS.create_shards(source)
    each = rows // ORDERS.shards
    for shard, name in enumerate(ORDERS.shard_names()):
        source.execute(
            f"INSERT INTO {name} SELECT {shard} * 100000000 + seq, seq % 1000003, seq % 1000,"
            " ELT(1 + seq % 5, 'new', 'paid', 'packed', 'shipped', 'returned'),"
            " seq % 10000000 / 100, '2024-01-01' + INTERVAL seq % 31536000 SECOND,"
            " seq / 4096, CONCAT('Customer é ', HEX(seq)),"
            " REPEAT(CONCAT('order ', seq, ', to be left at the door'), seq % 3)"
            f" FROM seq_1_to_{each}",
            database=SCHEMA,
        )


def _run(
    source: DatabaseServer, target: DatabaseServer, folder: Path, settings: dict[str, Any]
) -> CopyRun:
    target.execute(f"DROP DATABASE IF EXISTS {SCHEMA}", f"CREATE DATABASE {SCHEMA}")
    dumped = _dump_and_load(source, target)
    target.execute(
        f"DROP DATABASE {SCHEMA}",
        f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}",
        f"DROP DATABASE IF EXISTS {TARGET_SCHEMA}_meta",
    )
    pids = [
        int(Path(str(s.execute("SELECT @@pid_file")[0][0])).read_text()) for s in (source, target)
    ]
    task_file, log = folder / "copy.yaml", folder / "copy.log"
    task_file.write_text(yaml.safe_dump(_task(source, target) | settings))
    log.unlink(missing_ok=True)
    began = time.time()
    busy, machine = sum(map(cpu_seconds, pids)), machine_seconds()
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", "run", str(task_file), "--log-file", str(log)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(folder), "XDG_RUNTIME_DIR": str(folder)},
    )
    with ProcessTreeWatch(process.pid) as watch:
        try:
            code = process.wait(COPY_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            process.wait()
            code = -1
    records = [json.loads(line) for line in log.read_text().splitlines()]
    summary = next((r for r in records if r["event"] == "copy.finished"), None)
    if code != 0 or summary is None:
        raise BenchmarkError(f"the copy ended with {code}: {records[-3:]}")
    _compare(source, target)
    total = time.time() - began
    return CopyRun(
        rows=summary["rows"],
        size=summary["bytes"],
        seconds=summary["seconds"],
        start=total - summary["seconds"],
        dump_seconds=dumped,
        cpu=watch.usage.cpu_driver + watch.usage.cpu_java + watch.usage.cpu_workers,
        cpu_servers=sum(map(cpu_seconds, pids)) - busy,
        cpu_machine=machine_seconds() - machine,
        memory=watch.usage.tree,
        memory_driver=watch.usage.driver,
    )


def _dump_and_load(source: DatabaseServer, target: DatabaseServer) -> float:
    """Seconds of `mariadb-dump | mariadb` with the shards as they are."""
    dump = [client("mariadb-dump"), "--no-defaults", "--single-transaction", *_login(source)]
    dump += ["--default-character-set=utf8mb4", SCHEMA]
    load = [client("mariadb"), "--no-defaults", *_login(target), SCHEMA]
    began = time.monotonic()
    with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
        loaded = subprocess.run(load, stdin=dumping.stdout, check=False, capture_output=True)
    if dumping.returncode or loaded.returncode:
        raise BenchmarkError(f"the dump failed: {loaded.stderr.decode(errors='replace')}")
    return time.monotonic() - began


def _login(server: DatabaseServer) -> list[str]:
    return [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}"]


def _compare(source: DatabaseServer, target: DatabaseServer) -> None:
    def sums(server: DatabaseServer, table: str) -> tuple[int, ...]:
        columns = "id,customer,quantity,status,price,created,weight,name,note"
        (row,) = server.execute(
            f"SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|',{columns}))) FROM {table}"
        )
        return tuple(map(int, row))

    shards = [sums(source, name) for name in ORDERS.shard_names()]
    merged = sums(target, f"{TARGET_SCHEMA}.{ORDERS.name}")
    if merged != tuple(map(sum, zip(*shards, strict=True))):
        raise BenchmarkError(f"shards {shards}, merged {merged}")


def _task(source: DatabaseServer, target: DatabaseServer) -> dict[str, Any]:
    return {
        "name": "bench-copy",
        "task-mode": "full",
        "meta-schema": f"{TARGET_SCHEMA}_meta",
        "target-database": endpoint(target),
        "sources": [{"source-id": "source", "from": endpoint(source)}],
        "mysql-instances": [
            {"source-id": "source", "route-rules": ["merge"], "block-allow-list": "shards"}
        ],
        "routes": {
            "merge": {
                "schema-pattern": SCHEMA,
                "table-pattern": f"{ORDERS.name}_*",
                "target-schema": TARGET_SCHEMA,
                "target-table": ORDERS.name,
            }
        },
        "block-allow-list": {"shards": {"do-dbs": [SCHEMA]}},
    }


def _markdown(runs: Sequence[CopyRun]) -> str:
    lines: list[tuple[str, str, list[float]]] = [
        ("full copy, rows/s", ",.0f", [r.rows / r.seconds for r in runs]),
        ("full copy, MB/s (rows as text)", ".1f", [r.size / r.seconds / 1e6 for r in runs]),
        ("mariadb-dump \\| mariadb, rows/s", ",.0f", [r.rows / r.dump_seconds for r in runs]),
        ("ratio", ".2f", [r.ratio for r in runs]),
        ("CPU s per million rows: our processes", ".1f", [r.cpu * 1e6 / r.rows for r in runs]),
        ("  both servers", ".1f", [r.cpu_servers * 1e6 / r.rows for r in runs]),
        ("peak memory of all our processes, MiB", ",.0f", [r.memory / MIB for r in runs]),
        ("peak memory of the driver's Python, MiB", ",.0f", [r.memory_driver / MIB for r in runs]),
        ("start and end around the copy, s", ".1f", [r.start for r in runs]),
    ]
    heads = ["measured", "median", *(f"run {n + 1}" for n in range(len(runs)))]
    table = [" | ".join(heads), " | ".join(["---", *["---:"] * (len(runs) + 1)])]
    table += [
        " | ".join([name, *(format(v, form) for v in (median(values), *values))])
        for name, form, values in lines
    ]
    return "\n".join(f"| {line} |" for line in table)


if __name__ == "__main__":
    typer.run(main)
