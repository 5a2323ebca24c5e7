"""The metrics that are counted when events happen; all other metrics are read from the status.

One observation takes about a microsecond. There is one for each batch, segment, fault or restart,
never one for each row.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Counter, Histogram, Metric
from prometheus_client.metrics import MetricWrapperBase

BATCH_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
VISIBLE_SECONDS = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14400.0)


class TaskMeters:
    """Counters and histograms that start at 0 with the process."""

    def __init__(self) -> None:
        self._batch = Histogram(
            "replicator_batch_seconds",
            "Time to apply a batch, from its submission to the commit of all its transactions.",
            buckets=BATCH_SECONDS,
            registry=None,
        )
        self._visible = Histogram(
            "replicator_commit_to_visible_seconds",
            "From the commit at the source to the commit on the target, of each part of the binlog"
            " that is applied at once. By both clocks; that of the source counts whole seconds.",
            ("source",),
            buckets=VISIBLE_SECONDS,
            registry=None,
        )
        self._faults = Counter(
            "replicator_faults",
            "Faults since the start of the process, by their event.",
            ("event",),
            registry=None,
        )
        self._restarts = Counter(
            "replicator_restarts",
            "Restarts of the task from its saved state since the start of the process, because a"
            " server or Spark was unavailable.",
            registry=None,
        )

    def described(self) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
        """Yield the Prometheus name, the kind, the labels and the meaning of each metric."""
        found: tuple[tuple[MetricWrapperBase, tuple[str, ...]], ...] = (
            *((self._batch, ()), (self._visible, ("source",))),
            *((self._faults, ("event",)), (self._restarts, ())),
        )
        for meter, labels in found:
            [family] = meter.collect()
            end = "_total" if family.type == "counter" else ""
            yield f"{family.name}{end}", family.type, labels, family.documentation

    def batch(self, seconds: float) -> None:
        """Count a batch, with the seconds that applying it took."""
        self._batch.observe(seconds)

    def visible(self, source: str, seconds: float) -> None:
        """Record the seconds between rows' commit at a source and their commit at the target."""
        self._visible.labels(source).observe(max(0.0, seconds))

    def fault(self, event: str) -> None:
        """Count a reported fault."""
        self._faults.labels(event).inc()

    def restart(self) -> None:
        """Count a restart of the task from its saved state."""
        self._restarts.inc()

    def collect(self) -> Iterator[Metric]:
        """Yield the present values."""
        for meter in (self._batch, self._visible, self._faults, self._restarts):
            yield from meter.collect()
