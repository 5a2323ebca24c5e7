"""The status of a task as tables on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from textwrap import shorten

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.text import Text

from replicator.status import (
    BlockedPart,
    Fault,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    WriterStatus,
)
from replicator.terminal.copy import render_copy
from replicator.terminal.figures import number, seconds, size
from replicator.terminal.fitting_table import Column, FittingTable
from replicator.terminal.locks import lock_panel

FEWEST_TARGETS = 3
"""So many targets are told however small the terminal is."""

_TABLE_LINES = 5
"""Lines of a table of targets beside its rows: around its heading, and how many were left out."""

_DDL_WIDTH = 24
"""So much of a statement is told where there are too many targets for the screen."""

_STATE_STYLE = {
    "running": "bold green",
    "paused": "bold red",
    "pausing": "yellow",
    "stopping": "yellow",
    "starting": "cyan",
}


def render(status: TaskStatus) -> RenderableType:
    """Everything the status says: what needs the operator in front, then what goes on."""
    return Group(*_above_targets(status), *([_targets(status.targets)] if status.targets else ()))


def render_tasks(tasks: Sequence[TaskStatus]) -> RenderableType:
    """One line for each task."""
    if not tasks:
        return Text("no task runs here as this user")

    def column(heading: str, cell: Callable[[TaskStatus], str], rank: int = 0) -> Column:
        return Column(heading, [*map(cell, tasks)], rank, heading == "lag", heading == "fault")

    return FittingTable(
        (
            column("task", lambda task: task.task),
            column("state", lambda task: task.state),
            column("since", lambda task: _clock(task.since), 1),
            column("process", lambda task: str(task.pid), 2),
            column("lag", lambda task: seconds(_lag(task))),
            column("fault", _trouble),
        )
    )


def _trouble(task: TaskStatus) -> str:
    if task.error:
        return task.error.message
    return f"blocked: {', '.join(part.name for part in task.blocked)}" if task.blocked else ""


def _lag(task: TaskStatus) -> float | None:
    """The largest of its sources; None where one is not known."""
    lags = [source.lag_seconds for source in task.sources if source.lag_seconds is not None]
    return max(lags) if lags and len(lags) == len(task.sources) else None


@dataclass(frozen=True, slots=True)
class Screen:
    """The status for a terminal that shows no more than its height, as `--watch` does.

    Of many targets only so many are told that the rest of the status is seen, too.
    """

    status: TaskStatus

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        above = list(_above_targets(self.status))
        taken = sum(len(console.render_lines(part, options)) for part in above)
        yield from above
        if self.status.targets:
            most = max(console.height - taken - _TABLE_LINES, FEWEST_TARGETS)
            yield _busiest(self.status.targets, most)


def _above_targets(status: TaskStatus) -> Iterator[RenderableType]:
    yield _head(status)
    if status.error and status.error not in [part.error for part in status.blocked]:
        yield fault_panel(status.error, f"task {status.task}")
    yield from map(_blocked_panel, status.blocked)
    yield from map(lock_panel, sorted(status.locks, key=lambda lock: lock.state != "conflict"))
    if status.copy:
        yield render_copy(status.copy)
    if status.pid and (status.copy is None or status.copy.state != "copying"):
        yield _writer(status.writer)
    if status.sources:
        yield _sources(status.sources)


def fault_panel(fault: Fault, title: str) -> Panel:
    """One fault with its ways out."""
    text = Text(fault.message)
    if fault.where:
        text.append(f"\nwhere: {fault.where}", style="dim")
    text.append(f"\nsince: {_clock(fault.since)}", style="dim")
    if fault.ways_out:
        text.append("\nways out:", style="bold")
        for way in fault.ways_out:
            text.append(f"\n  • {way}")
    heading = Text.assemble((title, "bold"), f"  {fault.event}")
    return Panel(text, title=heading, title_align="left", border_style="red")


def _blocked_panel(part: BlockedPart) -> RenderableType:
    """One part that does not go on, why, and how it will."""
    title = f"{part.kind} {part.name} is blocked"
    fault = part.error or Fault(
        f"waits for {part.waits_for}" if part.waits_for else "paused",
        "its rows are held" if part.kind == "target" else "it is not read",
        "",
        part.ways_out,
        part.since,
    )
    places = (
        f"{held.source} holds {number(held.rows_held)} rows, read again from {held.saved_position}"
        for held in part.held
    )
    return Group(fault_panel(fault, title), *map(Text, places))


def _head(status: TaskStatus) -> Text:
    age = seconds(max((datetime.now(UTC) - status.since).total_seconds(), 0.0))
    told = f" for {age} (process {status.pid})" if status.pid else f", saved {age} ago"
    return Text.assemble(
        ("task ", "dim"),
        (status.task, "bold"),
        "  ",
        (status.state, _STATE_STYLE.get(status.state, "bold")),
        (f", {len(status.blocked)} blocked" if status.blocked else "", "bold red"),
        (told, "dim"),
    )


def _sources(sources: tuple[SourceStatus, ...]) -> FittingTable:
    def column(heading: str, cell: Callable[[SourceStatus], str], rank: int = 0) -> Column:
        numeric = heading in ("lag", "rows", "read", "reconnects")
        return Column(heading, [*map(cell, sources)], rank, numeric, heading == "state")

    return FittingTable(
        (
            column("source", lambda source: source.source),
            column("state", lambda source: source.state),
            column("read up to", lambda source: source.position),
            column("saved", lambda source: source.saved_position, 1),
            column("lag", lambda source: seconds(source.lag_seconds)),
            column("rows", lambda source: number(source.rows), 2),
            column("read", lambda source: size(source.bytes), 3),
            column("reconnects", lambda source: number(source.reconnects), 4),
        )
    )


def _targets(targets: Sequence[TargetStatus], *, wraps: bool = True) -> FittingTable:
    def column(heading: str, cell: Callable[[TargetStatus], str], rank: int) -> Column:
        text = heading in ("target", "schema change")
        sentence = wraps and heading == "schema change"
        return Column(heading, [*map(cell, targets)], rank, not text, sentence)

    columns = [
        column("target", lambda target: target.target, 0),
        column("shards", lambda target: number(target.members), 3),
        column("inserted", lambda target: number(target.inserted), 0),
        column("overwritten", lambda target: number(target.overwritten), 4),
        column("deleted", lambda target: number(target.deleted), 5),
        column("missing", lambda target: number(target.missing), 2),
        column("rows/s", lambda target: number(round(target.rows_per_second)), 1),
    ]
    if any(target.version or target.ddl for target in targets):
        columns.append(column("version", lambda target: number(target.version), 6))
    if any(target.ddl for target in targets):
        columns.append(column("schema change", lambda target: target.ddl, 0))
    return FittingTable(columns)


def _busiest(targets: tuple[TargetStatus, ...], most: int) -> RenderableType:
    """Of too many targets those that something happens to, and how many are left out."""
    if len(targets) <= most:
        return _targets(targets)
    order = sorted(targets, key=lambda t: (not t.ddl, -t.rows_per_second, -t.missing, t.target))
    left = Text(f"and {number(len(targets) - most)} more targets: status without --watch", "dim")
    shown = [
        replace(target, ddl=shorten(target.ddl, _DDL_WIDTH, placeholder=" …"))
        for target in order[:most]
    ]
    return Group(_targets(shown, wraps=False), left)


def _writer(writer: WriterStatus) -> Text:
    return Text.assemble(
        ("writer ", "dim"),
        (writer.state, "bold" if writer.state in ("idle", "applying") else "bold yellow"),
        f"  {number(writer.batches)} batches, {number(writer.rows)} rows, "
        f"{number(round(writer.rows_per_second))} rows/s, "
        f"last batch {seconds(writer.last_batch_seconds)}, {size(writer.queued_bytes)} wait, "
        f"saved {seconds(writer.checkpoint_age_seconds)} ago"
        if writer.checkpoint_age_seconds is not None
        else f"  {number(writer.batches)} batches, {number(writer.rows)} rows, nothing saved yet",
    )


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
