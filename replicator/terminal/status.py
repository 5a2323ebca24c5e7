"""The status of a task as tables on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from replicator.printable_text import shown_line
from replicator.status import (
    BlockedPart,
    Fault,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    Trend,
    condition,
    largest_lag,
)
from replicator.terminal.copy_progress import render_copy
from replicator.terminal.figures import number, seconds, size
from replicator.terminal.fitting_table import FittingTable, TextColumn
from replicator.terminal.locks import lock_line, lock_panel
from replicator.terminal.remedies import Framed, remedies_list

FEWEST_TARGETS = 3
"""So many targets are told however small the terminal is."""

_TABLE_LINES = 5
"""Lines of a table of targets beside its rows: around its heading, and how many were left out."""

_FEWEST_LINES = FEWEST_TARGETS + _TABLE_LINES

_BRIEF_LINES = 4
"""So many blocked parts and locks are told where they don't fit."""

_STATE_STYLE = {
    "running": "bold green",
    "paused": "bold red",
    "pausing": "yellow",
    "stopping": "yellow",
    "starting": "cyan",
    "killed": "bold red",
}


def render(status: TaskStatus) -> RenderableType:
    """Everything the status says: what needs the operator in front, then what goes on."""
    return Group(*_above_targets(status), *([_targets(status.targets)] if status.targets else ()))


def render_tasks(tasks: Sequence[TaskStatus], silent: Sequence[str] = ()) -> RenderableType:
    """One line for each task, also for those that are ``silent``: which don't tell their status."""
    if not tasks and not silent:
        return Text("no task runs here as this user")

    def column(
        heading: str, cell: Callable[[TaskStatus], str], unknown: str = "-", rank: int = 0
    ) -> TextColumn:
        cells = [*map(cell, tasks), *(unknown for _ in silent)]
        return TextColumn(heading, cells, rank, heading == "lag")

    names = [*(task.task for task in tasks), *map(shown_line, silent)]
    table = FittingTable(
        (
            TextColumn("task", names),
            column("state", condition, "does not answer"),
            column("since", lambda task: _clock(task.since), rank=1),
            column("process", lambda task: str(task.pid or "-"), rank=2),
            column("lag", lambda task: seconds(largest_lag(task))),
            column("fault", _trouble, ""),
        )
    )
    return Group(table, *_troubles(tasks))


def _trouble(task: TaskStatus) -> str:
    """What a task suffers from, in a word or two."""
    faults = [task.error, *(part.error for part in task.blocked)]
    return next((fault.event for fault in faults if fault), "")


def _troubles(tasks: Sequence[TaskStatus]) -> Iterator[RenderableType]:
    """What the tasks suffer from, in whole."""
    for task in tasks:
        told = dict.fromkeys(
            error.message for error in (task.error, *(p.error for p in task.blocked)) if error
        )
        paused = ", ".join(part.name for part in task.blocked if not part.error)
        for message in (*told, *([f"blocked: {paused}"] if paused else [])):
            yield Padding(
                Text.assemble((f"{task.task}: ", "bold"), message), (0, 0, 0, 1), expand=False
            )


@dataclass(frozen=True, slots=True)
class StatusScreen:
    """The status for a terminal that shows no more than its height, as `--watch` does.

    Of many targets only so many are told that the rest of the status is seen, too.
    """

    status: TaskStatus

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        status, height = self.status, console.height
        above = list(_above_targets(status, _whole(status)))
        if _lines(console, options, above) > height - _FEWEST_LINES:
            above = list(_briefly(status))
        yield from above
        if status.targets:
            left = height - _lines(console, options, above) - _TABLE_LINES
            yield _busiest(status.targets, max(left, FEWEST_TARGETS))


def _lines(console: Console, options: ConsoleOptions, parts: Sequence[RenderableType]) -> int:
    return sum(len(console.render_lines(part, options)) for part in parts)


def _above_targets(status: TaskStatus, elsewhere: str = "") -> Iterator[RenderableType]:
    yield _head(status)
    yield from _faults(status, elsewhere)
    for lock in sorted(status.locks, key=lambda lock: lock.state != "conflict"):
        yield lock_panel(lock, elsewhere)
    yield from _what_goes_on(status)


def _briefly(status: TaskStatus) -> Iterator[RenderableType]:
    """The same where it is more than a screen: one fault in whole, of all others a line."""
    yield _head(status)
    faults = list(_faults(status, _whole(status)))
    yield from faults[:1]
    of_task = len(faults) > len(status.blocked)
    rest = [
        *(_blocked_line(part) for part in status.blocked[0 if of_task else 1 :]),
        *map(lock_line, sorted(status.locks, key=lambda lock: lock.state != "conflict")),
    ]
    yield from rest[:_BRIEF_LINES]
    if len(rest) > _BRIEF_LINES:
        yield Text(f"and {number(len(rest) - _BRIEF_LINES)} more like these", "bold yellow")
    if rest:
        yield Text(f"all of it: {_whole(status)}", "dim")
    yield from _what_goes_on(status)


def _whole(status: TaskStatus) -> str:
    """The command that shows all of it."""
    return f"replicator status {quote(status.task)}"


def _faults(status: TaskStatus, elsewhere: str = "") -> Iterator[RenderableType]:
    if status.error and status.error not in [part.error for part in status.blocked]:
        yield fault_panel(status.error, f"task {status.task}", elsewhere)
    for part in status.blocked:
        yield _blocked_panel(part, elsewhere)


def _what_goes_on(status: TaskStatus) -> Iterator[RenderableType]:
    if status.copy:
        yield render_copy(status.copy)
    copy = status.copy
    if status.pid and (copy is None or copy.state != "copying" or copy.held):
        yield _writer(status)
    yield from _curves(status.trend)
    if status.sources:
        yield _sources(status.sources)
        yield from map(_prepared, filter(lambda source: source.prepared, status.sources))


def fault_panel(fault: Fault, title: str, elsewhere: str = "") -> Framed:
    """One fault with its remedies; ``elsewhere`` as in `replicator.terminal.remedies.Remedies`."""
    text = Text(fault.message)
    if fault.where:
        text.append(f"\nwhere: {fault.where}", style="dim")
    text.append(f"\nsince: {_clock(fault.since)}", style="dim")
    heading = Text.assemble((title, "bold"), f"  {fault.event}")
    ways = remedies_list(fault.remedies, elsewhere) if fault.remedies else None
    return Framed(heading, text, "red", ways)


def _blocked_line(part: BlockedPart) -> Text:
    why = part.error.message if part.error else f"waits for {part.waits_for}"
    return Text.assemble(
        (f"{part.kind} {part.name} is blocked: ", "bold red"),
        why if part.error or part.waits_for else "paused",
        no_wrap=True,
        overflow="ellipsis",
    )


def _blocked_panel(part: BlockedPart, elsewhere: str) -> RenderableType:
    """One part that does not go on, why, and how it will."""
    title = f"{part.kind} {part.name} is blocked"
    fault = part.error or Fault(
        f"waits for {part.waits_for}" if part.waits_for else "paused",
        "its rows are held" if part.kind == "target" else "it is not read",
        "",
        part.remedies,
        part.since,
    )
    places = (
        f"{held.source} holds {number(held.rows_held)} row events, read again from"
        f" {held.saved_position}"
        for held in part.held
    )
    return Group(fault_panel(fault, title, elsewhere), *map(Text, places))


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
    def column(heading: str, cell: Callable[[SourceStatus], str], rank: int = 0) -> TextColumn:
        numeric = heading in ("lag", "row events", "read", "reconnects")
        return TextColumn(heading, [*map(cell, sources)], rank, numeric, heading == "state")

    return FittingTable(
        (
            column("source", lambda source: source.source),
            column("state", lambda source: source.state),
            column("read up to", lambda source: source.position),
            column("saved", lambda source: source.saved_position, 1),
            column("lag", lambda source: seconds(source.lag_seconds)),
            column("row events", lambda source: number(source.rows), 2),
            column("read", lambda source: size(source.bytes), 3),
            column("reconnects", lambda source: number(source.reconnects), 4),
        )
    )


def _prepared(source: SourceStatus) -> Text:
    count = number(len(source.prepared))
    return Text(
        f"{source.source}: {count} XA transactions wait for their outcome, the oldest since"
        f" {source.prepared[0]}",
        "yellow",
    )


def _targets(targets: Sequence[TargetStatus], *, told_below: bool = True) -> FittingTable:
    def column(heading: str, cell: Callable[[TargetStatus], str], rank: int) -> TextColumn:
        text = heading in ("target", "schema change")
        return TextColumn(
            heading, [*map(cell, targets)], rank, not text, heading == "schema change"
        )

    columns = [
        column("target", lambda target: target.target, 0),
        column("shards", lambda target: number(target.members), 3),
        column("inserted", lambda target: number(target.inserted), 0),
        column("overwritten", lambda target: number(target.overwritten), 4),
        column("deleted", lambda target: number(target.deleted), 5),
        column("missing", lambda target: number(target.missing), 2),
        column("rows/s", lambda target: number(round(target.rows_per_second)), 1),
    ]
    if any(target.filtered for target in targets):
        columns.append(column("filtered", lambda target: number(target.filtered), 1))
    if any(target.version or target.ddl for target in targets):
        columns.append(column("version", lambda target: number(target.version), 6))
    if any(target.ddl for target in targets):
        columns.append(column("schema change", lambda target: target.ddl, 0))
    return FittingTable(columns, told_below)


def _busiest(targets: tuple[TargetStatus, ...], most: int) -> RenderableType:
    """Of too many targets those that something happens to, and how many are left out."""
    if len(targets) <= most:
        return _targets(targets, told_below=False)
    order = sorted(targets, key=lambda t: (not t.ddl, -t.rows_per_second, -t.missing, t.target))
    left = Text(f"and {number(len(targets) - most)} more targets: status without --watch", "dim")
    return Group(_targets(order[:most], told_below=False), left)


def _writer(status: TaskStatus) -> Text:
    writer = status.writer
    text = Text.assemble(
        ("writer ", "dim"),
        (writer.state, "bold" if writer.state in ("idle", "applying") else "bold yellow"),
        f"  {number(writer.batches)} batches, {number(writer.rows)} rows, "
        f"{number(round(writer.rows_per_second))} rows/s",
    )
    if writer.last_batch_seconds is not None:
        text.append(f", last batch {seconds(writer.last_batch_seconds)}")
    if writer.queued_bytes:
        text.append(f", {size(writer.queued_bytes)} wait")
    if status.sources and not any(source.saved_position for source in status.sources):
        return text.append(", nothing saved yet")
    if writer.checkpoint_age_seconds is not None:
        text.append(f", saved {seconds(writer.checkpoint_age_seconds)} ago")
    return text


_BARS = "▁▂▃▄▅▆▇█"
_CURVE_POINTS = 15
"""As many points as fit twice into 80 columns, with their figures."""


def _curves(trend: Trend) -> Iterator[Text]:
    """The rate and the lag of the last minutes, once there are some points of them."""
    if len(trend.rows_per_second) < 2:
        return
    minutes = len(trend.rows_per_second) * trend.interval_seconds / 60
    rates, lags = _fewer(trend.rows_per_second), _fewer(trend.lag_seconds)
    text = Text.assemble(
        *(("rows/s ", "dim"), (_curve(rates), "cyan"), f" ≤ {number(round(max(rates) or 0))}"),
        *(("   lag ", "dim"), (_curve(lags), "cyan"), f" ≤ {seconds(max(lags))}"),
        (f"   {minutes:.0f} min" if minutes >= 1 else "", "dim"),
        no_wrap=True,
        overflow="ellipsis",
    )
    yield text


def _fewer(values: Sequence[float | None]) -> list[float]:
    """The largest of each few values in a row, for as many points as are shown."""
    width = -(-len(values) // _CURVE_POINTS)
    return [
        max(value or 0.0 for value in values[place : place + width])
        for place in range(0, len(values), width)
    ]


def _curve(values: Sequence[float]) -> str:
    most = max(values) or 1.0
    return "".join(_BARS[round(value / most * (len(_BARS) - 1))] for value in values)


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
