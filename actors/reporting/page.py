"""The report as a page: one file without scripts that loads nothing and contains SVG plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import median
from xml.etree import ElementTree as ET  # nosec B405: it makes a document, and reads none

from actors.reporting.log_records import LogReader
from actors.reporting.report import FaultSpan, Point, Report, SchemaChange
from actors.reporting.summary import doubt_lines, figure_lines, span_text, took
from replicator.events.all_events import EVENTS
from replicator.monitoring.page_elements import (
    add_remedies,
    add_table,
    add_text,
    as_document,
    clock,
    empty_page,
)
from replicator.terminal.figures import number, seconds

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _BOTTOM, _TOP = 960.0, 190.0, 70.0, 34.0, 24.0, 8.0
"""The size of a plot in its own units; the browser scales it."""

_STEPS = (*(60 * m for m in (1, 2, 5, 10, 15, 30)), *(3600 * h for h in (1, 2, 3, 6, 12, 24)))
"""Possible seconds between two marks of the time axis; longer ones are whole days."""


def report_page(report: Report, reader: LogReader) -> str:
    """Return the report as a complete page."""
    html, body = empty_page(f"report: {report.task}")
    add_text(body, "h1", f"{report.task}: what its log shows")
    add_text(body, "div", span_text(report), "dim")
    for line in figure_lines(report):
        add_text(body, "p", line)
    for line in doubt_lines(reader):
        add_text(body, "p", line, "warn")
    _plots(body, report)
    _faults(body, report)
    _changes(body, report)
    _messages(body, report)
    _moments(body, report)
    return as_document(html)


def _heading(body: ET.Element, what: str, count: int, shown: int) -> None:
    more = f", the last {number(shown)}" if count > shown else ""
    add_text(body, "h3", f"{what}: {number(count)}{more}")


def _faults(body: ET.Element, report: Report) -> None:
    _heading(body, "Faults", report.fault_count, len(report.faults))
    for fault in report.faults:
        _fault(body, fault, report)


def _fault(body: ET.Element, fault: FaultSpan, report: Report) -> None:
    box = ET.SubElement(body, "section", {"class": "ended"} if fault.until else {})
    add_text(add_text(box, "h2", ""), "code", fault.event, "" if fault.until else "bad")
    add_text(box, "p", fault.error)
    end = f"{fault.ended} after {took(fault, report)}" if fault.until else "open at the log's end"
    blocked = f"; blocked {', '.join(fault.blocked[:20])}" if fault.blocked else ""
    where = f"; where: {fault.where}" if fault.where else ""
    add_text(box, "p", f"{clock(fault.since)}; {end}{blocked}{where}", "dim")
    if not fault.until:
        add_remedies(box, fault.remedies)


def _changes(body: ET.Element, report: Report) -> None:
    if not report.changes:
        return
    _heading(body, "Schema changes", report.change_count, len(report.changes))
    end = report.last or datetime.now(UTC)
    heads = ("target", "begun", "statement", "outcome", "executed in#", "shards waited")
    add_table(
        body,
        heads,
        (
            (
                *(change.target, clock(change.first), change.statement, change.ended),
                seconds(change.executed_seconds),
                _waits(change, end),
            )
            for change in report.changes
        ),
    )


def _waits(change: SchemaChange, end: datetime) -> str:
    """Return the shards by how long their rows waited, the longest first."""
    waits = [
        (w.seconds or (end - w.since).total_seconds(), w.seconds is None, f"{w.source} {w.member}")
        for w in change.waits
    ]
    waits.sort(reverse=True)
    shown = [f"{name} {seconds(wait)}{' so far' * still}" for wait, still, name in waits[:8]]
    more = [f"and {number(len(waits) - 8)} more"] if len(waits) > 8 else []
    return ", ".join(shown + more)


def _messages(body: ET.Element, report: Report) -> None:
    if not report.messages:
        return
    meanings = {event.name: event.meaning.split(". ")[0] for event in EVENTS}
    _heading(body, "Warnings and errors", len(report.messages), len(report.messages))
    add_table(
        body,
        ("event", "level", "count#", "first", "last", "meaning", "the last one said"),
        (
            (
                *(
                    message.event,
                    message.level,
                    number(message.count),
                    clock(message.first),
                    clock(message.last),
                ),
                *(meanings.get(message.event, ""), message.example),
            )
            for message in report.messages
        ),
    )


def _moments(body: ET.Element, report: Report) -> None:
    _heading(body, "What happened", sum(report.counts.values()), len(report.moments))
    add_table(body, ("when", "what"), ((clock(m.at), m.text) for m in report.moments))


@dataclass(frozen=True, slots=True)
class _Frame:
    """The frame of a plot: its times, its largest value, and their places in the drawing."""

    first: datetime
    last: datetime
    most: float

    def x(self, at: datetime) -> float:
        span = max((self.last - self.first).total_seconds(), 1.0)
        part = (at - self.first).total_seconds() / span
        return _LEFT + min(max(part, 0.0), 1.0) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - value / self.most * (_HEIGHT - _BOTTOM - _TOP)


def _plots(body: ET.Element, report: Report) -> None:
    if len(report.progress.points) < 2 or report.first is None or report.last is None:
        return
    shades = "Red: a fault was open. Grey: no process ran, or the task paused."
    add_text(body, "p", shades, "dim")
    _plot(body, report, "rows/s", lambda point: point.rows_per_second, _rate)
    _plot(body, report, "lag", lambda point: point.lag_seconds, _duration)


def _plot(
    body: ET.Element,
    report: Report,
    title: str,
    value_of: Callable[[Point], float | None],
    label_of: Callable[[float], str],
) -> None:
    assert report.first is not None
    assert report.last is not None
    points = report.progress.points
    values = [value for point in points if (value := value_of(point)) is not None]
    if not values:
        return
    frame = _Frame(report.first, report.last, nice(max(values)))
    figure = ET.SubElement(body, "figure", {"class": "plot"})
    add_text(figure, "figcaption", title)
    box = {"viewBox": f"0 0 {_WIDTH:.0f} {_HEIGHT:.0f}", "role": "img"}
    svg = ET.SubElement(figure, "svg", {**box, "aria-label": f"{title} over time"})
    _bands(svg, frame, report)
    for part in (0.0, 0.5, 1.0):
        y = frame.y(part * frame.most)
        _line(svg, (_LEFT, y), (_WIDTH - _RIGHT, y))
        _label(svg, _LEFT - 6, y + 4, label_of(part * frame.most), "end")
    for at, words in time_marks(frame.first, frame.last):
        x = frame.x(at)
        _line(svg, (x, _TOP), (x, _HEIGHT - _BOTTOM))
        _label(svg, x, _HEIGHT - 8, words, "middle")
    for run in _runs(points, value_of):
        # A line of one point is drawn only if it has an end.
        line = run * 2 if len(run) == 1 else run
        places = " ".join(f"{frame.x(at):.1f},{frame.y(value):.1f}" for at, value in line)
        ET.SubElement(svg, "polyline", points=places)


def _bands(svg: ET.Element, frame: _Frame, report: Report) -> None:
    spans = [(down.since, down.until, "down", down.why) for down in report.downs]
    spans += [(fault.since, fault.until, "fault", fault.event) for fault in report.faults]
    for since, until, kind, why in spans:
        left, right = frame.x(since), frame.x(until or frame.last)
        shape = {"x": f"{left:.1f}", "width": f"{max(right - left, 1.5):.1f}", "class": kind}
        band = ET.SubElement(
            svg, "rect", {**shape, "y": f"{_TOP:.0f}", "height": f"{_HEIGHT - _BOTTOM - _TOP:.0f}"}
        )
        add_text(band, "title", f"{why}, {clock(since)}")


def _line(svg: ET.Element, start: tuple[float, float], end: tuple[float, float]) -> None:
    places = {"x1": start[0], "y1": start[1], "x2": end[0], "y2": end[1]}
    ET.SubElement(svg, "line", {name: f"{place:.1f}" for name, place in places.items()})


def _label(svg: ET.Element, x: float, y: float, words: str, anchor: str) -> None:
    made = add_text(svg, "text", words)
    made.attrib.update({"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor})


def _runs(
    points: Sequence[Point], value_of: Callable[[Point], float | None]
) -> Iterator[list[tuple[datetime, float]]]:
    """Yield the points as lines; a line ends where a value is unknown or records are missing."""
    gaps = [(b.at - a.at).total_seconds() for a, b in pairwise(points)]
    longest = timedelta(seconds=3 * median(gaps) + 1)
    run: list[tuple[datetime, float]] = []
    for point in points:
        value = value_of(point)
        if run and (value is None or point.at - run[-1][0] > longest):
            yield run
            run = []
        if value is not None:
            run.append((point.at, value))
    if run:
        yield run


def nice(most: float) -> float:
    """Return the smallest of 1, 2, 5, 10 … that is at least ``most``."""
    if most <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= most * (1 - 1e-9))


def time_marks(first: datetime, last: datetime) -> list[tuple[datetime, str]]:
    """Return at most nine marks at round times between two moments, with their labels."""
    span = max((last - first).total_seconds(), 1.0)
    days = math.ceil(span / 86400 / 8) * 86400
    step = next((s for s in (*(1, 2, 5, 10, 15, 30), *_STEPS) if span / s <= 8), days)
    begin = math.ceil(first.timestamp() / step) * step
    form = "%m-%d" if step >= 86400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    places = [datetime.fromtimestamp(begin + n * step, UTC) for n in range(9)]
    return [(at, f"{at:{form}}") for at in places if at <= last]


def _rate(value: float) -> str:
    return f"{value:g}" if value < 10 else number(round(value))


def _duration(value: float) -> str:
    if value >= 3600:
        return f"{value / 3600:.1f} h"
    return f"{value / 60:.1f} min" if value >= 60 else f"{value:.1f} s"
