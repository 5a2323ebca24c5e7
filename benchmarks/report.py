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
COSTS = ("task", "rows/s", "driver", "Java", "workers", "target", "memory", "driver's", "others")


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
    """What the tasks used, in Markdown: CPU seconds per million rows, memory in MiB; medians."""
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
        runs = [dict(_tasks(run["raw"])) for run in row["runs"]]
        for task in runs[0] if runs else ():
            taken = [run[task] for run in runs]
            yield (
                f"{name} {task}".strip(),
                f"{median(t['rate'] for t in taken):,.0f}",
                *(
                    f"{median(t[f'cpu_{group}'] * 1e6 / t['rows'] for t in taken):.1f}"
                    for group in ("driver", "java", "workers", "target")
                ),
                *(f"{median(t[m] / MIB for t in taken):,.0f}" for m in ("memory", "memory_driver")),
                f"{median(t['others'] for t in taken):.1f}",
            )


def _tasks(raw: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The tasks that caught up in a run, by their point where there are several."""
    if "task" in raw:
        yield "", raw["task"]
    yield from raw.get("points", {}).items()


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
