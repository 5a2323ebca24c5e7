"""The status of a task as tables on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from shlex import quote

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.text import Text

from replicator.printable_text import shown_line
from replicator.status import (
    BlockedPart,
    Fault,
    LockStatus,
    Reconciling,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    Trend,
    condition,
    is_retrying,
    largest_lag,
)
from replicator.terminal.copy_progress import render_copy
from replicator.terminal.figures import number, seconds, size
from replicator.terminal.fitting_table import FittingTable, TextColumn
from replicator.terminal.locks import differences_list, lock_line, lock_panel
from replicator.terminal.remedies import Framed, remedies_list

MOST_ROWS = 20
"""Maximum number of sources, and of targets, that are listed one by one without --all."""

MOST_PANELS = 5
"""Maximum number of blocked parts, and of locks, that are shown in full without --all."""

FEWEST_TARGETS = 3
"""Minimum number of targets that are listed, however small the terminal is."""

_TABLE_LINES = 5
"""Lines of a table of targets besides its rows: around its heading, and for the omitted number."""

_BRIEF_LINES = 4
"""Maximum number of blocked parts and locks that are listed if not all fit."""

_STATE_STYLE = {
    "running": "bold green",
    "paused": "bold red",
    "pausing": "yellow",
    "stopping": "yellow",
    "starting": "cyan",
    "standby": "cyan",
    "killed": "bold red",
}


def render(status: TaskStatus, *, everything: bool = False) -> RenderableType:
    """Return the status: first the parts that need the operator, then the running parts.

    Very long lists end with a summary, unless ``everything`` is shown.
    """
    if everything:
        parts = [*_needs_operator(status, everything=True), *_what_goes_on(status)]
        targets = [_targets(status.targets)] if status.targets else []
        return Group(_head(status), *parts, *_sources_shown(status), *targets)
    return Group(
        _head(status),
        *_needs_operator(status, most=MOST_PANELS),
        *_what_goes_on(status),
        *_some_sources(status),
        *_some_targets(status),
    )


def _some_sources(status: TaskStatus) -> Iterator[RenderableType]:
    if len(status.sources) <= MOST_ROWS:
        yield from _sources_shown(status)
        return
    yield from _folded_sources(status.sources)
    yield from map(_prepared, filter(lambda source: source.prepared, status.sources))


def _some_targets(status: TaskStatus) -> Iterator[RenderableType]:
    targets = status.targets
    if len(targets) <= MOST_ROWS:
        yield from [_targets(targets)] if targets else []
        return
    odd = [target for target in targets if target.ddl or target.missing]
    if odd:
        yield _targets(odd[:MOST_ROWS])
    yield _folded_targets(targets)
    yield Text(f"all targets and sources: {whole_status(status)}", "dim")


def render_tasks(tasks: Sequence[TaskStatus], silent: Sequence[str] = ()) -> RenderableType:
    """Return a line for each task. ``silent`` are tasks that don't report their status."""
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
    faults = [task.error, *(part.error for part in task.blocked)]
    return next((fault.event for fault in faults if fault), "")


def _troubles(tasks: Sequence[TaskStatus]) -> Iterator[RenderableType]:
    for task in tasks:
        notes = dict.fromkeys(
            error.message for error in (task.error, *(p.error for p in task.blocked)) if error
        )
        paused = ", ".join(part.name for part in task.blocked if not part.error)
        reasons = [task.reason] if task.reason and not task.error else []
        for message in (*reasons, *notes, *([f"blocked: {paused}"] if paused else [])):
            yield Padding(
                Text.assemble((f"{task.task}: ", "bold"), message), (0, 0, 0, 1), expand=False
            )


@dataclass(frozen=True, slots=True)
class StatusScreen:
    """The status, limited to the height of the terminal, as for `--watch`.

    The parts that need the operator come first, as far as there is room for them. The running parts
    get the other lines: sources, and targets, become one line each if their tables don't fit.
    ``spared`` is the number of terminal lines that are left for other output.
    """

    status: TaskStatus
    spared: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        height = console.height - self.spared
        for parts in _ever_less(self.status):
            targets = _targets_in(self.status.targets, height - _lines(console, options, parts))
            if targets is not None:
                yield from (*parts, *targets)
                return
        yield from _cut_to(console, options, self.status, height)


def _ever_less(status: TaskStatus) -> Iterator[list[RenderableType]]:
    """Yield all parts except the targets: first in full, then in ever shorter versions."""
    head, goes_on = _head(status), list(_what_goes_on(status))
    sources, folded = list(_sources_shown(status)), _folded_sources(status.sources)
    first, others = _briefly(status)
    whole = [head, *_needs_operator(status, whole_status(status))]
    for above in (whole, [head, *first, *others, _elsewhere(status)]):
        yield [*above, *goes_on, *sources]
        yield [*above, *goes_on, *folded]
        yield [*above, *folded]


def _targets_in(targets: tuple[TargetStatus, ...], room: int) -> list[RenderableType] | None:
    """Return the targets in at most this number of lines, as a table or a line.

    Return None if there is no room.
    """
    rows = min(len(targets), FEWEST_TARGETS)
    if room < 0 or (targets and not room):
        return None
    if not targets:
        return []
    if room >= rows + _TABLE_LINES:
        return [_busiest(targets, room - _TABLE_LINES)]
    return [_folded_targets(targets)]


def _cut_to(
    console: Console, options: ConsoleOptions, status: TaskStatus, height: int
) -> Iterator[RenderableType]:
    """Yield the parts for the operator, as far as they fit, and a command for the rest."""
    first, others = _briefly(status)
    parts = [_head(status), *others, *first]
    lines = [line for part in parts for line in console.render_lines(part, options)]
    for line in lines[: height - 1]:
        yield Segments([*line, Segment.line()])
    yield _elsewhere(status)


def _elsewhere(status: TaskStatus) -> Text:
    return one_line((f"all of it: {whole_status(status)}", "dim"))


def _lines(console: Console, options: ConsoleOptions, parts: Sequence[RenderableType]) -> int:
    return sum(len(console.render_lines(part, options)) for part in parts)


def _needs_operator(
    status: TaskStatus, elsewhere: str = "", *, most: int | None = None, everything: bool = False
) -> Iterator[RenderableType]:
    """Yield the faults and the locks; ``most`` of each in full, and a line for each of the others.

    ``everything`` has the same meaning as in `replicator.terminal.locks.render_locks`.
    """
    faults, locks = list(_faults(status, elsewhere)), _worst_first(status.locks)
    yield from faults[:most]
    rest = len(faults[len(faults[:most]) :])
    yield from map(blocked_line, status.blocked[len(status.blocked) - rest :])
    for lock in locks[:most]:
        yield lock_panel(lock, elsewhere, everything=everything)
    yield from map(lock_line, locks[len(locks[:most]) :])
    yield from map(differences_list, status.differing)
    for shard in status.unreadable:
        yield Text(shown_line(f"{shard}"), "yellow")
    for entry in status.reconciling:
        yield Text(shown_line(f"{entry}"), _color(entry))
    yield from _verified(status)


def _verified(status: TaskStatus) -> Iterator[Text]:
    if not status.verified:
        return
    for target in status.verified:
        if target.differing or target.reason:
            yield Text(shown_line(f"{target}"), "red" if target.differing else "yellow")
    ended = [target.at for target in status.verified if target.at is not None]
    text = f"{len(ended)} of {len(status.verified)} targets verified"
    yield Text(f"{text}, the first at {min(ended):%Y-%m-%d %H:%M:%S}Z" if ended else text)


def _color(entry: Reconciling) -> str:
    return "red" if entry.state == "failed" else "cyan"


def _worst_first(locks: Sequence[LockStatus]) -> list[LockStatus]:
    return sorted(locks, key=lambda lock: lock.state != "conflict")


def _briefly(status: TaskStatus) -> tuple[list[RenderableType], list[Text]]:
    """Return the first fault or lock in full, and a line for each of the others."""
    faults = list(_faults(status, whole_status(status)))
    locks = _worst_first(status.locks)
    of_task = len(faults) > len(status.blocked)
    others = [
        *(blocked_line(part) for part in status.blocked[0 if of_task else 1 :]),
        *map(lock_line, locks if faults else locks[1:]),
        *(one_line((shown_line(f"{shard}"), "yellow")) for shard in status.unreadable),
        *(one_line((shown_line(f"{entry}"), _color(entry))) for entry in status.reconciling),
        *_verified(status),
    ]
    first = faults[:1] or [lock_panel(lock, whole_status(status)) for lock in locks[:1]]
    return first, _at_most(others, "")


def _at_most(lines: list[Text], what: str) -> list[Text]:
    left = len(lines) - _BRIEF_LINES
    if left <= 0:
        return lines
    more = " ".join(filter(None, (f"and {number(left)} more", what, "like these")))
    return [*lines[:_BRIEF_LINES], Text(more, "bold yellow")]


def whole_status(status: TaskStatus) -> str:
    """Return the command that shows the whole status."""
    return f"replicator status {quote(status.task)} --all"


def _faults(status: TaskStatus, elsewhere: str = "") -> Iterator[RenderableType]:
    if status.error and status.error not in [part.error for part in status.blocked]:
        yield fault_panel(status.error, f"task {status.task}", elsewhere)
    for part in status.blocked:
        yield blocked_panel(part, elsewhere)


def _what_goes_on(status: TaskStatus) -> Iterator[RenderableType]:
    if status.copy:
        yield render_copy(status.copy)
    copy = status.copy
    if status.pid and (copy is None or copy.state != "copying" or copy.held):
        yield _writer(status)
    yield from _curves(status.trend)


def _sources_shown(status: TaskStatus) -> Iterator[RenderableType]:
    if status.sources:
        yield _sources(status.sources)
        yield from map(_prepared, filter(lambda source: source.prepared, status.sources))
        yield from map(render_relay, filter(lambda source: source.relay, status.sources))


def render_relay(source: SourceStatus) -> Text:
    """Return a line about the relay log of a source."""
    relay = source.relay
    assert relay is not None
    held = f", held by: {relay.held_by}" if relay.held_by else ""
    error = f"; not continued: {relay.error}" if relay.error else ""
    return Text(
        f"relay of {source.source}: {number(relay.files)} files, {size(relay.bytes)},"
        f" {relay.first} to {relay.end}, needed from {relay.needed or '-'} on{held}{error}"
    )


def _folded_sources(sources: Sequence[SourceStatus]) -> list[RenderableType]:
    if not sources:
        return []
    does = Counter(source.state.partition(":")[0] for source in sources)
    lags = [source.lag_seconds for source in sources if source.lag_seconds is not None]
    counts = ", ".join(f"{number(count)} {state}" for state, count in does.most_common())
    head = Text.assemble(
        ("sources ", "dim"),
        f"{counts}, lag \N{LESS-THAN OR EQUAL TO} {seconds(max(lags, default=None))}",
    )
    away = [source for source in sources if ":" in source.state]
    waiting = sum(len(source.prepared) for source in sources)
    if waiting:
        head.append(f", {number(waiting)} XA transactions wait for their outcome", "yellow")
    lines = [one_line((f"{s.source}: ", "bold yellow"), shown_line(s.state)) for s in away]
    return [one_line(head), *_at_most(lines, "sources")]


def _folded_targets(targets: Sequence[TargetStatus]) -> Text:
    rate = sum(target.rows_per_second for target in targets)
    changing = sum(bool(target.ddl) for target in targets)
    return one_line(
        ("targets ", "dim"),
        f"{number(len(targets))}, {number(round(rate))} rows/s",
        f", {number(changing)} with a schema change" if changing else "",
    )


def one_line(*parts: str | Text | tuple[str, str]) -> Text:
    """Return a line that is cut at the end of the terminal."""
    return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")


def fault_panel(fault: Fault, title: str, elsewhere: str = "") -> Framed:
    """Return one fault with its remedies.

    ``elsewhere`` has the same meaning as in `replicator.terminal.remedies.Remedies`.
    """
    text = Text(fault.message)
    if fault.where:
        text.append(f"\nwhere: {fault.where}", style="dim")
    text.append(f"\nsince: {_clock(fault.since)}", style="dim")
    heading = Text.assemble((title, "bold"), f"  {fault.event}")
    ways = remedies_list(fault.remedies, elsewhere) if fault.remedies else None
    return Framed(heading, text, "red", ways)


def blocked_line(part: BlockedPart) -> Text:
    """Return a line about a stopped part, with the reason."""
    why = part.error.message if part.error else f"waits for {part.waits_for}"
    reason = why if part.error or part.waits_for else "paused"
    return one_line((f"{part.kind} {part.name} is blocked: ", "bold red"), shown_line(reason))


def blocked_panel(part: BlockedPart, elsewhere: str) -> RenderableType:
    """Return a stopped part, with the reason and the remedies."""
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
    # A restart after a transient failure counts as the same run of the task.
    begun = status.started if status.state == "running" and status.started else status.since
    age = seconds(max((datetime.now(UTC) - begun).total_seconds(), 0.0))
    lasting = f" for {age} (process {status.pid})" if status.pid else f", saved {age} ago"
    return Text.assemble(
        ("task ", "dim"),
        (status.task, "bold"),
        "  ",
        (status.state, _STATE_STYLE.get(status.state, "bold")),
        (f", {len(status.blocked)} blocked" if status.blocked else "", "bold red"),
        (", retrying" if is_retrying(status) else "", "bold yellow"),
        (lasting, "dim"),
        f"; {status.standby_for} runs it" if status.standby_for else "",
        f": {status.reason}" if status.reason else "",
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


def _targets(targets: Sequence[TargetStatus], *, repeated_below: bool = True) -> FittingTable:
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
    return FittingTable(columns, repeated_below)


def _busiest(targets: tuple[TargetStatus, ...], most: int) -> RenderableType:
    if len(targets) <= most:
        return _targets(targets, repeated_below=False)
    order = sorted(targets, key=lambda t: (not t.ddl, -t.rows_per_second, -t.missing, t.target))
    left = Text(f"and {number(len(targets) - most)} more targets: status --all", "dim")
    return Group(_targets(order[:most], repeated_below=False), left)


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
"""Number of points of a curve: two curves with their figures then fit into 80 columns."""


def _curves(trend: Trend) -> Iterator[Text]:
    """Yield the rate and the lag of the last minutes, once each has some points."""
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
    """Return at most `_CURVE_POINTS` values: the largest of each group of values."""
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
