"""From `run` to the first row, and what commands cost that only look."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.errors import BenchmarkError
from benchmarks.estate import Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.task import NAME, command, environment, running_task, task_values
from benchmarks.workloads.orders import orders, write_orders

TIMES = 3
"""The first start of a command reads files that later ones find in memory: the least counts."""
CPU = "CPU of one command"
LINES = (
    Line("first-row", "`run` to the first row", "-", 4.0, 6.0, "s", lower_is_better=True),
    Line("status", f"`status`: {CPU}", "-", 0.2, 0.4, "s", lower_is_better=True),
    Line("help", f"`--help`: {CPU}", "-", 0.2, 0.4, "s", lower_is_better=True),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=4),), (source,))
        backlog = write_orders(estate, 1)

        def measure() -> Measured:
            estate.create_targets(target)
            values = task_values(estate, target, backlog.starts) | dict(context.settings)
            began = time.monotonic()
            with running_task(values, target, context.folder) as task:

                def seen() -> bool | None:
                    return bool(target.execute(f"SELECT 1 FROM {estate.tables[0].merged}")) or None

                task.until(seen, "the first row", 0.02)
                first_row = time.monotonic() - began
                task.await_applied(backlog.ends)
                steps = {
                    record["step"]: record["timestamp"]
                    for record in task.records()
                    if record["event"] == "task.step"
                }
                env = environment(context.folder)
                status = min(_cpu(["status", NAME], env) for _ in range(TIMES))
                shown = min(_cpu(["--help"], env) for _ in range(TIMES))
                estate.compare(target)
            return Measured(
                {"first-row": first_row, "status": status, "help": shown}, {"steps": steps}
            )

        yield measure


def _cpu(arguments: list[str], env: dict[str, str]) -> float:
    """The CPU seconds, of the program and the system, that a command takes."""
    process = subprocess.Popen(command(*arguments), env=env, stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    # It was waited for behind the object's back.
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode != 0:
        raise BenchmarkError(f"replicator {' '.join(arguments)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime


ROW = Row("start", LINES, _prepare)
