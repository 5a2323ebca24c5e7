"""The Prometheus metrics of a task, read from its status and its meters.

Names and units follow Prometheus, "Metric and label naming"; the text follows "Exposition formats".
Every metric has the label ``task``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from replicator.monitoring.meters import TaskMeters
from replicator.monitoring.processes import memory_by_process
from replicator.printable_text import shown_line
from replicator.status import (
    BinlogDistance,
    SourceStatus,
    TaskState,
    TaskStatus,
    condition,
    faults_of,
    needs_operator,
)

Joined = Callable[[Iterable[float]], float]
Samples = Iterable[tuple[tuple[str, ...], float | None]]
"""Pairs of label values and a figure. A figure of None is unknown and is not exported."""

STATES: tuple[TaskState, ...] = (
    *("starting", "standby", "running", "pausing", "paused", "stopping", "stopped", "killed"),
)
RESTART = "task.restart"
"""The fault of a task that restarts by itself, so that no operator is needed."""

PLACES: Mapping[str, str] = {
    "read": "position",
    "applied": "applied_position",
    "saved": "saved_position",
}
"""The positions of a source in its binlog, by the value of the label ``at``."""


@dataclass(frozen=True, slots=True)
class StatusMetric:
    """One metric that is read from the status. ``_total`` is appended to the name of a counter."""

    name: str
    kind: Literal["gauge", "counter"]
    meaning: str
    labels: tuple[str, ...]
    read: Callable[[TaskStatus], Samples]

    @property
    def shown_name(self) -> str:
        """The name under which Prometheus stores the metric."""
        return f"{self.name}_total" if self.kind == "counter" else self.name

    def family(self, status: TaskStatus) -> Metric:
        """Return the present values of the metric."""
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        family = kind(self.name, self.meaning, labels=("task", *self.labels))
        for labels, value in self.read(status):
            if value is not None:
                family.add_metric([status.task, *map(shown_line, labels)], value)
        return family


def _task(name: str, meaning: str, read: Callable[[TaskStatus], float | None]) -> StatusMetric:
    return StatusMetric(f"replicator_{name}", "gauge", meaning, (), lambda s: [((), read(s))])


def _counter(name: str, meaning: str, read: Callable[[TaskStatus], float]) -> StatusMetric:
    return StatusMetric(f"replicator_{name}", "counter", meaning, (), lambda s: [((), read(s))])


def _by_source(
    name: str,
    kind: Literal["gauge", "counter"],
    meaning: str,
    read: Callable[[SourceStatus], float | None],
) -> StatusMetric:
    def samples(status: TaskStatus) -> Samples:
        return [((source.source,), read(source)) for source in status.sources]

    return StatusMetric(f"replicator_source_{name}", kind, meaning, ("source",), samples)


def _distance(read: Callable[[BinlogDistance], int]) -> Callable[[SourceStatus], float | None]:
    return lambda source: read(source.distance) if source.distance else None


def _files_left(source: SourceStatus) -> float | None:
    has_files = source.relay is not None and not source.relay.error
    return None if has_files or source.distance is None else source.distance.files_left


def _by_target(name: str, meaning: str, field: str) -> StatusMetric:
    def samples(status: TaskStatus) -> Samples:
        return [((target.target,), getattr(target, field)) for target in status.targets]

    return StatusMetric(f"replicator_target_{name}", "counter", meaning, ("target",), samples)


def _rows(status: TaskStatus) -> Samples:
    for target in status.targets:
        for change in ("inserted", "overwritten", "deleted"):
            yield (target.target, change), getattr(target, change)


def _position(part: Callable[[str], float]) -> Callable[[TaskStatus], Samples]:
    def samples(status: TaskStatus) -> Samples:
        for source in status.sources:
            for at, field in PLACES.items():
                place = getattr(source, field)
                yield (source.source, at), part(place) if place else None

    return samples


def _file_number(place: str) -> float:
    number = place.rpartition(":")[0].rpartition(".")[2]
    return float(number) if number.isdecimal() else 0.0


def _offset(place: str) -> float:
    return float(place.rpartition(":")[2])


def _states(status: TaskStatus) -> Samples:
    return [((state,), status.state == state) for state in STATES]


def _locks(status: TaskStatus) -> Samples:
    states = [lock.state for lock in status.locks]
    return [((state,), states.count(state)) for state in ("waiting", "conflict", "resolving")]


def _by_lock(status: TaskStatus, figures: Iterable[float | None], joined: Joined) -> Samples:
    """Yield a figure for each lock. Several open statements of a target may share one lock."""
    found: dict[tuple[str, str], list[float]] = {}
    for lock, figure in zip(status.locks, figures, strict=True):
        if figure is not None:
            found.setdefault((lock.id, lock.target), []).append(figure)
    return [(labels, joined(each)) for labels, each in found.items()]


def _lock_ages(status: TaskStatus) -> Samples:
    begun = (lock.since for lock in status.locks)
    ages = [None if t is None else max(0.0, time.time() - t.timestamp()) for t in begun]
    return _by_lock(status, ages, max)


def _lock_rows(status: TaskStatus) -> Samples:
    return _by_lock(status, [lock.rows_held for lock in status.locks], sum)


def _blocked(status: TaskStatus) -> Samples:
    for part in status.blocked:
        event = part.error.event if part.error else ""
        yield (part.kind, part.name, event), max(0.0, time.time() - part.since.timestamp())


def _active_faults(status: TaskStatus) -> Samples:
    events = [fault.event for _, fault in faults_of(status) if fault.event != RESTART]
    return [((event,), events.count(event)) for event in dict.fromkeys(events)]


def _blocked_rows(status: TaskStatus) -> Samples:
    for part in status.blocked:
        for held in part.held:
            yield (part.name, held.source), held.rows_held


def _copy(name: str, meaning: str, field: str) -> StatusMetric:
    def samples(status: TaskStatus) -> Samples:
        return [((), getattr(status.copy, field) if status.copy else None)]

    return StatusMetric(f"replicator_copy_{name}", "gauge", meaning, (), samples)


def _validation(
    name: str, kind: Literal["gauge", "counter"], meaning: str, field: str
) -> StatusMetric:
    def samples(status: TaskStatus) -> Samples:
        return [((), getattr(status.validation, field) if status.validation else None)]

    return StatusMetric(f"replicator_validation_{name}", kind, meaning, (), samples)


def _reconciling(status: TaskStatus) -> Samples:
    states = [entry.state for entry in status.reconciling]
    return [((state,), states.count(state)) for state in dict.fromkeys(states)]


def _verified(status: TaskStatus) -> Samples:
    return [((v.target,), v.at.timestamp()) for v in status.verified if v.at is not None]


STATUS_METRICS: tuple[StatusMetric, ...] = (
    StatusMetric("replicator_state", "gauge", "1 for the state of the task.", ("state",), _states),
    _task(
        "needs_operator",
        "1 if the task, or a part of it, is stopped until an operator acts.",
        needs_operator,
    ),
    StatusMetric(
        "replicator_fault_active",
        "gauge",
        "Faults that block something now, by their event; each has a section in the runbook.",
        ("event",),
        _active_faults,
    ),
    StatusMetric(
        "replicator_blocked_seconds",
        "gauge",
        "How long a target or source is blocked; `event`: its fault, empty where it is paused or"
        " waits for another part.",
        ("kind", "name", "event"),
        _blocked,
    ),
    StatusMetric(
        "replicator_blocked_held_events",
        "gauge",
        "Row events of a blocked target that are read again when it goes on.",
        ("target", "source"),
        _blocked_rows,
    ),
    _by_source(
        "lag_seconds",
        "gauge",
        "Age of the oldest row that is not on the target, by both clocks.",
        lambda source: source.lag_seconds,
    ),
    _by_source(
        "reading",
        "gauge",
        "1 while the binlog of the source is read.",
        lambda source: source.state == "reading",
    ),
    StatusMetric(
        "replicator_source_binlog_file",
        "gauge",
        "The number of a binlog file: `at` is `read`, `applied` or `saved`, where a restart reads"
        " from.",
        ("source", "at"),
        _position(_file_number),
    ),
    StatusMetric(
        "replicator_source_binlog_offset_bytes",
        "gauge",
        "The offset in that file.",
        ("source", "at"),
        _position(_offset),
    ),
    _by_source(
        "binlog_behind_bytes",
        "gauge",
        "From the position that a restart reads from to the end of the binlog.",
        _distance(lambda distance: distance.bytes_behind),
    ),
    _by_source(
        "binlog_files_behind",
        "gauge",
        "Binlog files that begin after the position from which a restart reads.",
        _distance(lambda distance: distance.files_behind),
    ),
    _by_source(
        "binlog_files_before_purge",
        "gauge",
        "Older binlog files that the source still has: with 0, the one that a restart reads from"
        " is purged next. Not of a source with a relay log, which has these files.",
        _files_left,
    ),
    _by_source(
        "relay_bytes",
        "gauge",
        "Size of the relay log.",
        lambda source: source.relay.bytes if source.relay else None,
    ),
    _by_source(
        "relay_failed",
        "gauge",
        "1 if the relay log can't be continued, so that the source must keep its binlog files.",
        lambda source: float(bool(source.relay.error)) if source.relay else None,
    ),
    _by_source("row_events", "counter", "Row events read.", lambda source: source.rows),
    _by_source("bytes", "counter", "Bytes of row events read.", lambda source: source.bytes),
    _by_source(
        "transactions",
        "counter",
        "Transactions of which rows are on the target.",
        lambda source: source.transactions,
    ),
    _by_source("reconnects", "counter", "Connections lost.", lambda source: source.reconnects),
    _by_source(
        "prepared_transactions",
        "gauge",
        "XA transactions that are prepared and wait for their outcome.",
        lambda source: len(source.prepared),
    ),
    StatusMetric(
        "replicator_target_rows",
        "counter",
        "Rows written: `change` is `inserted`, `overwritten` or `deleted`.",
        ("target", "change"),
        _rows,
    ),
    _by_target("missing_rows", "Rows that an UPDATE or DELETE did not find.", "missing"),
    _by_target("filtered_rows", "Changes that expression filters left out.", "filtered"),
    _by_target("bytes", "Bytes of the row events that were applied.", "bytes"),
    _by_target("transactions", "Transactions of which rows were applied.", "transactions"),
    _counter("batches", "Batches applied.", lambda status: status.writer.batches),
    _task(
        "writer_retrying",
        "1 while the writer waits for a target or for Spark.",
        lambda status: status.writer.state.startswith("retrying"),
    ),
    _task(
        "queued_bytes",
        "Bytes of row events that are read and not applied.",
        lambda status: status.writer.queued_bytes,
    ),
    _task(
        "checkpoint_age_seconds",
        "Time since the checkpoint was saved.",
        lambda status: status.writer.checkpoint_age_seconds,
    ),
    StatusMetric("replicator_locks", "gauge", "Open locks, by their state.", ("state",), _locks),
    StatusMetric(
        "replicator_lock_age_seconds",
        "gauge",
        "Time since the first shard made the statement, by the clock of its source.",
        ("lock", "target"),
        _lock_ages,
    ),
    StatusMetric(
        "replicator_lock_held_events",
        "gauge",
        "Row events that a lock holds; they are read again when it is resolved.",
        ("lock", "target"),
        _lock_rows,
    ),
    _task(
        "copy_active",
        "1 while a full copy runs.",
        lambda status: status.copy is not None and status.copy.state == "copying",
    ),
    _copy("rows", "Rows of the full copy on the target, of all starts.", "rows"),
    _copy("expected_rows", "Rows to copy, as the servers estimate them.", "rows_expected"),
    _copy("bytes", "Bytes of the rows copied, as text.", "bytes"),
    _copy("tables", "Shards to copy.", "tables"),
    _copy("tables_done", "Shards of which every row is on the target.", "tables_done"),
    _copy("remaining_seconds", "Time left at the rate of late.", "seconds_left"),
    _validation("checked_rows", "counter", "Rows that were validated.", "checked"),
    _validation("skipped_rows", "counter", "Rows that validation left out.", "skipped"),
    _validation("waiting_rows", "gauge", "Rows that wait for validation.", "waiting"),
    _validation(
        "behind_seconds",
        "gauge",
        "How long the oldest of them has waited.",
        "seconds_behind",
    ),
    _validation("suspect_rows", "gauge", "Rows that differ and are looked at again.", "suspects"),
    _validation("error_rows", "gauge", "Rows that stayed different.", "errors"),
    StatusMetric(
        "replicator_reconciling_targets",
        "gauge",
        "Targets whose rows are compared with their shards and corrected, by state.",
        ("state",),
        _reconciling,
    ),
    StatusMetric(
        "replicator_reconciled_rows",
        "counter",
        "Rows corrected by that.",
        (),
        lambda status: [((), status.rows_corrected)],
    ),
    StatusMetric(
        "replicator_target_verified_timestamp_seconds",
        "gauge",
        "When all rows of the target were last compared with its shards.",
        ("target",),
        _verified,
    ),
    StatusMetric(
        "replicator_target_differing_rows",
        "gauge",
        "Rows that differed then.",
        ("target",),
        lambda status: [((v.target,), v.differing) for v in status.verified],
    ),
)
"""All metrics that are read from the status, in the order of the page."""

MEMORY = "replicator_memory_bytes"
MEMORY_MEANING = (
    "Memory of the task's processes on this host: `process` is `driver`, `java` or `workers`. What"
    " several share is counted in parts (Linux: PSS)."
)
CONDITION = "replicator_condition_info"
CONDITION_MEANING = "1, with the word that `replicator status` has for the task."


class TaskCollector(Collector):
    """The Prometheus collector of a task; ``status`` returns the present status."""

    def __init__(self, status: Callable[[], TaskStatus], meters: TaskMeters) -> None:
        self._status = status
        self._meters = meters

    def collect(self) -> Iterator[Metric]:
        """Yield the present values."""
        status = self._status()
        for metric in STATUS_METRICS:
            yield metric.family(status)
        word = GaugeMetricFamily(CONDITION, CONDITION_MEANING, labels=("task", "condition"))
        word.add_metric([status.task, condition(status)], 1)
        yield word
        memory = GaugeMetricFamily(MEMORY, MEMORY_MEANING, labels=("task", "process"))
        for process, size in memory_by_process().items():
            memory.add_metric([status.task, process], size)
        yield memory
        for family in self._meters.collect():
            family.samples = [
                sample._replace(labels={"task": status.task, **sample.labels})
                for sample in family.samples
                # The series starts when the process starts.
                if not sample.name.endswith("_created")
            ]
            yield family


def registry_of(status: Callable[[], TaskStatus], meters: TaskMeters) -> CollectorRegistry:
    """Return the registry from which `prometheus_client` makes the text."""
    # By default, registering would collect once to learn the names.
    registry = CollectorRegistry(auto_describe=False)
    registry.register(TaskCollector(status, meters))
    return registry
