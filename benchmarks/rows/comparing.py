"""Comparing a target with its shards, beside checksums of chunks over single connections."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import yaml

from benchmarks.baselines import chunk_checksums
from benchmarks.errors import BenchmarkError
from benchmarks.estate import TARGET_SCHEMA, Estate, Table
from benchmarks.latency import percentile, timed_commits
from benchmarks.processes import ProcessTreeWatch, cpu_seconds
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import pid_of, source_server, target_server
from benchmarks.task import command, environment, task_values
from benchmarks.workloads.orders import KEYS_OF_A_SHARD, orders, select_orders
from replicator.sandbox.server import DatabaseServer

SHARDS = 16
ROOM = 4
"""GiB of memory of each server."""
PART = 10
"""The memory is compared with that of so many times fewer rows."""

LINES = (
    Line(
        "compare",
        "compare 10 million rows in 16 shards",
        "sync_diff_inspector's checksums",
        3.0,
        2.0,
    ),
    Line("compare-crc", "the same", "those that it had until 2024", 1.5, 1.0),
    Line(
        "compare-memory",
        "the same: peak memory of the driver",
        "a million rows",
        1.1,
        1.3,
        lower_is_better=True,
    ),
    Line(
        "compare-writer",
        "p95 of a writer's commits at the source meanwhile, `--max-load Threads_running=2`",
        "before it",
        2.0,
        5.0,
        lower_is_better=True,
    ),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison: ``seconds`` of the target alone, ``around`` with start and end. CPU in
    seconds, memory in bytes."""

    rows: int
    seconds: float
    around: float
    cpu: float
    cpu_servers: float
    memory_driver: int


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    tables = orders(shards=SHARDS), orders(shards=SHARDS, name="fewer")
    with source_server(ROOM) as source, target_server(ROOM) as target:
        estate = Estate(tables, (source,))
        estate.create_shards()
        estate.create_targets(target)
        target.execute("CREATE DATABASE IF NOT EXISTS shard")
        for table in tables:
            rows = context.sizes.compared_rows // (PART if table.name == "fewer" else 1)
            for shard in estate.shards_of(table):
                first = shard.number * KEYS_OF_A_SHARD
                source.execute(select_orders(shard.name, first, rows // SHARDS))
                target.execute(select_orders(table.merged, first, rows // SHARDS))

        def measure() -> Measured:
            by_md5 = chunk_checksums(estate, tables[0], target, "MD5")
            by_crc = chunk_checksums(estate, tables[0], target, "CRC32")
            compared = compare_table(estate, target, context, tables[0], "")
            fewer = compare_table(estate, target, context, tables[1], "")
            with timed_commits(source) as alone:
                time.sleep(10)
            with timed_commits(source) as beside:
                compare_table(estate, target, context, tables[0], "Threads_running=2")
            p95 = {"alone": percentile(alone, 0.95), "beside": percentile(beside, 0.95)}
            return Measured(
                {
                    "compare": by_md5.seconds / compared.seconds,
                    "compare-crc": by_crc.seconds / compared.seconds,
                    "compare-memory": compared.memory_driver / fewer.memory_driver,
                    "compare-writer": p95["beside"] / p95["alone"],
                },
                {
                    "compared": asdict(compared),
                    "fewer": asdict(fewer),
                    "md5": by_md5.raw(),
                    "crc": by_crc.raw(),
                    "p95": p95,
                },
            )

        yield measure


def compare_table(
    estate: Estate, target: DatabaseServer, context: Context, table: Table, max_load: str
) -> Compared:
    """Compare one table with `replicator compare`, in a process of its own."""
    file = context.folder / "compare.yaml"
    file.write_text(yaml.safe_dump(task_values(estate, target, None) | dict(context.settings)))
    arguments = ["--json", "--max-load", max_load, "--tables", f"{TARGET_SCHEMA}.{table.name}"]
    servers = [pid_of(server) for server in (*estate.servers, target)]
    busy = sum(map(cpu_seconds, servers))
    began = time.monotonic()
    with (
        subprocess.Popen(
            command("compare", *arguments, str(file)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(context.folder),
        ) as process,
        ProcessTreeWatch(process.pid) as watch,
    ):
        output, errors = process.communicate()
    around = time.monotonic() - began
    if process.returncode:
        raise BenchmarkError(f"the comparison ended with {process.returncode}: {errors[-2000:]!r}")
    found: dict[str, Any] = json.loads(output)["targets"][0]
    usage = watch.usage
    return Compared(
        rows=found["rows"],
        seconds=found["seconds"],
        around=around,
        cpu=usage.cpu_driver + usage.cpu_java + usage.cpu_workers,
        cpu_servers=sum(map(cpu_seconds, servers)) - busy,
        memory_driver=usage.driver,
    )


ROW = Row("compare", LINES, _prepare)
