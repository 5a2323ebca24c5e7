"""The page of the metrics, made from the program.

``python -m scripts.metrics_reference > docs/reference/metrics.md`` writes it anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from replicator.monitoring.meters import TaskMeters
from replicator.monitoring.metrics import (
    CONDITION,
    CONDITION_MEANING,
    MEMORY,
    MEMORY_MEANING,
    STATUS_METRICS,
)

_HEAD = """\
# Metrics

This page is made from the program (`python -m scripts.metrics_reference`); don't edit it.

With `metrics: {listen: 127.0.0.1:9216}` in the task file, or `run --metrics 127.0.0.1:9216`, a task
answers HTTP at that address ([how to use it](../how-to/monitor.md)):

| path | answer |
|---|---|
| `/metrics` | the metrics below, as Prometheus reads them |
| `/healthz` | 200 while the actors of the task answer, 503 where they don't within 5 s |
| `/readyz` | 200 while the task copies or follows its sources, else 503 |
| `/` | the status as a page, which a browser reloads every 3 s |

The names of metrics and labels are stable. Every metric has the label `task`. Counters begin at 0
with the process. A figure that is not known is left out; those of sources and targets are there as
soon as the sources are followed.

| metric | kind | labels | meaning |
|---|---|---|---|"""


def metrics_page() -> str:
    """The text of docs/reference/metrics.md."""
    lines = [_HEAD, *(f"| `{n}` | {k} | {labels} | {text} |" for n, k, labels, text in _rows())]
    return "\n".join(lines) + "\n"


def metric_names() -> set[str]:
    """Every name under which Prometheus keeps a series."""
    names = set()
    for name, kind, *_ in _rows():
        ends = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        names |= {f"{name}{end}" for end in ends}
    return names


def _rows() -> Iterator[tuple[str, str, str, str]]:
    """Name, kind, labels and meaning of each metric."""
    for metric in STATUS_METRICS:
        yield metric.shown_name, metric.kind, _shown(metric.labels), metric.meaning
    yield CONDITION, "gauge", _shown(("condition",)), CONDITION_MEANING
    yield MEMORY, "gauge", _shown(("process",)), MEMORY_MEANING
    for name, kind, labels, meaning in TaskMeters().described():
        yield name, kind, _shown(labels), meaning


def _shown(labels: tuple[str, ...]) -> str:
    return ", ".join(f"`{label}`" for label in labels)


if __name__ == "__main__":
    sys.stdout.write(metrics_page())
