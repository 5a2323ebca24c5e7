"""The course of the demo, from the first server to the verdict."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from replicator.binlog.positions.position import BinlogPosition
from replicator.demo.estate import Estate, running_estate
from replicator.demo.process import TASK_NAME, DemoError, ReplicatorProcess, write_task_file
from replicator.demo.tables import ENTITIES, SCHEMAS, SOURCES, TARGET_SCHEMA, Entity
from replicator.demo.workload import Workload
from replicator.sandbox.keeper import SandboxError
from replicator.status import TaskStatus
from replicator.terminal.figures import number, seconds
from replicator.terminal.remedies import Framed
from replicator.terminal.status import fault_panel

START_SECONDS = 120.0
CATCH_UP_SECONDS = 120.0
LOOK_SECONDS = 0.5
"""Time between two looks at the servers and the replicator."""


@dataclass(frozen=True)
class _Stage:
    """What a run of the demo works with."""

    console: Console
    folder: Path
    estate: Estate
    replicator: ReplicatorProcess


def play(console: Console, *, run_seconds: int, keep: bool) -> int:
    """Run the demo; 0 if every target equals its shards, otherwise 1.

    ``run_seconds``: how long the shards are written to. With ``keep`` all goes on running at the
    end until Ctrl-C. Everything is stopped and removed, whatever happens.
    """
    console.print(introduction(run_seconds))
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
        stage = _Stage(console, folder, estate, replicator)
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


def _write_and_prove(stage: _Stage, run_seconds: int) -> int:
    with stage.console.status("waiting for it to follow both binlogs"):
        _wait_running(stage)
    workload = Workload(stage.estate, seed=int(time.time()))
    begin = time.monotonic()
    lags: list[float] = []
    with DemoScreen(stage.console) as screen:

        def look(doing: str) -> TaskStatus | None:
            moment = _look(stage, workload, doing, time.monotonic() - begin)
            if moment is None:
                return None
            lags.append(moment.lag or 0.0)
            screen.show(moment)
            return moment.status

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
    with stage.console.status("comparing every row"):
        compared = stage.replicator.compare(stage.console.width)
    equal = compared.returncode == 0
    facts = (
        f"{number(workload.changes)} rows were changed in {number(workload.transactions)} "
        f"transactions within {seconds(written - begin)}. The replicator was at most "
        f"{seconds(max(lags, default=0.0))} behind, and {seconds(caught_up - written)} after the "
        "last of them everything was merged and saved."
    )
    stage.console.print(compared.stdout, compared.stderr, markup=False, highlight=False)
    stage.console.print(_result(facts, equal=equal))
    return 0 if equal else 1


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


def _look(stage: _Stage, workload: Workload, doing: str, elapsed: float) -> Moment | None:
    if failure := workload.failure():
        raise DemoError(f"The application of the demo failed: {failure}")
    status = stage.replicator.status()
    if status is None:
        return None
    counts = tuple((entity, *stage.estate.counts(entity)) for entity in ENTITIES)
    return Moment(doing, elapsed, workload.changes, workload.transactions, status, counts)


def _wait_caught_up(ends: dict[str, BinlogPosition], look: Callable[[], TaskStatus | None]) -> None:
    """Wait until all that stands before these positions is applied and saved."""
    deadline = time.monotonic() + CATCH_UP_SECONDS
    while behind := _behind(look(), ends):
        if time.monotonic() > deadline:
            raise DemoError(
                f"The replicator did not catch up within {CATCH_UP_SECONDS:.0f} s: " + behind
            )
        time.sleep(LOOK_SECONDS)


def _behind(status: TaskStatus | None, ends: dict[str, BinlogPosition]) -> str:
    """Which sources are not saved up to their end, in words; empty when all are."""
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


def _result(facts: str, *, equal: bool) -> Framed:
    text = Text(facts + "\n\n")
    if equal:
        text.append("Every target equals the union of its shards, row for row.", "bold green")
    else:
        text.append("The targets do not equal their shards.", "bold red")
    title = Text("exact" if equal else "NOT EXACT", "bold")
    return Framed(title, text, "green" if equal else "red")


def _failure(message: str) -> Framed:
    return Framed(Text("the demo failed", "bold"), Text(message), "red")


def _print_directions(stage: _Stage) -> None:
    """How to look around, in lines that can be copied as they are."""
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
    """A folder for control sockets of our own: a task named as ours may run already."""
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
    """Let SIGTERM clean up as Ctrl-C does."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


LINE_SECONDS = 2.0
"""Time between two plain lines."""
AROUND_SECONDS = 40
"""What starting, catching up and comparing take, roughly."""

INTRODUCTION = """\
Two MariaDB servers play the shops [bold]shop-east[/] and [bold]shop-west[/]. Their orders, \
users and events are split over {shards} tables. An application writes to all of them: rows come \
in bulk and one by one, are changed, deleted, get new keys, and move from shard to shard.

Meanwhile [bold]replicator[/] follows both binlogs and merges the shards into three tables of a \
third server. At the end every row is compared.

All servers are private to this demo, and removed afterwards. It takes about {duration}."""


@dataclass(frozen=True)
class Moment:
    """One look at everything: seconds since the start, counts as (in the shards, in the target)."""

    doing: str
    elapsed: float
    changes: int
    transactions: int
    status: TaskStatus
    counts: tuple[tuple[Entity, int, int], ...]

    @property
    def lag(self) -> float | None:
        """Seconds that the slowest source is behind; None when not known."""
        known = [s.lag_seconds for s in self.status.sources if s.lag_seconds is not None]
        return max(known, default=None)

    @property
    def merged_per_second(self) -> int:
        """Rows per second written to all targets together."""
        return round(sum(target.rows_per_second for target in self.status.targets))


class DemoScreen:
    """Shows one moment after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._next_line = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, moment: Moment) -> None:
        """Draw the moment; a plain line only every `LINE_SECONDS`."""
        if self._console.is_terminal:
            self._live.update(picture(moment), refresh=True)
        elif time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + LINE_SECONDS
            self._console.print(plain_line(moment), soft_wrap=True)


def introduction(run_seconds: int) -> Framed:
    """What is about to happen."""
    minutes = max(1, round((run_seconds + AROUND_SECONDS) / 60))
    duration = "a minute" if minutes == 1 else f"{minutes} minutes"
    text = INTRODUCTION.format(shards=shard_count(), duration=duration)
    return Framed(Text("replicator demo", "bold"), Text.from_markup(text), "cyan")


def shard_count(entity: Entity | None = None) -> int:
    """How many shards there are, of one entity or of all."""
    entities = ENTITIES if entity is None else (entity,)
    return sum(one.shards for one in entities) * len(SCHEMAS) * len(SOURCES)


def picture(moment: Moment) -> RenderableType:
    """The moment as a table with two lines of figures below."""
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("table", "shards", "rows in shards", "rows in target", "behind"):
        table.add_column(column, justify="left" if column == "table" else "right")
    for entity, in_shards, in_target in moment.counts:
        behind = in_shards - in_target
        table.add_row(
            entity.name,
            number(shard_count(entity)),
            number(in_shards),
            number(in_target),
            Text(number(behind), style="yellow" if behind else "green"),
        )
    writer = moment.status.writer
    figures = Text.assemble(
        ("application  ", "dim"),
        f"{number(moment.changes)} rows changed in {number(moment.transactions)} transactions\n",
        ("replicator   ", "dim"),
        (f"{number(moment.merged_per_second)} rows/s", "bold"),
        f", lag {seconds(moment.lag)}, {number(writer.batches)} batches, "
        f"last batch {seconds(writer.last_batch_seconds)}",
    )
    title = f"{moment.doing}  {moment.elapsed:.0f} s"
    return Panel(Group(table, figures), title=title, title_align="left", border_style="cyan")


def plain_line(moment: Moment) -> Text:
    """The moment in a line."""
    counts = ", ".join(
        f"{entity.name} {number(in_target)}/{number(in_shards)}"
        for entity, in_shards, in_target in moment.counts
    )
    return Text(
        f"{moment.elapsed:4.0f} s  {moment.doing}: {number(moment.changes)} rows changed, "
        f"{number(moment.merged_per_second)} rows/s merged, "
        f"lag {seconds(moment.lag)}; in target/shards: {counts}"
    )
