"""The ends that `run --until` and `wait --for` name, and whether a task has reached them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from actors.control.arguments import Until
from config.values import parse_moment
from replicator.binlog.errors import BinlogError
from replicator.binlog.positions.gtid import MySQLGtids, has_executed, is_mariadb_gtid
from replicator.binlog.positions.position import BinlogPosition
from replicator.status import BlockedPart, LockStatus, SourceStatus, TaskStatus

_PLACE = re.compile(r"(?:(?P<source>[^=]+)=)?(?P<file>[^:]+\.[0-9]+):(?P<offset>[0-9]+)")
_GTIDS = re.compile(r"(?:(?P<source>[^=]+)=)?(?P<gtids>[^=]+)")


def parse_until(given: Sequence[str], sources: Collection[str]) -> Until:
    """Return what the command line names: ``now``, a time, or ``SOURCE=POSITION`` for some sources.

    A position is ``file:offset`` or a GTID set. If there is one source, its name may be omitted.
    Raises ValueError.
    """
    found: dict[str, BinlogPosition | str] = {}
    for text in given:
        place = _place(text)
        if place is None:
            continue
        named, position = place
        [*only] = sources
        source = named or (only[0] if len(only) == 1 else "")
        if source not in sources:
            raise ValueError(
                f"`{text}` has to name one of the sources {', '.join(sorted(sources))}, such as"
                f" {min(sources)}={position}"
            )
        found[source] = position
    if len(found) == len(given):
        return Until(places=found)
    if found or len(given) > 1:
        raise ValueError("name `now`, a time, or a position for each of some sources")
    if given[0] == "now":
        return Until(now=True)
    moment = _moment(given[0])
    if moment is None:
        raise ValueError(
            f"`{given[0]}` is neither `now`, nor a time as 2026-11-20 10:00:00, nor a position as"
            " SOURCE=mysql-bin.000042:4 or SOURCE=0-1-42"
        )
    return Until(moment=moment)


def _place(text: str) -> tuple[str, BinlogPosition | str] | None:
    """Return the source (empty if it is not named) and the position in a text.

    Return None if the text has no position.
    """
    if (match := _PLACE.fullmatch(text)) is not None:
        return match["source"] or "", BinlogPosition(match["file"], int(match["offset"]))
    match = _GTIDS.fullmatch(text)
    if match is None or (not match["source"] and _moment(text) is not None):
        return None
    gtids = match["gtids"].strip()
    try:
        known = is_mariadb_gtid(gtids) or bool(str(MySQLGtids(gtids)))
    except BinlogError:
        return None
    return (match["source"] or "", gtids) if known else None


def _moment(text: str) -> datetime | None:
    try:
        moment = parse_moment(text)
    except ValueError:
        return None
    assert isinstance(moment, datetime)
    return moment


def has_passed(place: BinlogPosition | str, at: BinlogPosition | None, gtid: str) -> bool:
    """Return whether a source is at or after a place.

    Args:
        place: a position, or a GTID set.
        at: the position of the source; None if it is unknown.
        gtid: the GTID set that was executed up to ``at``; empty if it is unknown.
    """
    if isinstance(place, BinlogPosition):
        return at is not None and at.key >= place.key
    try:
        return bool(gtid) and has_executed(gtid, place)
    except BinlogError:
        return False


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What keeps a task from reaching an end, and what the operator can do about it."""

    reason: str
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EndVerdict:
    """Whether a task has applied everything up to an end.

    Attributes:
        reached: whether it has, including rows that locks and blocked targets held.
        final: whether it has not, and will not before somebody acts.
        reasons: what it waits for.
        remedies: what somebody can do, with the remedies of the first reason first.
    """

    reached: bool = False
    final: bool = False
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def verdict(
    until: Until, ends: Mapping[str, BinlogPosition | None], status: TaskStatus
) -> EndVerdict:
    """Return whether a task has applied everything up to an end, and if not, why.

    Args:
        until: the end. If it is ``now``, it means the ends in ``ends``.
        ends: the ends of the binlogs when the wait began, by source; None if a source has none. A
            source whose end is not known yet is not included.
        status: the status of the task.
    """
    late = _late(until, ends, status)
    work = [*_copies(status), *map(str, status.reconciling)]
    if status.sources and not late and not work and not _lacking(status):
        return EndVerdict(reached=True)
    if obstacles := [*_stopped(status), *_blocked(status, late), *_lacking(status)]:
        return _final(obstacles)
    failed = list(_failed(status))
    held = [*_held(status, late), *_without_gtids(until, late, status)] if late or work else []
    if (held or failed) and _is_settled(status, ends):
        return _final([*held, *failed])
    if not status.sources:
        work.insert(0, f"the task is {status.state}")
    return EndVerdict(reasons=(*late.values(), *work))


def _final(obstacles: Sequence[Obstacle]) -> EndVerdict:
    remedies = dict.fromkeys(way for one in obstacles for way in one.remedies)
    return EndVerdict(
        final=True, reasons=tuple(one.reason for one in obstacles), remedies=tuple(remedies)
    )


def _late(
    until: Until, ends: Mapping[str, BinlogPosition | None], status: TaskStatus
) -> dict[str, str]:
    """Return the sources that are not applied up to the end, each with a sentence."""
    places: dict[str, BinlogPosition | str | None] = dict(until.places)
    if until.now:
        places = {source.source: ends.get(source.source) for source in status.sources}
    found = {}
    for source in status.sources:
        at = source.complete_position or "nothing yet"
        if until.moment is not None:
            done = source.complete_until is not None and source.complete_until > until.moment
            if not done:
                found[source.source] = f"{source.source} is applied up to {at}"
            continue
        if source.source not in places:
            continue
        place = places[source.source]
        if place is None:
            if source.source not in ends:
                found[source.source] = f"{source.source} does not tell the end of its binlog"
            continue
        if not has_passed(place, _parsed(source.complete_position), source.complete_gtid):
            found[source.source] = f"{source.source} is applied up to {at}, not yet to {place}"
    return found


def _parsed(text: str) -> BinlogPosition | None:
    return BinlogPosition.parse(text) if text else None


def _copies(status: TaskStatus) -> list[str]:
    copy = status.copy
    if copy is None or (copy.state == "finished" and not copy.held):
        return []
    waiting = f": {copy.waiting}" if copy.waiting else ""
    return [f"the full copy is {copy.state}{waiting}"]


def _stopped(status: TaskStatus) -> Iterator[Obstacle]:
    """Yield why the whole task does not work."""
    if status.state in ("starting", "running"):
        return
    why = status.reason or status.standby_for
    remedies: tuple[str, ...] = (
        (f"`replicator resume {status.task}`",) if status.state == "paused" else ()
    )
    if status.error is not None:
        why, remedies = status.error.message, status.error.remedies or remedies
    yield Obstacle(f"the task is {status.state}" + (f": {why}" if why else ""), remedies)


def _blocked(status: TaskStatus, late: Collection[str]) -> Iterator[Obstacle]:
    for part in status.blocked:
        if part.kind == "source" and part.name in late:
            yield _obstacle(part)


def _obstacle(part: BlockedPart) -> Obstacle:
    reason = _reason(part.error.message if part.error else "")
    return Obstacle(f"the {part.kind} {part.name} is blocked{reason}", part.remedies)


def _lacking(status: TaskStatus) -> list[Obstacle]:
    """Return the shards that can't be read, if targets may lack rows that moved to these shards."""
    return [
        Obstacle(str(shard), (shard.remedy,) if shard.remedy else ())
        for shard in status.unreadable
        if shard.targets
    ]


def _failed(status: TaskStatus) -> Iterator[Obstacle]:
    for entry in status.reconciling:
        if entry.state == "failed":
            cancel = f"`replicator reconcile {status.task} --target {entry.target} --cancel`"
            yield Obstacle(
                str(entry),
                ("end what the reason names: the task tries it again", f"{cancel}, to give it up"),
            )


def _reason(message: str) -> str:
    return f": {message}" if message else " by the operator"


def _held(status: TaskStatus, late: Collection[str]) -> Iterator[Obstacle]:
    """Yield the locks and blocked targets that hold rows of late sources."""
    for lock in status.locks:
        if lock.holds and lock.state != "resolving":
            yield Obstacle(_lock(lock), lock.remedies)
    for part in status.blocked:
        if part.kind != "target" or part.waits_for:
            continue
        if not late or any(held.source in late for held in part.held):
            yield _obstacle(part)


def remedies_for(
    status: TaskStatus, sources: Collection[str], targets: Collection[str]
) -> tuple[str, ...]:
    """Return the actions that end the locks and blocks of these sources and targets."""
    names = {*targets, *(p.waits_for for p in status.blocked if p.name in targets)}
    locks = [lock.remedies for lock in status.locks if lock.holds and lock.target in names]
    parts = [
        part.remedies
        for part in status.blocked
        if not part.waits_for and part.name in (names if part.kind == "target" else sources)
    ]
    return tuple(dict.fromkeys(way for remedies in (*locks, *parts) for way in remedies))


def _without_gtids(until: Until, late: Collection[str], status: TaskStatus) -> Iterator[Obstacle]:
    for source in status.sources:
        place = until.places.get(source.source)
        if source.source in late and isinstance(place, str) and not source.complete_gtid:
            yield Obstacle(
                f"{source.source} has no GTIDs: name its position as FILE:OFFSET",
                (f"`replicator wait {status.task} --for {source.source}=FILE:OFFSET`",),
            )


def _lock(lock: LockStatus) -> str:
    lacking = sum(len(source.missing) for source in lock.sources)
    why = lock.reason
    if lock.state == "conflict":
        why = why or "shards have made different statements"
    elif lacking:
        why = why or f"{lacking} {'shards lack' if lacking > 1 else 'shard lacks'} its statement"
    return f"the lock {lock.id} is open{f', {why}' if why else ''}: {lock.ddl}"


def _is_settled(status: TaskStatus, ends: Mapping[str, BinlogPosition | None]) -> bool:
    """Return whether everything up to the sources' ends is read and applied, except for held rows.

    Before that, the next statement or row of a shard may resolve a lock. A blocked source does not
    count, because it is not read.
    """
    blocked = {part.name for part in status.blocked if part.kind == "source"}
    return all(
        source.source in blocked or _has_read(source, ends) for source in status.sources
    ) and not any(lock.state == "resolving" for lock in status.locks)


def _has_read(source: SourceStatus, ends: Mapping[str, BinlogPosition | None]) -> bool:
    if source.source not in ends:
        return False
    end = ends[source.source]
    return end is None or all(
        has_passed(end, _parsed(text), "") for text in (source.position, source.applied_position)
    )
