"""Makes a report from the records of a log, with bounded memory.

The order of records is that of `actors/task/supervisor.py`: a fault comes before the parts that it
blocks, and ``task.step`` with ``programs`` is the first record of a process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from actors.reporting.log_records import LogRecord
from replicator.events.all_events import FAULT_EVENTS

MOST_POINTS = 2000
"""Maximum number of points; of more points, each two neighbours are merged."""


@dataclass(frozen=True, slots=True)
class Point:
    """The average rows per second and the maximum lag in seconds (None: unknown), up to a time."""

    at: datetime
    rows_per_second: float
    lag_seconds: float | None
    records: int = 1


class Curve:
    """Points in the order of time, and the extremes of all records that they are made of."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self.most_rows: Point | None = None
        self.most_lag: Point | None = None
        self._fold = 1

    @property
    def last_lag(self) -> float | None:
        """Return the lag of the last point."""
        return self.points[-1].lag_seconds if self.points else None

    @property
    def mean_rows(self) -> float:
        """Return the average rows per second of all records."""
        records = sum(point.records for point in self.points)
        return sum(p.rows_per_second * p.records for p in self.points) / max(records, 1)

    def add(self, point: Point) -> None:
        """Add another record."""
        if self.most_rows is None or point.rows_per_second > self.most_rows.rows_per_second:
            self.most_rows = point
        if point.lag_seconds is not None and (
            self.most_lag is None or point.lag_seconds > (self.most_lag.lag_seconds or 0.0)
        ):
            self.most_lag = point
        if self.points and self.points[-1].records < self._fold:
            self.points[-1] = _both(self.points[-1], point)
        else:
            self.points.append(point)
        if len(self.points) > MOST_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            odd = self.points[-1:] if len(self.points) % 2 else []
            self.points = [*(_both(*pair) for pair in pairs), *odd]
            self._fold *= 2


def _both(one: Point, other: Point) -> Point:
    records = one.records + other.records
    rows = one.rows_per_second * one.records + other.rows_per_second * other.records
    lags = [lag for lag in (one.lag_seconds, other.lag_seconds) if lag is not None]
    return Point(other.at, rows / records, max(lags, default=None), records)


MOST_MOMENTS, MOST_CHANGES, MOST_FAULTS, MOST_KINDS = 1000, 1000, 1000, 500
"""Maximum lengths of the lists of a report: the last entries are kept, and all are counted."""

FAULTS = frozenset(event.name for event in FAULT_EVENTS)

_AHEAD_OF_START = frozenset({"memory.settings", "task-file.no-effect", "task-file.open-to-others"})
"""The events that a process logs before ``task.step`` with ``programs``."""

_SHOWN_ELSEWHERE = frozenset({"target.blocked", "source.blocked", "task.restart", "lock.conflict"})
"""Warnings and errors that a report shows in other sections."""


@dataclass(frozen=True, slots=True)
class LifeMoment:
    """An event in the life of the task.

    ``kind`` is ``start``, ``killed``, ``restart`` or similar.
    """

    at: datetime
    kind: str
    text: str


@dataclass(slots=True)
class ShardWait:
    """A shard of a schema change, and how long its rows waited; None if they still wait."""

    source: str
    member: str
    since: datetime
    seconds: float | None = None


@dataclass(slots=True)
class SchemaChange:
    """A schema change of a target. ``outcome`` is ``executed``, ``waits for shards`` or similar.

    ``answer``: what the operator had executed instead; empty if nothing.
    """

    target: str
    version: str
    statement: str
    first: datetime
    waits: list[ShardWait] = field(default_factory=list)
    outcome: str = "waits for shards"
    began: datetime | None = None
    executed_seconds: float | None = None
    resolved: datetime | None = None
    answer: str = ""

    @property
    def ended(self) -> str:
        """Return how the schema change ended, or what it waits for."""
        return self.answer or self.outcome

    def longest_wait(self, end: datetime) -> float:
        """Return the longest time in seconds that rows of a shard waited.

        For rows that still wait, this is the time up to ``end``.
        """
        return max((w.seconds or (end - w.since).total_seconds() for w in self.waits), default=0.0)


@dataclass(slots=True)
class FaultSpan:
    """A fault from its record to its end.

    ``until`` is None if the fault lasts to the end of the log.
    """

    event: str
    error: str
    where: str
    remedies: tuple[str, ...]
    since: datetime
    blocked: list[str] = field(default_factory=list)
    until: datetime | None = None
    ended: str = ""
    _open: set[tuple[str, str]] = field(default_factory=set)

    def block(self, kind: str, name: str) -> None:
        """Record a part that the fault blocks."""
        self._open.add((kind, name))
        self.blocked.append(f"{kind} {name}")

    def resume(self, kind: str, name: str, at: datetime) -> None:
        """Record that a part continues."""
        if (kind, name) in self._open:
            self._open.discard((kind, name))
            if not self._open:
                self.end(at, "resumed")

    def end(self, at: datetime, how: str) -> None:
        """Record the end of the fault."""
        self.until, self.ended = at, how


@dataclass(slots=True)
class MessageCount:
    """How often a warning or an error occurred, and the text of the last one."""

    event: str
    level: str
    count: int
    first: datetime
    last: datetime
    example: str


@dataclass(frozen=True, slots=True)
class CopyFigures:
    """What the log last said about the full copy."""

    finished: bool
    rows: float
    tables: float
    tables_done: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Down:
    """A time span without a running process, or with a pause; None: up to the end of the log."""

    since: datetime
    until: datetime | None
    why: str


@dataclass(slots=True)
class Report:
    """The report.

    ``counts``: by the kind of an event; ``more``: numbers of entries left out of lists.
    """

    task: str
    first: datetime | None = None
    last: datetime | None = None
    records: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    moments: deque[LifeMoment] = field(default_factory=lambda: deque(maxlen=MOST_MOMENTS))
    changes: list[SchemaChange] = field(default_factory=list)
    faults: deque[FaultSpan] = field(default_factory=lambda: deque(maxlen=MOST_FAULTS))
    fault_count: int = 0
    change_count: int = 0
    messages: list[MessageCount] = field(default_factory=list)
    progress: Curve = field(default_factory=Curve)
    rows: float = 0
    copy: CopyFigures | None = None
    downs: deque[Down] = field(default_factory=lambda: deque(maxlen=MOST_MOMENTS))
    state: str = ""


def report_of(task: str, records: Iterable[LogRecord]) -> Report:
    """Return the report of a task from the records of its log, in their order."""
    builder = _Builder(task)
    for record in records:
        builder.take(record)
    return builder.finished()


class _Builder:
    def __init__(self, task: str) -> None:
        self._report = Report(task)
        self._changes: dict[tuple[str, str], SchemaChange] = {}
        self._running: dict[str, SchemaChange] = {}
        self._messages: dict[tuple[str, str], MessageCount] = {}
        self._faults: list[FaultSpan] = []
        self._rows: float | None = None
        self._down: Down | None = None
        self._began: datetime | None = None
        self._before: datetime | None = None
        self._alive = False
        self._live = {
            "task.step": self._step,
            "task.running": self._runs,
            "task.paused": self._paused,
            "task.stopped": self._stopped,
            "task.failed": self._failed,
            "task.restart": self._restarts,
            "task.standby": self._stands_by,
            "task.takeover": self._takes_over,
            "task.signal": self._signal,
            "task.progress": self._progress,
            "copy.started": self._copy_started,
            "copy.progress": self._copy,
            "copy.finished": self._copy,
            "source.failed-over": self._failed_over,
            "target.blocked": self._blocked,
            "source.blocked": self._blocked,
            "target.resumed": self._resumed,
            "source.resumed": self._resumed,
            "lock.item": self._lock_item,
            "lock.decided": self._decided,
            "lock.resolved": self._resolved,
            "lock.conflict": self._conflict,
            "ddl.open": self._opened,
            "ddl.override": self._overridden,
            "lock.released": self._released,
            "ddl.started": self._ddl_started,
            "ddl.executed": self._ddl_executed,
            "ddl.was-executed": self._ddl_executed,
        }

    def take(self, record: LogRecord) -> None:
        self._take(record)
        if record.event not in _AHEAD_OF_START:
            self._before = record.at

    def _take(self, record: LogRecord) -> None:
        report = self._report
        report.records += 1
        report.first = min(report.first or record.at, record.at)
        report.last = max(report.last or record.at, record.at)
        if record.event in FAULTS and record.level in ("error", "warning"):
            self._fault(record)
            return
        if record.level in ("warning", "error") and record.event not in _SHOWN_ELSEWHERE:
            self._message(record)
        if (taken := self._live.get(record.event)) is not None:
            taken(record)

    def finished(self) -> Report:
        """Return the report, once all records are added."""
        report = self._report
        if self._down is not None:
            report.downs.append(self._down)
        report.changes += self._changes.values()
        report.changes.sort(key=lambda change: change.first)
        report.messages = sorted(self._messages.values(), key=lambda counted: -counted.count)
        return report

    def _note(self, at: datetime, kind: str, text: str) -> None:
        self._report.counts[kind] = self._report.counts.get(kind, 0) + 1
        self._report.moments.append(LifeMoment(at, kind, text))

    def _message(self, record: LogRecord) -> None:
        key = (record.event[:200], record.level)
        counted = self._messages.get(key)
        if counted is None and len(self._messages) >= MOST_KINDS:
            key = ("other messages", record.level)
            counted = self._messages.get(key)
        if counted is None:
            counted = MessageCount(*key, 0, record.at, record.at, "")
            self._messages[key] = counted
        counted.count, counted.last, counted.example = (
            counted.count + 1,
            record.at,
            _example(record),
        )

    # The life of the task.

    def _up(self, at: datetime) -> None:
        if self._down is not None:
            self._report.downs.append(replace(self._down, until=at))
            self._down = None

    def _step(self, record: LogRecord) -> None:
        if record.text("step") != "programs":
            return
        if self._alive:
            before = self._before or record.at
            self._note(before, "killed", "the process ended without a word: killed, or a crash")
            self._down = self._down or Down(before, None, "killed")
        self._end_faults(record.at, "a new process started")
        self._note(record.at, "start", "a process starts")
        self._began, self._alive, self._rows = record.at, True, 0.0

    def _runs(self, record: LogRecord) -> None:
        self._alive = True
        if self._began is not None:
            seconds = (record.at - self._began).total_seconds()
            self._note(record.at, "running", f"the task runs, {seconds:.1f} s after its start")
            self._began = None
        elif self._down is not None:
            self._note(record.at, "running", "the task runs again")
        self._up(record.at)
        self._report.state = "running"
        for fault in self._faults:
            if not fault.blocked:
                fault.end(record.at, "the task ran again")
        self._faults = [fault for fault in self._faults if fault.until is None]

    def _paused(self, record: LogRecord) -> None:
        whole = any(not fault.blocked for fault in self._faults)
        reason = record.text("reason")
        text = "paused by a fault" if whole else f"paused: {reason}" if reason else "paused"
        self._note(record.at, "pause", text)
        self._down = self._down or Down(record.at, None, "paused")
        self._report.state = "paused"

    def _stopped(self, record: LogRecord) -> None:
        self._note(record.at, "stop", "stopped in order" if not self._faults else "stopped")
        self._ends(record.at, "stopped")

    def _failed(self, record: LogRecord) -> None:
        self._note(record.at, "failed", f"ended with an error: {record.text('error')}")
        self._ends(record.at, "failed")

    def _ends(self, at: datetime, state: str) -> None:
        self._end_faults(at, f"the process {'ended' if state == 'failed' else 'was stopped'}")
        self._alive, self._report.state = False, state
        self._down = self._down or Down(at, None, state)

    def _restarts(self, record: LogRecord) -> None:
        self._note(record.at, "restart", f"starts again: {record.text('reason')}")

    def _stands_by(self, record: LogRecord) -> None:
        other = f"process {record.text('process')} on host {record.text('host')}"
        self._note(record.at, "standby", f"stands by: {other} runs the task")
        self._alive, self._report.state = True, "standby"

    def _takes_over(self, record: LogRecord) -> None:
        self._note(record.at, "takeover", f"takes over from {record.text('former')}")
        self._began = record.at

    def _signal(self, record: LogRecord) -> None:
        self._note(record.at, "signal", f"the process got {record.text('signal')}")

    def _failed_over(self, record: LogRecord) -> None:
        source, server = record.text("source"), record.text("server")
        self._note(record.at, "failover", f"source {source} goes on at another server: {server}")

    # Faults.

    def _fault(self, record: LogRecord) -> None:
        span = FaultSpan(
            record.event,
            record.text("error"),
            record.text("where"),
            record.texts("remedies"),
            record.at,
        )
        self._note(record.at, "fault", f"fault {record.event}: {span.where or span.error}")
        self._report.fault_count += 1
        self._report.faults.append(span)
        self._faults = [*self._faults, span][-MOST_FAULTS:]

    def _blocked(self, record: LogRecord) -> None:
        kind = record.event.partition(".")[0]
        name, event = record.text(kind), record.text("fault")
        if not event:
            self._note(record.at, "pause", f"{kind} {name} paused by the operator")
            return
        for fault in reversed(self._faults):
            if fault.event == event:
                fault.block(kind, name)
                return

    def _resumed(self, record: LogRecord) -> None:
        kind = record.event.partition(".")[0]
        name = record.text(kind)
        self._note(record.at, "resume", f"{kind} {name} goes on")
        for fault in self._faults:
            fault.resume(kind, name, record.at)
        self._faults = [fault for fault in self._faults if fault.until is None]

    def _end_faults(self, at: datetime, how: str) -> None:
        for fault in self._faults:
            fault.end(at, how)
        self._faults = []

    # Schema changes.

    def _change(self, record: LogRecord, name: str = "") -> SchemaChange:
        """Return the change with this name; without a name, the change of the record's lock.

        The change of a lock has the name of its version.
        """
        version = "" if name else record.text("version")
        key = (record.text("target"), name or version)
        change = self._changes.get(key)
        if change is None:
            change = SchemaChange(key[0], version, record.text("statement"), record.at)
            self._changes[key] = change
            self._report.change_count += 1
            if len(self._changes) > MOST_CHANGES:
                del self._changes[next(iter(self._changes))]
        change.statement = change.statement or record.text("statement")
        return change

    def _lock_item(self, record: LogRecord) -> None:
        self._wait(self._change(record), record)

    def _opened(self, record: LogRecord) -> None:
        """A statement of the optimistic mode is open.

        It has no version, and may be logged again.
        """
        change = self._change(record, record.text("statement"))
        change.resolved, change.outcome = None, f"open: {record.text('reason')}"
        self._wait(change, record)

    def _wait(self, change: SchemaChange, record: LogRecord) -> None:
        shard = (record.text("source"), record.text("member"))
        waiting = {(w.source, w.member) for w in change.waits if w.seconds is None}
        # After a crash, the statement is read again.
        if change.resolved is None and shard not in waiting:
            change.waits.append(ShardWait(*shard, record.at))

    def _released(self, record: LogRecord) -> None:
        """Open statements of some shards of a source are resolved, and their rows are released."""
        source, members = record.text("source"), record.texts("members")
        for change in self._changes.values():
            if change.target != record.text("target") or change.version:
                continue
            for wait in change.waits:
                if (wait.source, wait.seconds) == (source, None) and wait.member in members:
                    wait.seconds = max((record.at - wait.since).total_seconds(), 0.001)
            if change.resolved is None and all(w.seconds is not None for w in change.waits):
                change.resolved, change.outcome = record.at, "resolved"

    def _decided(self, record: LogRecord) -> None:
        change = self._change(record)
        how = "skipped" if record.fields.get("skipped") is True else "is executed"
        unlocked = record.fields.get("unlocked") is True
        change.outcome = f"{how}, unlocked by the operator" if unlocked else how

    def _resolved(self, record: LogRecord) -> None:
        change = self._change(record)
        change.resolved = record.at
        change.outcome = change.outcome.replace("is executed", "executed")
        if change.outcome.startswith("waits"):
            change.outcome = "executed"
        for wait in change.waits:
            wait.seconds = wait.seconds or max((record.at - wait.since).total_seconds(), 0.001)

    def _overridden(self, record: LogRecord) -> None:
        """The operator has answered a statement that the target could not execute."""
        answers = {"skip": "skipped by the operator", "replace": "replaced by the operator"}
        answer, targets = answers.get(record.text("action")), record.texts("targets")
        if answer is None:
            return
        for target in targets:
            running = self._running.get(target)
            if running is None or running.executed_seconds is not None:
                # The statement is read again at later starts, when its change has already ended.
                found = (c for c in self._changes.values() if c.target == target and not c.resolved)
                running = next((c for c in found if c.outcome != "executed"), None)
            if running is not None:
                running.answer = answer

    def _conflict(self, record: LogRecord) -> None:
        self._change(record).outcome = "in conflict"

    def _ddl_started(self, record: LogRecord) -> None:
        target = record.text("target")
        statement, running = record.text("statement"), self._running.get(target)
        change = self._changes.get((target, record.text("version")))
        if change is None:
            change = self._changes.get((target, statement))
        if change is None or (not change.version and change.executed_seconds is not None):
            # Without a lock, each statement is a separate change, unless a crash interrupted it.
            again = running is not None and running.executed_seconds is None
            if running is not None and again and running.statement == statement:
                change = running
            else:
                change = self._change(record, f"{record.at} {statement}")
        self._running[target] = change
        change.began = record.at
        if change.outcome.startswith("waits"):
            change.outcome = "is executed"

    def _ddl_executed(self, record: LogRecord) -> None:
        change = self._running.get(record.text("target"))
        if change is None:
            return
        change.outcome = change.outcome.replace("is executed", "executed")
        if change.began is not None and change.executed_seconds is None:
            change.executed_seconds = (record.at - change.began).total_seconds()

    # Throughput, lag, the copy.

    def _progress(self, record: LogRecord) -> None:
        # The last records of a process, which follows no source any more.
        if record.text("condition") == "stopped":
            return
        rows = record.number("rows") or 0.0
        if self._rows is not None:
            self._report.rows += max(rows - self._rows, 0.0)
        self._rows, self._alive = rows, True
        self._report.progress.add(
            Point(
                record.at,
                record.number("rows_per_second") or 0.0,
                record.number("lag_seconds"),
            )
        )

    def _copy_started(self, record: LogRecord) -> None:
        self._note(record.at, "copy", "a full copy begins or goes on")

    def _copy(self, record: LogRecord) -> None:
        finished = record.event == "copy.finished"
        names = ("rows", "tables", "tables_done", "seconds")
        figures = [record.number(name) or 0.0 for name in names]
        self._report.copy = CopyFigures(finished, *figures)
        if finished:
            self._note(record.at, "copy", "the full copy is complete")


def _example(record: LogRecord) -> str:
    """Return the cause that a record states, and its source or target."""
    where = " ".join(
        f"{name} {record.text(name)}" for name in ("source", "target") if record.text(name)
    )
    for name in ("reason", "error", "finding", "message", "statement"):
        if text := record.text(name):
            return f"{where}: {text}"[:500] if where else text[:500]
    return where[:500]
