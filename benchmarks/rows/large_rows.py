"""Wide rows, and BLOBs, beside loading the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from benchmarks.baselines import load_data
from benchmarks.catching_up import catch_up
from benchmarks.estate import Backlog, Estate, Table
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.sizes import Sizes
from benchmarks.workloads.large_rows import blobs, wide_rows, write_blobs, write_wide_rows

Write = Callable[[Estate, int, Path], Backlog]


@contextmanager
def _prepare(
    table: Table, key: str, write: Write, rows: Callable[[Sizes], int], context: Context
) -> Iterator[Measure]:
    lines = context.folder / f"{table.name}.tsv"
    with source_server() as source, target_server() as target:
        estate = Estate((table,), (source,))
        backlog = write(estate, rows(context.sizes), lines)
        size = lines.stat().st_size

        def measure() -> Measured:
            estate.create_targets(target)
            loaded = load_data(table, target, lines, "binary")
            estate.create_targets(target)
            done = catch_up(backlog, target, context)
            return Measured(
                {key: loaded.seconds / done.seconds},
                {"task": done.raw(), "load_data": loaded.raw(), "bytes": size},
            )

        yield measure


def _row(
    name: str, workload: str, prepare: Callable[[Context], AbstractContextManager[Measure]]
) -> Row:
    line = Line(f"{name}-load-data", workload, "`LOAD DATA LOCAL`, one connection", 0.8, 0.5)
    return Row(name, (line,), prepare)


WIDE = _row(
    "wide",
    "wide rows (60 columns, 2 KB)",
    partial(
        _prepare,
        wide_rows(shards=4),
        "wide-load-data",
        write_wide_rows,
        lambda sizes: sizes.wide_rows,
    ),
)
BLOBS = _row(
    "blobs",
    "BLOBs of 1 MB",
    partial(_prepare, blobs(shards=4), "blobs-load-data", write_blobs, lambda sizes: sizes.blobs),
)
