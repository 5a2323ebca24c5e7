"""What was measured, as one table and as JSON; ``python -m benchmarks.report FILE`` shows a file.

With ``--costs`` it shows what each task that caught up has used instead.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from rich.console import Console

from benchmarks.row import Line, Measured, Row

MIB = 1 << 20
HEADS = ("workload", "against, in the same run", "median", "goal", "floor", "runs", "others")
COSTS = (
    *("task", "rows/s", "CPU in all", "driver", "Java", "workers", "target"),
    *("memory", "of the driver", "others"),
)
BESIDE = ("load_data", "replay", "replica")
GROUPS = ("cpu_driver", "cpu_java", "cpu_workers", "cpu_target")


def content(rows: Sequence[Row], done: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """All figures, as JSON knows them: by row its lines, the medians, and what each run gave."""
    return {
        row.name: {
            "lines": [asdict(line) for line in row.lines],
            "medians": {
                line.key: median(run["figures"][line.key] for run in done[row.name])
                for line in row.lines
            },
            "runs": list(done[row.name]),
        }
        for row in rows
        if done.get(row.name)
    }


def of_a_run(measured: Measured, others: float) -> dict[str, Any]:
    """One measurement; ``others``: the cores that other processes took meanwhile, on average."""
    return {"figures": dict(measured.figures), "raw": dict(measured.raw), "others": others}


def table(figures: Mapping[str, Any]) -> str:
    """The table of all rows, in Markdown: a median below its floor is in bold."""
    return _markdown(HEADS, 2, _table_rows(figures))


def costs(figures: Mapping[str, Any]) -> str:
    """What the tasks used, in Markdown: CPU seconds per million rows, memory in MiB; medians.

    Below each, what it was measured beside: all of the CPU of clients and servers.
    """
    return _markdown(COSTS, 1, _cost_rows(figures))


def _table_rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in figures.values():
        for line in (Line(**values) for values in row["lines"]):
            value = row["medians"][line.key]
            shown = _shown(value, line)
            if not line.reaches(value, line.floor):
                shown = f"**{shown}**"
            yield (
                line.workload,
                line.against,
                shown,
                _shown(line.goal, line),
                _shown(line.floor, line),
                ", ".join(_shown(run["figures"][line.key], line, unit="") for run in row["runs"]),
                f"{median(run['others'] for run in row['runs']):.1f}",
            )


def _cost_rows(figures: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, row in figures.items():
        raws = [run["raw"] for run in row["runs"]]
        for point in _points(raws[0]):
            used = _medians([_points(raw)[point] for raw in raws])
            cpu = [used["cpu"] + used["cpu_target"], *(used[group] for group in GROUPS)]
            yield (
                f"{name} {point}".strip(),
                f"{used['rate']:,.0f}",
                *(f"{seconds * 1e6 / used['rows']:.1f}" for seconds in cpu),
                *(f"{used[part] / MIB:,.0f}" for part in ("memory", "memory_driver")),
                f"{used['others']:.1f}",
            )
        for beside in (key for key in BESIDE if key in raws[0] and "task" in raws[0]):
            used = _medians([raw[beside] for raw in raws])
            rows = raws[0]["task"]["rows"]
            rate, cpu_in_all = rows / used["seconds"], used["cpu"] * 1e6 / rows
            yield f"{name}: {beside}", f"{rate:,.0f}", f"{cpu_in_all:.1f}", *[""] * 7


def _medians(taken: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {key: median(one[key] for one in taken) for key in taken[0]}


def _points(raw: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """The tasks that caught up in a run, by their point where there are several."""
    points: Mapping[str, Mapping[str, Any]] = raw.get("points", {})
    return {"": raw["task"]} if "task" in raw else points


def _shown(value: float, line: Line, unit: str | None = None) -> str:
    digits = 1 if value >= 10 else 2 if value >= 0.1 else 3
    return f"{value:.{digits}f} {line.unit if unit is None else unit}".strip()


def _markdown(heads: Sequence[str], left: int, rows: Iterator[tuple[str, ...]]) -> str:
    rule = ["---"] * left + ["---:"] * (len(heads) - left)
    lines = [" | ".join(cells) for cells in (heads, rule, *rows)]
    return "\n".join(f"| {line} |" for line in lines)


def main(
    file: Annotated[Path, typer.Argument(help="What `make bench` has written.")],
    show_costs: Annotated[bool, typer.Option("--costs", help="CPU and memory instead.")] = False,
) -> None:
    """Show a file of figures as a table in Markdown."""
    try:
        figures = json.loads(file.read_text())["rows"]
    except (OSError, ValueError, KeyError) as error:
        Console(stderr=True).print(f"{file} can't be read: {error}")
        sys.exit(1)
    print(costs(figures) if show_costs else table(figures))


if __name__ == "__main__":
    typer.run(main)
