"""How fast a task is, beside what the target server can do itself: ``python -m benchmarks``.

It needs nothing but the installed servers; see docs/inside/performance.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from benchmarks.errors import BenchmarkError
from benchmarks.processes import OthersWatch
from benchmarks.report import content, of_a_run, table
from benchmarks.row import Context, Measure, Row
from benchmarks.rows import ROWS
from benchmarks.sizes import SIZES, changed
from replicator.sandbox.keeper import SandboxError

console = Console(stderr=True)
NAMES = ", ".join(row.name for row in ROWS)


def main(
    only: Annotated[list[str] | None, typer.Option(help=f"A row: {NAMES}. Repeatable.")] = None,
    size: Annotated[str, typer.Option(help="full, small (minutes) or tiny (does it work?).")] = (
        "full"
    ),
    sizes: Annotated[str, typer.Option(help="Some sizes as YAML: '{order_rows: 100000}'.")] = "{}",
    runs: Annotated[int, typer.Option(min=1, help="How often each row is measured.")] = 5,
    settings: Annotated[
        str, typer.Option(help="More of the task file, as YAML: '{writer: {buckets: 2}}'.")
    ] = "{}",
    output: Annotated[Path, typer.Option(help="Where to write all figures as JSON.")] = Path(
        "benchmark.json"
    ),
) -> None:
    """Measure the rows of the table, each on private servers, and compare shards and targets."""
    try:
        chosen = _chosen(only or [])
        if size not in SIZES:
            raise BenchmarkError(f"no size {size}: {', '.join(SIZES)}")
        wanted = changed(SIZES[size], yaml.safe_load(sizes))
        done: dict[str, list[dict[str, Any]]] = {}
        for row in chosen:
            with tempfile.TemporaryDirectory(prefix="replicator-bench-") as name:
                folder = Path(name)
                # The servers read files here, which may run as another user.
                folder.chmod(0o755)
                context = Context(wanted, folder, yaml.safe_load(settings))
                with console.status(f"{row.name}: preparing"), row.prepare(context) as measure:
                    for number in range(runs):
                        console.print(f"{row.name}: run {number + 1} of {runs}")
                        done.setdefault(row.name, []).append(_run(measure))
                        figures = content(chosen, done)
                        output.write_text(json.dumps({"size": size, "rows": figures}, indent=2))
                        console.print(done[row.name][-1]["figures"])
    except (BenchmarkError, SandboxError) as error:
        console.print(f"[red]{error}[/]")
        sys.exit(1)
    print(table(figures))


def _chosen(names: list[str]) -> list[Row]:
    unknown = set(names) - {row.name for row in ROWS}
    if unknown:
        raise BenchmarkError(f"no row {', '.join(sorted(unknown))}; there are {NAMES}")
    return [row for row in ROWS if not names or row.name in names]


def _run(measure: Measure) -> dict[str, Any]:
    """Measure once, and see how many cores others took meanwhile."""
    began = time.monotonic()
    with OthersWatch() as others:
        measured = measure()
    return of_a_run(measured, others.cpu / (time.monotonic() - began))


if __name__ == "__main__":
    typer.run(main)
