"""The steps of the demo, from starting the servers to the final result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.live import Live
from rich.text import Text

from replicator.binlog.positions.position import BinlogPosition
from replicator.demo.estate import Estate, running_estate
from replicator.demo.process import TASK_NAME, DemoError, ReplicatorProcess, write_task_file
from replicator.demo.tables import ENTITIES, SCHEMAS, SOURCES, TARGET_SCHEMA
from replicator.demo.workload import Workload
from replicator.sandbox.keeper import SandboxError
from replicator.status import TaskStatus, largest_lag
from replicator.terminal.figures import number, seconds
from replicator.terminal.remedies import Framed
from replicator.terminal.status import StatusScreen, fault_panel

START_SECONDS = 120.0
CATCH_UP_SECONDS = 120.0
LOOK_SECONDS = 0.5
"""Seconds between two status requests to the replicator."""
LINE_SECONDS = 2.0
"""Seconds between two output lines when there is no terminal."""
AROUND_SECONDS = 40
"""Approximate number of seconds for starting, catching up and comparing."""

INTRODUCTION = """\
Two MariaDB servers play the shops [bold]shop-east[/] and [bold]shop-west[/]. Their orders, \
users and events are split over {shards} tables. An application writes to all of them: rows come \
in bulk and one by one, are changed, deleted, get new keys, and move from shard to shard.

Meanwhile [bold]replicator run[/] follows both binlogs and merges the shards into three tables of \
a third server. At the end [bold]replicator compare[/] compares every row.

All servers are private to this demo, and removed afterwards. It takes about {duration}."""


@dataclass(frozen=True)
class _Stage:
    """The objects of one run of the demo."""

    console: Console
    folder: Path
    task_file: Path
    estate: Estate
    replicator: ReplicatorProcess


def play(console: Console, *, run_seconds: int, keep: bool) -> int:
    """Run the demo; return 0 if every target equals its shards, otherwise 1.

    ``run_seconds`` is the time during which rows are written to the shards. With ``keep``, all
    processes then run on until Ctrl-C. All of them are stopped and removed in any case.
    """
    console.print(_introduction(run_seconds))
    try:
        with _terminated_as_interrupted():
            return _play(console, run_seconds, keep=keep)
    except KeyboardInterrupt:
        console.print("Interrupted. Everything was stopped and removed.")
    except SandboxError as error:
        console.print(_failure(str(error)))
    return 1


def _play(console: Console, run_seconds: int, *, keep: bool) -> int:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="replicator-demo-")))
        stack.enter_context(_runtime_dir(folder / "run"))
        console.print("Starting three database servers …")
        estate = stack.enter_context(running_estate())
        task_file = folder / "demo.yaml"
        write_task_file(task_file, estate, estate.binlog_ends())
        console.print("Starting the replicator …")
        replicator = ReplicatorProcess(task_file, folder)
        stage = _Stage(console, folder, task_file, estate, replicator)
        try:
            stack.enter_context(replicator)
            code = _write_and_prove(stage, run_seconds)
        except DemoError as error:
            console.print(_failure(str(error)))
            if error.fault:
                console.print(fault_panel(error.fault, f"task {TASK_NAME}"), crop=False)
            code = 1
        if keep:
            _print_directions(stage)
            _wait_for_interrupt()
            console.print("Stopping and removing everything …")
    return code


def _introduction(run_seconds: int) -> Framed:
    minutes = max(1, round((run_seconds + AROUND_SECONDS) / 60))
    duration = "a minute" if minutes == 1 else f"{minutes} minutes"
    shards = sum(entity.shards for entity in ENTITIES) * len(SCHEMAS) * len(SOURCES)
    text = INTRODUCTION.format(shards=shards, duration=duration)
    return Framed(Text("replicator demo", "bold"), Text.from_markup(text), "cyan")


def _write_and_prove(stage: _Stage, run_seconds: int) -> int:
    with stage.console.status("waiting for it to follow both binlogs"):
        _wait_running(stage)
    workload = Workload(stage.estate, seed=int(time.time()))
    begin = time.monotonic()
    lags: list[float] = []
    with _screen(stage.console) as show:

        def look(doing: str) -> TaskStatus | None:
            if failure := workload.failure():
                raise DemoError(f"The application of the demo failed: {failure}")
            status = stage.replicator.status()
            if status is not None:
                lags.append(largest_lag(status) or 0.0)
                show(status, f"{time.monotonic() - begin:4.0f} s  {doing}", workload)
            return status

        workload.start()
        try:
            while time.monotonic() < begin + run_seconds:
                look("writing to the shards")
                time.sleep(LOOK_SECONDS)
        finally:
            workload.stop()
        written = time.monotonic()
        _wait_caught_up(stage.estate.binlog_ends(), lambda: look("catching up"))
        caught_up = time.monotonic()
    facts = (
        f"{number(workload.changes)} rows were changed in {number(workload.transactions)} "
        f"transactions within {seconds(written - begin)}. The replicator was at most "
        f"{seconds(max(lags, default=0.0))} behind, and {seconds(caught_up - written)} after the "
        "last of them everything was merged and saved."
    )
    stage.console.print("Comparing every row: replicator compare demo.yaml")
    compared = subprocess.run(
        [sys.executable, "-m", "cli", "compare", str(stage.task_file)],
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(stage.folder)},
        check=False,
    )
    stage.console.print(_result(compared.returncode, facts))
    return min(compared.returncode, 1)


Show = Callable[[TaskStatus, str, Workload], None]
"""Shows the status, the present step with its seconds, and the application's workload."""


@contextmanager
def _screen(console: Console) -> Iterator[Show]:
    next_line = 0.0

    def line(status: TaskStatus, moment: str, workload: Workload) -> None:
        nonlocal next_line
        if time.monotonic() >= next_line:
            next_line = time.monotonic() + LINE_SECONDS
            merged = sum(target.rows_per_second for target in status.targets)
            console.print(
                f"{moment}: {number(workload.changes)} rows changed, {number(round(merged))} rows/s"
                f" merged, lag {seconds(largest_lag(status))}",
                soft_wrap=True,
            )

    if not console.is_terminal:
        yield line
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield lambda status, _, __: live.update(StatusScreen(status, spared=1), refresh=True)


def _wait_running(stage: _Stage) -> None:
    deadline = time.monotonic() + START_SECONDS
    while (status := stage.replicator.status()) is None or status.state != "running":
        if time.monotonic() > deadline:
            state = status.state if status else "not to be reached"
            raise DemoError(
                f"The replicator is still {state} after {START_SECONDS:.0f} s. "
                f"With --keep its log stays to be read."
            )
        time.sleep(LOOK_SECONDS)


def _wait_caught_up(ends: dict[str, BinlogPosition], look: Callable[[], TaskStatus | None]) -> None:
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while behind := _behind(look(), ends):
        if time.monotonic() > deadline:
            raise DemoError(
                f"The replicator did not catch up within {CATCH_UP_SECONDS:.0f} s: " + behind
            )
        time.sleep(LOOK_SECONDS)


def _behind(status: TaskStatus | None, ends: dict[str, BinlogPosition]) -> str:
    if status is None:
        return "it can't be asked"
    saved = {source.source: source.saved_position for source in status.sources}
    return "; ".join(
        f"{source} is saved up to {saved.get(source) or 'nothing'} of {end}"
        for source, end in ends.items()
        if not _reached(saved.get(source, ""), end)
    )


def _reached(position: str, end: BinlogPosition) -> bool:
    file, _, offset = position.partition(" ")[0].rpartition(":")  # a GTID set may follow
    return bool(file) and BinlogPosition(file, int(offset)).key >= end.key


def _result(code: int, facts: str) -> Framed:
    verdict = {
        0: ("exact", "Every target equals the union of its shards, row for row.", "green"),
        1: ("NOT EXACT", "The targets do not equal their shards.", "red"),
    }
    unknown = ("not compared", "The targets could not be compared with their shards.", "red")
    title, text, colour = verdict.get(code, unknown)
    said = Text.assemble(facts, "\n\n", (text, f"bold {colour}"))
    return Framed(Text(title, "bold"), said, colour)


def _failure(message: str) -> Framed:
    return Framed(Text("the demo failed", "bold"), Text(message), "red")


def _print_directions(stage: _Stage) -> None:
    servers = {**stage.estate.sources, f"the target, schema {TARGET_SCHEMA}": stage.estate.target}
    lines = [
        *(
            f"  mariadb -h {server.host} -P {server.port} -u {server.user}    # {name}"
            for name, server in servers.items()
        ),
        f"  XDG_RUNTIME_DIR={stage.folder / 'run'} replicator status {TASK_NAME} --watch",
        f"  less {stage.folder / 'demo.yaml'}    # the task file",
        f"  less {stage.replicator.log_file}    # the log",
        "What you write to the shards arrives in the target. Ctrl-C stops and removes everything.",
    ]
    stage.console.print("Look around, in another terminal:", style="bold")
    stage.console.print(Text("\n".join(lines)), soft_wrap=True)


def _wait_for_interrupt() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


@contextmanager
def _runtime_dir(path: Path) -> Iterator[None]:
    """Use a separate folder for control sockets, because a task with our name may already run."""
    path.mkdir(mode=0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = str(path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["XDG_RUNTIME_DIR"]
        else:
            os.environ["XDG_RUNTIME_DIR"] = before


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
