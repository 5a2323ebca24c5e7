"""Reconciling a target while its source is written to, and verifying it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import anyio

from actors.control.client import ask
from actors.control.protocol import Request
from benchmarks.errors import BenchmarkError
from benchmarks.estate import TARGET_SCHEMA, Estate, Table
from benchmarks.latency import percentile, timed_arrivals, timed_commits
from benchmarks.processes import cpu_by_kind, cpu_seconds
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.rows.comparing import ROOM, SHARDS, compare_table
from benchmarks.servers import pid_of, source_server, target_server
from benchmarks.task import NAME, RunningTask, running_task, task_values
from benchmarks.workloads.orders import KEYS_OF_A_SHARD, orders, select_orders
from replicator.sandbox.server import DatabaseServer

LARGE, SMALL, WRITTEN = orders(SHARDS, "large"), orders(SHARDS, "small"), orders(SHARDS)
"""A target to reconcile, one with fewer rows, and one whose rows arrive meanwhile."""
FEWER = 50
"""The small target has so many times fewer rows."""
IDLE_SECONDS = 20.0
BUSY = (sys.executable, "-c", "while True: pass")
"""Takes a core from others, as a pass does if everything is on one machine, and does nothing."""
HOUR = 3600.0
VERIFIED_ROWS = 10_000_000
"""Rows that are verified each hour."""

LINES = (
    Line(
        "reconcile",
        "reconcile 10 million equal rows in 16 shards, nobody writes: time",
        "`compare`",
        1.3,
        2.0,
        lower_is_better=True,
    ),
    Line(
        "reconcile-writer",
        "p95 of a writer's commits at the source meanwhile",
        "before and after it",
        2.0,
        5.0,
        lower_is_better=True,
    ),
    Line(
        "reconcile-other",
        "p95 from commit to visible in another target meanwhile",
        "before and after it",
        1.1,
        2.0,
        lower_is_better=True,
    ),
    Line(
        "reconcile-writer-busy",
        "p95 of a writer's commits at the source meanwhile",
        "beside a process that does nothing, with one core",
        1.1,
        2.0,
        lower_is_better=True,
    ),
    Line(
        "reconcile-other-busy",
        "p95 from commit to visible in another target meanwhile",
        "beside a process that does nothing, with one core",
        1.1,
        2.0,
        lower_is_better=True,
    ),
    Line(
        "verify",
        "rolling verification of 10 million rows an hour: CPU of the task",
        "a core",
        5.0,
        10.0,
        "%",
        lower_is_better=True,
    ),
)


@dataclass(slots=True)
class _Work:
    """Seconds and CPU seconds, of the task by kind of process, and of the servers."""

    seconds: float = 0.0
    task: dict[str, float] | None = None
    servers: float = 0.0

    def __add__(self, other: _Work) -> _Work:
        task = {k: v + (self.task or {}).get(k, 0.0) for k, v in (other.task or {}).items()}
        return _Work(self.seconds + other.seconds, task, self.servers + other.servers)


class _Times:
    """The seconds of commits at the source, and of rows until they are visible."""

    def __init__(self) -> None:
        self.commits: list[float] = []
        self.arrivals: list[float] = []

    def raw(self) -> dict[str, Any]:
        """The percentiles, in ms."""
        return {
            f"{name}_{text}": round(1000 * percentile(values, share), 2)
            for name, values in (("commit", self.commits), ("arrival", self.arrivals))
            for text, share in (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))
        } | {"commits": len(self.commits), "arrivals": len(self.arrivals)}


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    rows = context.sizes.compared_rows
    with source_server(ROOM) as source, target_server(ROOM) as target:
        estate = Estate((LARGE, SMALL, WRITTEN), (source,))
        estate.create_shards()
        estate.create_targets(target)
        target.execute("CREATE DATABASE IF NOT EXISTS shard")
        for table, count in ((LARGE, rows), (SMALL, rows // FEWER), (WRITTEN, 1000)):
            for shard in estate.shards_of(table):
                first = shard.number * KEYS_OF_A_SHARD
                source.execute(select_orders(shard.name, first, count // SHARDS))
                target.execute(select_orders(table.merged, first, count // SHARDS))
        yield lambda: _measure(estate, source, target, context)


def _measure(
    estate: Estate, source: DatabaseServer, target: DatabaseServer, context: Context
) -> Measured:
    values = task_values(estate, target, estate.ends()) | dict(context.settings)
    values["validators"] = {"rolling": {"mode": "rolling"}}
    for instance in values["mysql-instances"]:
        instance["validator-config-name"] = "rolling"
    pids = pid_of(source), pid_of(target)
    with running_task(values, target, context.folder) as task:
        task.await_reading()
        with _work(task, pids) as verifying:
            ended = _await_events(task, "verification.finished", len(estate.tables))
        verified = sum(record["rows"] for record in ended)
        compared = compare_table(estate, target, context, LARGE, "")
        with _work(task, pids) as alone:
            _reconcile(task, LARGE)
        idle, beside, busy, reconciling = _Times(), _Times(), _Times(), _Work()
        passes = 0
        with timed_commits(source) as commits, timed_arrivals(source, target) as arrivals:
            while len(beside.arrivals) < context.sizes.commits:
                _take(commits, arrivals, _Times())
                time.sleep(IDLE_SECONDS / 2)
                _take(commits, arrivals, idle)
                with _work(task, pids) as work:
                    _reconcile(task, LARGE)
                reconciling += work
                passes += 1
                _take(commits, arrivals, beside)
                with subprocess.Popen(BUSY) as process:
                    time.sleep(IDLE_SECONDS / 2)
                    process.kill()
                _take(commits, arrivals, busy)
                time.sleep(IDLE_SECONDS / 2)
                _take(commits, arrivals, idle)
        with _work(task, pids) as small:
            _reconcile(task, SMALL)
    estate.compare(target)
    share = 100 * sum((verifying.task or {}).values()) * VERIFIED_ROWS / verified / HOUR
    return Measured(
        {
            "reconcile": alone.seconds / compared.seconds,
            "reconcile-writer": percentile(beside.commits, 0.95) / percentile(idle.commits, 0.95),
            "reconcile-other": percentile(beside.arrivals, 0.95) / percentile(idle.arrivals, 0.95),
            "reconcile-writer-busy": percentile(beside.commits, 0.95)
            / percentile(busy.commits, 0.95),
            "reconcile-other-busy": percentile(beside.arrivals, 0.95)
            / percentile(busy.arrivals, 0.95),
            "verify": share,
        },
        {
            "seconds": alone.seconds,
            "seconds_beside": reconciling.seconds / passes,
            "passes": passes,
            "small_seconds": small.seconds,
            "compared": asdict(compared),
            "idle": idle.raw(),
            "beside": beside.raw(),
            "busy": busy.raw(),
            "reconciling": asdict(reconciling),
            "verifying": asdict(verifying),
        },
    )


def _reconcile(task: RunningTask, table: Table) -> None:
    """Reconcile a target. Raises BenchmarkError if rows differed."""
    before = _ended(task, "reconcile.finished")
    arguments = {"targets": [f"{TARGET_SCHEMA}.{table.name}"], "sources": [], "where": ""}
    reply = anyio.run(partial(ask, NAME, Request("reconcile", {**arguments, "cancel": False})))
    if not reply.ok:
        raise BenchmarkError(f"not reconciled: {reply.body}")
    ended = _await_events(task, "reconcile.finished", len(before) + 1)
    if ended[-1]["corrected"]:
        raise BenchmarkError(f"rows of {table.name} differed: {ended[-1]}")


def _await_events(task: RunningTask, name: str, count: int) -> list[dict[str, Any]]:
    return task.until(
        lambda: found if len(found := _ended(task, name)) >= count else None, f"{count} {name}"
    )


def _ended(task: RunningTask, name: str) -> list[dict[str, Any]]:
    return [record for record in task.records() if record["event"] == name]


@contextmanager
def _work(task: RunningTask, servers: tuple[int, ...]) -> Iterator[_Work]:
    work = _Work()
    before, busy, began = cpu_by_kind(task.pid), sum(map(cpu_seconds, servers)), time.monotonic()
    yield work
    work.seconds = time.monotonic() - began
    work.task = {kind: cpu - before[kind] for kind, cpu in cpu_by_kind(task.pid).items()}
    work.servers = sum(map(cpu_seconds, servers)) - busy


def _take(commits: list[float], arrivals: list[float], times: _Times) -> None:
    """Move what was timed since the last call."""
    for given, taken in ((commits, times.commits), (arrivals, times.arrivals)):
        count = len(given)
        taken += given[:count]
        del given[:count]


ROW = Row("reconcile", LINES, _prepare)
