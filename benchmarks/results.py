"""What was measured: one record per run, their medians, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from rich.table import Table as Grid

from benchmarks.latency import percentile


@dataclass(frozen=True, slots=True)
class CatchUp:
    """One task that caught up with a backlog.

    ``start_seconds``: from the process's start to reading (Java, Spark, Python workers);
    ``seconds``: from then until all is applied, of which the other figures are. CPU in seconds,
    memory in bytes.
    """

    rows: int
    start_seconds: float
    seconds: float
    batches: int
    cpu_driver: float
    cpu_java: float
    cpu_workers: float
    cpu_target: float
    cpu_machine: float
    memory: int
    memory_driver: int

    @property
    def cpu(self) -> float:
        """CPU seconds of all our processes."""
        return self.cpu_driver + self.cpu_java + self.cpu_workers

    @property
    def others(self) -> float:
        """Cores that neither our processes nor the target server used, but somebody else."""
        return max(0.0, self.cpu_machine - self.cpu - self.cpu_target) / self.seconds

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds


@dataclass(frozen=True, slots=True)
class Run:
    """All figures of one run; rates of the servers' own means in rows per second."""

    inserts: CatchUp
    inserts_load_data: float
    inserts_replay: float
    changes: CatchUp
    changes_replay: float
    latencies: list[float] = field(repr=False)

    @property
    def ratios(self) -> dict[str, float]:
        """Our rate as a share of what the servers' own means reached in this run."""
        return {
            "inserts to LOAD DATA": self.inserts.rate / self.inserts_load_data,
            "inserts to replay": self.inserts.rate / self.inserts_replay,
            "changes to replay": self.changes.rate / self.changes_replay,
        }


def _lines(run: Run) -> list[tuple[str, str, float]]:
    """(what, format, value) of one run."""
    lines = [
        ("**100-row inserts**: caught up, rows/s", ",.0f", run.inserts.rate),
        ("LOAD DATA of the same rows, rows/s", ",.0f", run.inserts_load_data),
        ("mariadb-binlog \\| mariadb, rows/s", ",.0f", run.inserts_replay),
        ("ratio to LOAD DATA", ".2f", run.ratios["inserts to LOAD DATA"]),
        ("ratio to the replay", ".2f", run.ratios["inserts to replay"]),
        *_costs(run.inserts),
        ("**small transactions**: caught up, rows/s", ",.0f", run.changes.rate),
        ("mariadb-binlog \\| mariadb, rows/s", ",.0f", run.changes_replay),
        ("ratio to the replay", ".2f", run.ratios["changes to replay"]),
        *_costs(run.changes),
    ]
    if run.latencies:
        lines += [
            (f"**latency when idle**: {name}, ms", ",.0f", 1000 * percentile(run.latencies, share))
            for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0))
        ]
    return lines


def _costs(work: CatchUp) -> list[tuple[str, str, float]]:
    each = 1e6 / work.rows
    return [
        ("CPU seconds per million rows: all our processes", ".1f", work.cpu * each),
        ("  of these the driver's Python", ".1f", work.cpu_driver * each),
        ("  of these Java", ".1f", work.cpu_java * each),
        ("  of these the Python workers", ".1f", work.cpu_workers * each),
        ("the target server", ".1f", work.cpu_target * each),
        ("cores that others took meanwhile", ".1f", work.others),
        ("peak memory of all our processes, MiB", ",.0f", work.memory / 2**20),
        ("peak memory of the driver's Python, MiB", ",.0f", work.memory_driver / 2**20),
        ("start, before reading begins, s", ".1f", work.start_seconds),
        ("batches", ".0f", work.batches),
    ]


def grid(runs: Sequence[Run]) -> Grid:
    """The medians of the runs, and each run."""
    table = Grid(title=f"median of {len(runs)} runs" if len(runs) > 1 else "one run")
    table.add_column("measured")
    table.add_column("median", justify="right", style="bold")
    for number in range(len(runs)):
        table.add_column(f"run {number + 1}", justify="right", style="dim")
    for rows in zip(*map(_lines, runs), strict=True):
        values = [value for _, _, value in rows]
        name, form, _ = rows[0]
        text = name.replace("**", "").replace("\\|", "|")
        table.add_row(text, *(format(v, form) for v in (median(values), *values)))
    return table


def markdown(runs: Sequence[Run]) -> str:
    """The same table for a page of the documentation."""
    heads = ["measured", "median", *(f"run {n + 1}" for n in range(len(runs)))]
    lines = [" | ".join(heads), " | ".join(["---", *["---:"] * (len(runs) + 1)])]
    for rows in zip(*map(_lines, runs), strict=True):
        values = [value for _, _, value in rows]
        name, form, _ = rows[0]
        lines.append(" | ".join([name, *(format(v, form) for v in (median(values), *values))]))
    return "\n".join(f"| {line} |" for line in lines)


def save(runs: Sequence[Run], path: Path) -> None:
    """All figures as JSON: ``runs`` as measured, ``median_ratios`` over them."""
    names = runs[0].ratios
    content = {
        "runs": [asdict(run) | {"ratios": run.ratios} for run in runs],
        "median_ratios": {name: median(run.ratios[name] for run in runs) for name in names},
    }
    path.write_text(json.dumps(content, indent=2) + "\n")
