"""The page at the metrics' address: what `status --watch` shows, read only, in plain HTML.

Made of elements, never of text: so whatever servers put into names and statements is escaped.
It loads nothing and runs nothing; a browser gets it anew every few seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET  # nosec B405: it makes a document, and reads none

from replicator.printable_text import printable_text
from replicator.status import (
    CopyStatus,
    Fault,
    LockStatus,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    Trend,
    condition,
    faults_of,
    largest_lag,
    needs_operator,
)
from replicator.terminal.figures import number, seconds, size
from replicator.terminal.remedies import parts_of

REFRESH_SECONDS = 3
"""Seconds after which a browser asks again."""

MOST_TARGETS = 100
"""Targets that are told, those in front that something happens to."""

_STYLE = """
:root { color-scheme: light dark; --line: #d0d7de; --dim: #59636e; --bad: #cf222e; --warn: #9a6700;
  --good: #1a7f37; --box: #f6f8fa; --curve: #0969da; }
@media (prefers-color-scheme: dark) { :root { --line: #3d444d; --dim: #9198a1; --bad: #ff7b72;
  --warn: #e3b341; --good: #3fb950; --box: #161b22; --curve: #58a6ff; }
  body { background: #0d1117; color: #e6edf3; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 72rem; margin: 1.2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0 0 .2rem; } h2 { font-size: 1rem; margin: 0 0 .3rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .3rem; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); }
.warn { color: var(--warn); }
section { border: 1px solid var(--line); border-left: .3rem solid var(--bad); border-radius: .3rem;
  background: var(--box); padding: .6rem .9rem; margin: .8rem 0; overflow-wrap: anywhere; }
section.lock { border-left-color: var(--warn); }
section p { margin: .2rem 0; } code { font-family: ui-monospace, monospace; font-size: .93em; }
.scroll { overflow-x: auto; margin: 1rem 0; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; } th { color: var(--dim); font-weight: normal; }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { display: inline-block; margin: .6rem 2rem .2rem 0; } figcaption { color: var(--dim); }
svg { display: block; } polyline { fill: none; stroke: var(--curve); stroke-width: 1.5; }
"""

_CURVE = (240, 36)
"""Width and height of a curve in pixels."""


def status_page(status: TaskStatus) -> str:
    """The status as a page of its own."""
    html = ET.Element("html", lang="en")
    head = ET.SubElement(html, "head")
    ET.SubElement(head, "meta", charset="utf-8")
    ET.SubElement(head, "meta", {"http-equiv": "refresh", "content": str(REFRESH_SECONDS)})
    ET.SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _text(head, "title", f"{condition(status)}: {status.task}")
    # Nothing of the status goes in here: browsers take it as it is.
    ET.SubElement(head, "style").text = _STYLE
    body = ET.SubElement(html, "body")
    _head(body, status)
    for what, fault in faults_of(status):
        _fault(body, what, fault)
    _parts_without_fault(body, status)
    for lock in sorted(status.locks, key=lambda lock: lock.state != "conflict"):
        _lock(body, lock)
    _trend(body, status.trend)
    _writer(body, status)
    if status.copy:
        _copy(body, status.copy)
    _sources(body, status.sources)
    _targets(body, status.targets)
    return "<!DOCTYPE html>\n" + ET.tostring(html, encoding="unicode", method="html") + "\n"


def _text(parent: ET.Element, tag: str, text: str, kind: str = "") -> ET.Element:
    made = ET.SubElement(parent, tag, {"class": kind} if kind else {})
    made.text = printable_text(text)
    return made


def _head(body: ET.Element, status: TaskStatus) -> None:
    title = _text(body, "h1", f"{status.task} ")
    kind = "bad" if needs_operator(status) else "warn" if condition(status) != "running" else "good"
    _text(title, "span", condition(status), kind)
    age = seconds(max((datetime.now(UTC) - status.since).total_seconds(), 0.0))
    lag = seconds(largest_lag(status))
    told = f"{status.state} for {age}, process {status.pid}, lag {lag}. As of {_clock(_now())}"
    _text(body, "div", told, "dim")


def _fault(body: ET.Element, what: str, fault: Fault) -> None:
    box = ET.SubElement(body, "section")
    _text(_text(box, "h2", f"{what} "), "code", fault.event, "bad")
    _text(box, "p", fault.message)
    where = f"where: {fault.where}; " if fault.where else ""
    _text(box, "p", f"{where}since {_clock(fault.since)}", "dim")
    _remedies(box, fault.remedies)


def _parts_without_fault(body: ET.Element, status: TaskStatus) -> None:
    for part in status.blocked:
        if part.error is None:
            box = ET.SubElement(body, "section")
            why = f"waits for {part.waits_for}" if part.waits_for else "is paused"
            _text(box, "h2", f"{part.kind} {part.name} {why}")
            _text(box, "p", f"since {_clock(part.since)}", "dim")
            _remedies(box, part.remedies)


def _lock(body: ET.Element, lock: LockStatus) -> None:
    box = ET.SubElement(body, "section", {"class": "" if lock.state == "conflict" else "lock"})
    _text(box, "h2", f"lock {lock.id}: {lock.state}")
    _text(_text(box, "p", ""), "code", lock.ddl)
    missing = [f"{s.source}: {', '.join(s.missing)}" for s in lock.sources if s.missing]
    if missing:
        _text(box, "p", f"waits for {'; '.join(missing)}")
    if lock.conflict:
        for claim in (lock.conflict.ours, lock.conflict.theirs):
            told = _text(box, "p", f"{claim.source} {claim.member} has ")
            _text(told, "code", "; ".join(claim.statements))
    since = f"since {_clock(lock.since)}; " if lock.since else ""
    _text(box, "p", f"{since}{number(lock.rows_held)} row events are held", "dim")
    _remedies(box, lock.remedies)


def _remedies(box: ET.Element, remedies: Sequence[str]) -> None:
    if not remedies:
        return
    ways = ET.SubElement(box, "ul")
    for remedy in remedies:
        way = ET.SubElement(ways, "li")
        for part in parts_of(remedy):
            _text(way, "code" if part.command else "span", f"{part.text} ")


def _trend(body: ET.Element, trend: Trend) -> None:
    if len(trend.rows_per_second) < 2:
        return
    minutes = len(trend.rows_per_second) * trend.interval_seconds / 60
    for title, values, unit in (
        ("rows/s", trend.rows_per_second, lambda value: number(round(value))),
        ("lag", trend.lag_seconds, seconds),
    ):
        known = [value for value in values if value is not None]
        if not known:
            continue
        figure = ET.SubElement(body, "figure")
        shown = f"{title} {unit(known[-1])}, at most {unit(max(known))} in {minutes:.0f} min"
        _text(figure, "figcaption", shown)
        _curve(figure, values)


def _curve(figure: ET.Element, values: Sequence[float | None]) -> None:
    width, height = _CURVE
    most = max((value for value in values if value is not None), default=0) or 1.0
    step = width / (len(values) - 1)
    points = (
        f"{place * step:.1f},{height - 2 - value / most * (height - 4):.1f}"
        for place, value in enumerate(values)
        if value is not None
    )
    shape = {"width": str(width), "height": str(height), "aria-hidden": "true"}
    svg = ET.SubElement(figure, "svg", shape)
    ET.SubElement(svg, "polyline", points=" ".join(points))


def _writer(body: ET.Element, status: TaskStatus) -> None:
    writer = status.writer
    told = [
        f"writer {writer.state}",
        f"{number(round(writer.rows_per_second))} rows/s",
        f"{number(writer.rows)} rows in {number(writer.batches)} batches",
        f"{size(writer.queued_bytes)} wait",
    ]
    if writer.checkpoint_age_seconds is not None:
        told.append(f"saved {seconds(writer.checkpoint_age_seconds)} ago")
    _text(body, "p", ", ".join(told))


def _copy(body: ET.Element, copy: CopyStatus) -> None:
    of = f" of about {number(copy.rows_expected)}" if copy.rows_expected else ""
    told = [
        f"copy {copy.state}: {number(copy.rows)}{of} rows",
        f"{number(copy.tables_done)} of {number(copy.tables)} shards done",
        f"{number(round(copy.rows_per_second))} rows/s",
    ]
    if copy.seconds_left is not None:
        told.append(f"{seconds(copy.seconds_left)} left")
    if copy.waiting:
        told.append(copy.waiting)
    _text(body, "p", ", ".join(told))


def _sources(body: ET.Element, sources: Sequence[SourceStatus]) -> None:
    heads = (
        "source",
        "state",
        "read up to",
        "saved",
        "lag#",
        "events#",
        "read#",
        "reconnects#",
    )
    _table(
        body,
        heads,
        (
            (
                *(source.source, source.state, source.position, source.saved_position),
                *(seconds(source.lag_seconds), number(source.rows), size(source.bytes)),
                number(source.reconnects),
            )
            for source in sources
        ),
    )


def _targets(body: ET.Element, targets: Sequence[TargetStatus]) -> None:
    heads = ("target", "shards#", "inserted#", "overwritten#", "deleted#", "missing#", "rows/s#")
    order = sorted(targets, key=lambda t: (not t.ddl, -t.rows_per_second, -t.missing, t.target))
    _table(
        body,
        (*heads, "schema change"),
        (
            (
                *(target.target, number(target.members), number(target.inserted)),
                *(number(target.overwritten), number(target.deleted), number(target.missing)),
                *(number(round(target.rows_per_second)), target.ddl),
            )
            for target in order[:MOST_TARGETS]
        ),
    )
    if len(targets) > MOST_TARGETS:
        _text(body, "p", f"and {number(len(targets) - MOST_TARGETS)} more targets", "dim")


def _table(body: ET.Element, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table, if it has a row; columns of figures have a ``#`` at the end of their heading."""
    cells = list(rows)
    if not cells:
        return
    kinds = ["n" if head.endswith("#") else "" for head in heads]
    frame = ET.SubElement(body, "div", {"class": "scroll"})
    table = ET.SubElement(frame, "table")
    row = ET.SubElement(table, "tr")
    for head, kind in zip(heads, kinds, strict=True):
        _text(row, "th", head.removesuffix("#"), kind)
    for values in cells:
        row = ET.SubElement(table, "tr")
        for value, kind in zip(values, kinds, strict=True):
            _text(row, "td", value, kind)


def _now() -> datetime:
    return datetime.now(UTC)


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
