"""How fast a task catches up with a backlog, beside what the target server can do itself.

``python -m benchmarks.catch_up`` needs nothing but the installed servers; see docs/performance.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from benchmarks.baselines import load_data, replay
from benchmarks.latency import latencies
from benchmarks.processes import ProcessTreeWatch, cpu_seconds, machine_seconds
from benchmarks.results import CatchUp, Run, grid, markdown, save
from benchmarks.task import BenchmarkError, RunningTask, end_of, running_task
from benchmarks.workloads import (
    ACCOUNTS,
    ORDERS,
    TARGET_SCHEMA,
    Table,
    fill_accounts,
    write_accounts,
    write_orders,
)
from replicator.binlog.position import BinlogPosition
from replicator.sandbox.errors import SandboxError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer

SOURCE_OPTIONS = {"innodb_buffer_pool_size": "512M", "innodb_log_file_size": "256M"}
TARGET_OPTIONS = {
    "skip_log_bin": None,
    "innodb_buffer_pool_size": "1G",
    "innodb_log_file_size": "512M",
}
"""Room for all rows, so that no server waits for the disk; the target writes no binlog."""

console = Console(stderr=True)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Binlog from ``start`` to ``end`` that changes ``rows`` rows of a table's shards."""

    table: Table
    source: DatabaseServer
    start: BinlogPosition
    end: BinlogPosition
    rows: int


def main(
    rows: Annotated[int, typer.Option(help="Rows in 100-row inserts.")] = 600_000,
    transactions: Annotated[int, typer.Option(help="Small transactions, of 4 rows each.")] = 30_000,
    accounts: Annotated[int, typer.Option(help="Rows per shard that they change.")] = 50_000,
    commits: Annotated[int, typer.Option(help="Single commits to measure latency with.")] = 200,
    runs: Annotated[int, typer.Option(min=1, help="How often everything is measured.")] = 3,
    settings: Annotated[
        str, typer.Option(help="More of the task file, as YAML: '{writer: {buckets: 2}}'.")
    ] = "{}",
    output: Annotated[Path, typer.Option(help="Where to write all figures as JSON.")] = Path(
        "benchmark.json"
    ),
) -> None:
    """Measure catching up, its cost and the latency when idle, on private servers."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="replicator-bench-") as name,
            MariaDBServer(SOURCE_OPTIONS) as inserts,
            MariaDBServer(SOURCE_OPTIONS) as changes,
            MariaDBServer(TARGET_OPTIONS) as target,
        ):
            folder = Path(name)
            lines = folder / "orders.tsv"
            with console.status("writing the backlogs"):
                orders = _write_orders(inserts, rows, lines)
                small = _write_accounts(changes, accounts, transactions)
            bench = _Bench(target, folder, yaml.safe_load(settings))
            done: list[Run] = []
            for number in range(runs):
                with console.status(f"run {number + 1} of {runs}"):
                    done.append(bench.run(orders, lines, small, accounts, commits))
                console.print(grid(done))
                save(done, output)
    except (BenchmarkError, SandboxError) as error:
        console.print(f"[red]{error}[/]")
        sys.exit(1)
    print(markdown(done))


def _write_orders(source: DatabaseServer, rows: int, lines: Path) -> Backlog:
    ORDERS.create_shards(source)
    start = end_of(source)
    written = write_orders(source, rows, lines)
    return Backlog(ORDERS, source, start, end_of(source), written)


def _write_accounts(source: DatabaseServer, accounts: int, transactions: int) -> Backlog:
    ACCOUNTS.create_shards(source)
    fill_accounts([(source, t, n) for n, t in enumerate(ACCOUNTS.shard_names())], accounts)
    start = end_of(source)
    changed = write_accounts(source, accounts, transactions)
    return Backlog(ACCOUNTS, source, start, end_of(source), changed)


class _Bench:
    """Measures on one target, which each measurement finds as if nothing had been there."""

    def __init__(self, target: DatabaseServer, folder: Path, settings: dict[str, Any]) -> None:
        self._target = target
        self._folder = folder
        self._settings = settings

    def run(self, orders: Backlog, lines: Path, small: Backlog, accounts: int, commits: int) -> Run:
        """Everything once."""
        target = self._target
        loaded = load_data(ORDERS, target, lines)
        ORDERS.create_shards(target)
        replayed = replay(orders.source, orders.start, orders.end, target)
        ACCOUNTS.create_shards(target)
        fill_accounts([(target, t, n) for n, t in enumerate(ACCOUNTS.shard_names())], accounts)
        replayed_small = replay(small.source, small.start, small.end, target)
        target.execute("DROP DATABASE shard")

        ORDERS.create_target(target)
        with self._task(orders) as (task, inserts):
            task.await_applied(end_of(orders.source))
            late = latencies(orders.source, target, commits)
            self._compare(orders)
        ACCOUNTS.create_target(target)
        merged = f"{TARGET_SCHEMA}.{ACCOUNTS.name}"
        fill_accounts([(target, merged, n) for n in range(ACCOUNTS.shards)], accounts)
        with self._task(small) as (_, changes):
            self._compare(small)
        return Run(
            inserts=inserts,
            inserts_load_data=orders.rows / loaded,
            inserts_replay=orders.rows / replayed,
            changes=changes,
            changes_replay=small.rows / replayed_small,
            latencies=late,
        )

    @contextmanager
    def _task(self, backlog: Backlog) -> Iterator[tuple[RunningTask, CatchUp]]:
        """A task that has caught up with the backlog, and what that took."""
        pid = int(Path(str(self._target.execute("SELECT @@pid_file")[0][0])).read_text())
        started = time.time()
        with running_task(
            backlog.table, backlog.source, backlog.start, self._target, self._folder, self._settings
        ) as task:
            reading = task.await_reading()
            busy, machine = cpu_seconds(pid), machine_seconds()
            with ProcessTreeWatch(task.pid) as watch:
                status = task.await_applied(backlog.end)
                seconds = time.time() - reading
            yield (
                task,
                CatchUp(
                    rows=backlog.rows,
                    start_seconds=reading - started,
                    seconds=seconds,
                    batches=status.writer.batches,
                    cpu_driver=watch.usage.cpu_driver,
                    cpu_java=watch.usage.cpu_java,
                    cpu_workers=watch.usage.cpu_workers,
                    cpu_target=cpu_seconds(pid) - busy,
                    cpu_machine=machine_seconds() - machine,
                    memory=watch.usage.tree,
                    memory_driver=watch.usage.driver,
                ),
            )

    def _compare(self, backlog: Backlog) -> None:
        """Raise BenchmarkError unless the merged table holds what the shards hold."""
        merged = self._sums(self._target, f"{TARGET_SCHEMA}.{backlog.table.name}")
        shards = [self._sums(backlog.source, name) for name in backlog.table.shard_names()]
        if merged != tuple(map(sum, zip(*shards, strict=True))):
            raise BenchmarkError(f"{backlog.table.name}: shards {shards}, merged {merged}")

    @staticmethod
    def _sums(server: DatabaseServer, table: str) -> tuple[int, ...]:
        schema, _, name = table.partition(".")
        columns = server.execute(
            "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns"
            f" WHERE table_schema='{schema}' AND table_name='{name}'"
        )[0][0]
        (row,) = server.execute(
            f"SELECT COUNT(*), COALESCE(SUM(CRC32(CONCAT_WS('|',{columns}))),0) FROM {table}"
        )
        return tuple(map(int, row))


if __name__ == "__main__":
    typer.run(main)
