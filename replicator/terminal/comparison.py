"""A comparison on a terminal: a progress bar, and the outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from replicator.pipeline.compare.findings import RowExample, TargetComparison
from replicator.terminal.figures import number

_BAR = 24

VALUES_HIDDEN = "values of rows are hidden: `show-row-values: true` in the task file shows them"


def verdict(result: TargetComparison) -> str:
    """Return one word: ``differs``, ``blocked``, ``incomplete``, ``held`` or ``equal``."""
    if result.differing or result.structure:
        return "differs"
    if result.blocked:
        return "blocked"
    if result.incomplete or result.unexplained:
        return "incomplete"
    return "held" if result.held else "equal"


def comparison_line(result: TargetComparison) -> str:
    """Return a line about a target whose comparison is finished."""
    return f"{result.target}: {verdict(result)}, {result.rows:,} rows, {result.seconds:.1f} s"


class ComparisonBar:
    """A progress bar for the target that is being compared."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=_BAR),
            TimeElapsedColumn(),
            TextColumn(
                "{task.fields[line]}", markup=False, table_column=Column(no_wrap=True, ratio=1)
            ),
            console=console,
            transient=True,
            expand=True,
        )
        self._task: TaskID | None = None
        self._line = ""

    def begin(self, target: str, rows_expected: int) -> None:
        """Show a target with about this number of rows."""
        self.close()
        self._progress.start()
        total = max(1, rows_expected)
        self._task = self._progress.add_task(target, total=total, line="")

    def show(self, result: TargetComparison, doubted: int) -> None:
        """Show the progress, with the number of rows in doubt."""
        parts = [f"{number(result.rows)} rows"]
        if result.differing:
            parts.append(f"{number(result.differing)} differ")
        if doubted:
            parts.append(f"{number(doubted)} are looked at again")
        self._line = ", ".join(parts)
        self._update(self._line, result.rows)

    def pause(self, why: str) -> None:
        """Show why the comparison pauses; an empty text means that it continues."""
        self._update(why or self._line, None)

    def _update(self, line: str, rows: int | None) -> None:
        if self._task is not None:
            self._progress.update(self._task, completed=rows, line=line, refresh=True)

    def close(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._progress.stop()
            self._task = None


def render_comparison(results: Sequence[TargetComparison], repair: Path | None) -> RenderableType:
    """Return all targets, then the differing rows, and the parts that were not compared."""
    table = Table(box=None, pad_edge=False)
    table.add_column("target")
    counted = ("rows", "shards", "missing", "extra", "different", "held", "unsettled", "retired")
    for name in (*counted, "rows/s"):
        table.add_column(name, justify="right")
    table.add_column("")
    for result in results:
        counts = (
            *(result.missing, result.extra, result.different),
            *(result.held, result.unsettled, result.retired),
        )
        table.add_row(
            str(result.target),
            f"{result.rows:,}",
            str(len(result.by_shard)),
            *(f"{count:,}" for count in counts),
            f"{result.rows_per_second:,.0f}",
            verdict(result),
        )
    parts: list[RenderableType] = [table]
    for result in results:
        parts += [Text(line) for line in (*_details(result), *_examples(result))]
    if repair is not None and any(result.differing for result in results):
        parts.append(Text(f"{repair} has the SQL that makes the targets equal: read it, then run"))
        parts.append(Text(f"  mariadb --host <target> < {repair}"))
    return Group(*parts)


def _details(result: TargetComparison) -> list[str]:
    return [f"{result.target}: {text}" for text in remarks(result)]


def remarks(result: TargetComparison) -> Iterator[str]:
    """Yield the remarks on a target besides its row counts and differing rows."""
    if result.failure:
        yield f"was not compared: {result.failure}"
    yield from result.remarks
    yield from result.structure
    for text in result.notes:
        yield f"note: {text}"
    for out in result.left_out:
        yield f"column {out.column} was not compared: {out.why}"
    if any(example.is_hidden for example in result.examples):
        yield VALUES_HIDDEN
    if result.repaired:
        yield f"{result.repaired:,} rows were made right"
    if result.blocked:
        yield result.blocked
        if result.held:
            yield f"{result.held:,} rows are held back by that: end it, then compare again"
    elif result.unexplained:
        yield (
            f"{result.held:,} rows differ in shards that have made a schema change which waits,"
            " but its DDL lock holds no row event. Unless the schema change itself gave these rows"
            " other values or keys, or removed them (TRUNCATE, DROP PARTITION), they differ for"
            " another reason. This can't be told before the lock is resolved: resolve it, then"
            " compare again"
        )
    elif result.held:
        events = "" if result.held_events is None else f", which holds {result.held_events:,}"
        yield (
            f"{result.held:,} rows wait for a DDL lock{events and f'{events} row events'}. A row"
            " that differs for another reason can't be told from these: compare again when the"
            " lock is resolved"
        )
    if result.unsettled:
        yield result.unsettled_remark


def _examples(result: TargetComparison) -> Iterator[str]:
    for example in result.examples:
        yield f"{result.target}: {example_text(example)}"
    for kind in ("missing", "extra", "different", "unowned"):
        more = getattr(result, kind) - sum(example.kind == kind for example in result.examples)
        if more > 0 and any(example.kind == kind for example in result.examples):
            yield f"{result.target}: and {more:,} more {kind}"


def example_text(example: RowExample) -> str:
    """Return a line about a differing row."""
    where = f" ({example.shard})" if example.shard else ""
    columns = "; ".join(map(str, example.columns))
    return f"{example.kind}: {example.key}{where}{f': {columns}' if columns else ''}"
