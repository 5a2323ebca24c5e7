"""The report on a terminal: a few lines and short tables with the last entries of each kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.text import Text

from actors.reporting.log_records import LogReader
from actors.reporting.report import FaultSpan, Report
from replicator.printable_text import shown_line
from replicator.terminal.figures import number, seconds
from replicator.terminal.fitting_table import FittingTable, TextColumn

MOST_ROWS = 10
"""Maximum number of rows of a table; the page has more."""


_COUNTED = {
    "start": "starts",
    "restart": "restarts after failures",
    "pause": "pauses",
    "killed": "killed or crashed",
    "failed": "ended by errors",
    "stop": "stopped",
    "failover": "failovers of sources",
}


class Summary:
    """The parts of a report that a terminal shows."""

    def __init__(self, report: Report, reader: LogReader) -> None:
        self._report, self._reader = report, reader

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        report = self._report
        yield Text.assemble((f"task {shown_line(report.task)}", "bold"), f"  {span_text(report)}")
        for line in figure_lines(report):
            yield Text(f" {line}")
        for line in doubt_lines(self._reader):
            yield Text.assemble((" ! ", "yellow"), line)
        yield from self._faults()
        yield from self._changes()
        yield from self._messages()
        yield from self._moments()

    def _faults(self) -> Iterator[RenderableType]:
        report = self._report
        faults = list(report.faults)[-MOST_ROWS:]
        if not faults:
            yield Text("\nno faults")
            return
        yield _heading("faults", report.fault_count, len(faults))
        yield FittingTable(
            [
                TextColumn("fault", [fault.event for fault in faults]),
                TextColumn("since", [short(fault.since) for fault in faults], rank=1),
                TextColumn("took", [took(fault, report) for fault in faults], numeric=True),
                TextColumn("end", [fault.ended or "OPEN" for fault in faults]),
                TextColumn("blocked", [_first(fault.blocked, "task") for fault in faults], rank=2),
            ]
        )

    def _changes(self) -> Iterator[RenderableType]:
        report = self._report
        changes = report.changes[-MOST_ROWS:]
        if not changes:
            return
        end = report.last or datetime.now(UTC)
        yield _heading("schema changes", report.change_count, len(changes))
        yield FittingTable(
            [
                TextColumn("target", [change.target for change in changes]),
                TextColumn("begun", [short(change.first) for change in changes], rank=2),
                TextColumn(
                    "shards waited",
                    [seconds(change.longest_wait(end)) for change in changes],
                    numeric=True,
                ),
                TextColumn("outcome", [change.ended for change in changes], rank=1),
                TextColumn("statement", [c.statement for c in changes], rank=3, sentences=True),
            ],
            repeated_below=False,
        )

    def _messages(self) -> Iterator[RenderableType]:
        messages = self._report.messages[:MOST_ROWS]
        if not messages:
            return
        yield _heading("warnings and errors", len(self._report.messages), len(messages), "most of")
        yield FittingTable(
            [
                TextColumn("event", [message.event for message in messages]),
                TextColumn("count", [number(message.count) for message in messages], numeric=True),
                TextColumn("last", [short(message.last) for message in messages], rank=1),
                TextColumn(
                    "said last", [message.example for message in messages], rank=2, sentences=True
                ),
            ],
            repeated_below=False,
        )

    def _moments(self) -> Iterator[RenderableType]:
        moments = list(self._report.moments)[-MOST_ROWS:]
        if not moments:
            return
        yield _heading("what happened", sum(self._report.counts.values()), len(moments))
        yield FittingTable(
            [
                TextColumn("when", [short(moment.at) for moment in moments]),
                TextColumn("what", [moment.text for moment in moments], sentences=True),
            ],
            repeated_below=False,
        )


def _heading(what: str, count: int, shown: int, which: str = "last") -> RenderableType:
    more = f", the {which} {shown}" if count > shown else ""
    return Group(Text(""), Text(f"{what}: {number(count)}{more}", style="bold"))


def _first(names: Sequence[str], otherwise: str) -> str:
    if not names:
        return otherwise
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def took(fault: FaultSpan, report: Report) -> str:
    """Return how long a fault lasted."""
    end = fault.until or report.last or fault.since
    return seconds((end - fault.since).total_seconds())


def short(moment: datetime) -> str:
    """Return a moment in the form for a column."""
    return f"{moment.astimezone(UTC):%m-%d %H:%M:%S}"


def span_text(report: Report) -> str:
    """Return the start and the end of the report."""
    if report.first is None or report.last is None:
        return "no records"
    span = seconds((report.last - report.first).total_seconds())
    return f"{report.first:%Y-%m-%d %H:%M:%S} to {report.last:%Y-%m-%d %H:%M:%S} UTC ({span})"


def figure_lines(report: Report) -> Iterator[str]:
    """Yield counts, throughput, lag and copy, each as a line."""
    counts = [
        f"{word} {number(report.counts[kind])}"
        for kind, word in _COUNTED.items()
        if kind in report.counts
    ]
    last = f"; in the end: {report.state}" if report.state else ""
    yield (", ".join(counts) or "no start and no stop") + last
    curve = report.progress
    if curve.most_rows is not None:
        most = curve.most_rows
        yield (
            f"{number(round(report.rows))} rows written, {number(round(curve.mean_rows))} rows/s on"
            f" average, at most {number(round(most.rows_per_second))} ({short(most.at)})"
        )
    if curve.most_lag is not None:
        most = curve.most_lag
        last = seconds(curve.last_lag)
        yield f"lag at most {seconds(most.lag_seconds)} ({short(most.at)}), last {last}"
    if (copy := report.copy) is not None:
        shards = f"{number(round(copy.tables_done))} of {number(round(copy.tables))} shards"
        state = "copied" if copy.finished else "copying"
        yield f"{state} {shards}, {number(round(copy.rows))} rows in {seconds(copy.seconds)}"


def doubt_lines(reader: LogReader) -> Iterator[str]:
    """Yield which parts of the log are not in the report."""
    if reader.unreadable:
        lines = number(reader.lines)
        yield f"{number(reader.unreadable)} of {lines} lines are no records, left out"
    if reader.others:
        count, names = sum(reader.others.values()), sorted(reader.others)
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        named = ", ".join(map(shown_line, names[:3])) + more
        yield f"{number(count)} records of other tasks left out: {named}"
