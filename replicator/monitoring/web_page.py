"""The web page at the metrics' address: the content of `status --watch`, read only, in plain HTML.

It is made of elements, never of text, so names and statements from servers are escaped. It loads
nothing and runs no script; a browser reloads it every few seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree as ET  # nosec B405: it makes a document, and reads none

from replicator.monitoring.page_elements import (
    add_remedies,
    add_table,
    add_text,
    as_document,
    clock,
    empty_page,
)
from replicator.status import (
    CopyStatus,
    DifferingTarget,
    Fault,
    LockStatus,
    SourceStatus,
    TargetStatus,
    TaskStatus,
    Trend,
    VerifiedTarget,
    condition,
    faults_of,
    largest_lag,
    needs_operator,
)
from replicator.terminal.figures import counted, number, seconds, size, some_of

REFRESH_SECONDS = 3
"""Seconds after which a browser reloads the page."""

MOST_TARGETS = 100
"""Maximum number of listed targets; active targets come first."""

_CURVE = (240, 36)
"""Width and height of a curve in pixels."""


def status_page(status: TaskStatus) -> str:
    """Return the status as a complete page."""
    html, body = empty_page(f"{condition(status)}: {status.task}", refresh_seconds=REFRESH_SECONDS)
    _head(body, status)
    for what, fault in faults_of(status):
        _fault(body, what, fault)
    _parts_without_fault(body, status)
    for lock in sorted(status.locks, key=lambda lock: lock.state != "conflict"):
        _lock(body, lock)
    for differing in status.differing:
        _differing(body, differing)
    for shard in status.unreadable:
        box = ET.SubElement(body, "section")
        add_text(box, "h2", f"{shard.source}: {shard.shard} can't be read")
        add_text(box, "p", str(shard))
    for entry in status.reconciling:
        box = ET.SubElement(body, "section")
        add_text(box, "h2", f"reconciling {entry.target}")
        add_text(box, "p", str(entry))
    _verified(body, status.verified)
    _trend(body, status.trend)
    _writer(body, status)
    if status.copy:
        _copy(body, status.copy)
    _sources(body, status.sources)
    _targets(body, status.targets)
    return as_document(html)


def _head(body: ET.Element, status: TaskStatus) -> None:
    title = add_text(body, "h1", f"{status.task} ")
    kind = "bad" if needs_operator(status) else "warn" if condition(status) != "running" else "good"
    add_text(title, "span", condition(status), kind)
    age = seconds(max((datetime.now(UTC) - status.since).total_seconds(), 0.0))
    lag = seconds(largest_lag(status))
    runs = f"; {status.standby_for} runs it" if status.standby_for else ""
    reason = f": {status.reason}" if status.reason else ""
    known = f"{status.state} for {age}, process {status.pid}, lag {lag}{runs}{reason}"
    summary = f"{known}. As of {clock(_now())}"
    add_text(body, "div", summary, "dim")


def _fault(body: ET.Element, what: str, fault: Fault) -> None:
    box = ET.SubElement(body, "section")
    add_text(add_text(box, "h2", f"{what} "), "code", fault.event, "bad")
    add_text(box, "p", fault.message)
    where = f"where: {fault.where}; " if fault.where else ""
    add_text(box, "p", f"{where}since {clock(fault.since)}", "dim")
    add_remedies(box, fault.remedies)


def _parts_without_fault(body: ET.Element, status: TaskStatus) -> None:
    for part in status.blocked:
        if part.error is None:
            box = ET.SubElement(body, "section")
            why = f"waits for {part.waits_for}" if part.waits_for else "is paused"
            add_text(box, "h2", f"{part.kind} {part.name} {why}")
            add_text(box, "p", f"since {clock(part.since)}", "dim")
            add_remedies(box, part.remedies)


def _lock(body: ET.Element, lock: LockStatus) -> None:
    box = ET.SubElement(body, "section", {"class": "" if lock.state == "conflict" else "lock"})
    add_text(box, "h2", f"lock {lock.id}: {lock.state}")
    add_text(add_text(box, "p", ""), "code", lock.ddl)
    if lock.reason:
        add_text(box, "p", lock.reason)
    missing = [f"{s.source}: {', '.join(s.missing)}" for s in lock.sources if s.missing]
    if missing:
        add_text(box, "p", f"waits for {'; '.join(missing)}")
    if lock.conflict:
        for claim in (lock.conflict.ours, lock.conflict.theirs):
            paragraph = add_text(box, "p", f"{claim.source} {claim.member} has ")
            add_text(paragraph, "code", "; ".join(claim.statements))
    since = f"since {clock(lock.since)}; " if lock.since else ""
    held = f"{counted(lock.rows_held, 'row event')} held"
    add_text(box, "p", f"{since}{held}", "dim")
    add_remedies(box, lock.remedies)


def _differing(body: ET.Element, differing: DifferingTarget) -> None:
    box = ET.SubElement(body, "section", {"class": "ended"})
    add_text(box, "h2", f"shards of {differing.target} differ")
    for text, shards in differing.by_difference.items():
        add_text(box, "p", f"{text}: {some_of(shards)}")
    for notice in differing.notices:
        add_text(box, "p", f"notice: {notice}", "dim")


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
        add_text(figure, "figcaption", shown)
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
    facts = [
        f"writer {writer.state}",
        f"{number(round(writer.rows_per_second))} rows/s",
        f"{number(writer.rows)} rows in {number(writer.batches)} batches",
        f"{size(writer.queued_bytes)} wait",
    ]
    if writer.checkpoint_age_seconds is not None:
        facts.append(f"saved {seconds(writer.checkpoint_age_seconds)} ago")
    add_text(body, "p", ", ".join(facts))


def _copy(body: ET.Element, copy: CopyStatus) -> None:
    of = f" of about {number(copy.rows_expected)}" if copy.rows_expected else ""
    facts = [
        f"copy {copy.state}: {number(copy.rows)}{of} rows",
        f"{number(copy.tables_done)} of {number(copy.tables)} shards done",
        f"{number(round(copy.rows_per_second))} rows/s",
    ]
    if copy.seconds_left is not None:
        facts.append(f"{seconds(copy.seconds_left)} left")
    if copy.waiting:
        facts.append(copy.waiting)
    add_text(body, "p", ", ".join(facts))


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
    add_table(
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
    add_table(
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
        add_text(body, "p", f"and {number(len(targets) - MOST_TARGETS)} more targets", "dim")


def _verified(body: ET.Element, targets: Sequence[VerifiedTarget]) -> None:
    if not targets:
        return
    order = sorted(targets, key=lambda t: (not t.differing, t.at.timestamp() if t.at else 0))
    add_table(
        body,
        ("target", "verified", "rows#", "differing#", "now"),
        (
            (
                *(t.target, f"{t.at:%Y-%m-%d %H:%M:%S}Z" if t.at else "not yet", number(t.rows)),
                *(number(t.differing), t.reason or ("verifying" if t.percent is not None else "")),
            )
            for t in order[:MOST_TARGETS]
        ),
    )
    if len(targets) > MOST_TARGETS:
        add_text(body, "p", f"and {number(len(targets) - MOST_TARGETS)} more targets", "dim")


def _now() -> datetime:
    return datetime.now(UTC)
