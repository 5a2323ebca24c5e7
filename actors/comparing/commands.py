"""The command compare, which checks whether the targets of a task have the rows of its shards."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from actors.control.arguments import AsJson, TaskFile
from actors.control.exit_codes import FAILED, INCOMPLETE
from replicator.printable_text import shown_json
from replicator.terminal.consoles import err, show, tell

if TYPE_CHECKING:
    from actors.comparing.comparing import CompareOptions
    from actors.comparing.target_run import ComparisonView
    from replicator.mysql.names import TableName
    from replicator.pipeline.compare.findings import TargetComparison


class ComparedStructure(StrEnum):
    """The differences of structure that count."""

    FITS = "fits"
    EXACT = "exact"


class CompareMode(StrEnum):
    """How the rows of a range are compared first."""

    CHECKSUM = "checksum"
    ROWS = "rows"


MaxLoad = Annotated[
    str,
    typer.Option(
        metavar="NAME=NUMBER",
        help="Pause while a server's status shows more; several with commas, or an empty text for"
        " none.",
    ),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue the last comparison with the same options where it was interrupted.",
    ),
]
Structure = Annotated[
    ComparedStructure,
    typer.Option(
        help="Count differences of structure by which a target does not store every row of its"
        " shards, and note others; or count all."
    ),
]
Settle = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="SECONDS",
        help="How long to read rows that differ again while their sources are written to, and to"
        " wait for the task to catch up.",
    ),
]
RepairNow = Annotated[
    bool,
    typer.Option(
        "--repair-now",
        help="Correct differing rows at once, under a lock that keeps the task from writing them.",
    ),
]


def compare(
    task_file: TaskFile,
    tables: Annotated[
        list[str] | None,
        typer.Option(help="Targets to compare, as schema.table; * and ? are wildcards."),
    ] = None,
    mode: Annotated[
        CompareMode,
        typer.Option(
            help="Compare checksums that the servers compute, and rows only where these differ;"
            " or compare all rows."
        ),
    ] = CompareMode.CHECKSUM,
    where: Annotated[
        str, typer.Option(help="Rows to compare, as an SQL condition on columns of both sides.")
    ] = "",
    structure: Structure = ComparedStructure.FITS,
    chunk_rows: Annotated[
        int, typer.Option(min=1, help="The number of rows of the target to compare at a time.")
    ] = 100_000,
    settle: Settle = 30,
    max_load: MaxLoad = "Threads_running=25",
    resume: Resume = False,
    repair: Annotated[
        Path | None,
        typer.Option(help="Write the SQL that makes the targets equal to this file."),
    ] = None,
    repair_now: RepairNow = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the result to this file, as a page.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare each target with its shards, also while the task runs, and name the rows that differ.

    While the task runs, the command reads a differing row again until the task has applied
    everything that its source had. Without --repair-now it writes nothing to a server.
    """
    from actors.comparing.comparing import CompareOptions
    from actors.comparing.source_load import load_limits
    from config import load_task
    from replicator import logs
    from replicator.api.open_task import OpenTask
    from replicator.memory import set_largest_event

    task = load_task(task_file)
    logs.configure("warning", task=task.name)
    set_largest_event(task.limits.largest_event)
    try:
        options = CompareOptions(
            tables=tuple(tables or ()),
            checksums=mode is CompareMode.CHECKSUM,
            where=where,
            chunk_rows=chunk_rows,
            settle=settle,
            max_load=load_limits([max_load]),
            repair=repair,
            repair_now=repair_now,
            resume=resume,
            exact_structure=structure is ComparedStructure.EXACT,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    for path in (repair, html):
        _try_to_write(path)
    with closing(_view(quiet=as_json)) as view:
        results = OpenTask.open(task_file).compare_with(options, view)
    _tell(task.name, results, options, html, as_json=as_json)
    _end(results)


def _tell(
    task: str,
    results: list[TargetComparison],
    options: CompareOptions,
    html: Path | None,
    *,
    as_json: bool,
) -> None:
    from actors.comparing.comparison_page import comparison_page
    from replicator.terminal.comparison import render_comparison

    if html is not None:
        html.write_text(comparison_page(task, results, datetime.now(UTC)), encoding="utf-8")
    if as_json:
        from replicator.api.comparison import findings_as_json

        tell(shown_json(findings_as_json(task, results), indent=2))
    else:
        show(render_comparison(results, options.repair))


def _end(results: list[TargetComparison]) -> None:
    """End the command with the exit code of these results, unless all rows are equal."""
    if not results:
        raise typer.BadParameter("no target of the task has this name")
    if any(r.structure or r.blocked or r.repaired < r.differing for r in results):
        raise typer.Exit(FAILED)
    if any(result.incomplete or result.held for result in results):
        raise typer.Exit(INCOMPLETE)


def _try_to_write(path: Path | None) -> None:
    """Fail at once if a file can't be written at the end."""
    if path is None:
        return
    try:
        path.open("ab").close()
    except OSError as error:
        raise typer.BadParameter(f"{path} can't be written: {error}") from error


def _view(*, quiet: bool) -> ComparisonView:
    """Return the view that shows the progress on the error output."""
    from actors.comparing.target_run import ComparisonView
    from replicator.terminal.comparison import ComparisonBar, comparison_line

    class TerminalView(ComparisonView):
        def __init__(self) -> None:
            self.bar = ComparisonBar(err)

        def begun(self, target: TableName, rows_expected: int) -> None:
            self.bar.begin(str(target), rows_expected)

        def went_on(self, result: TargetComparison, doubted: int) -> None:
            self.bar.show(result, doubted)

        def paused(self, why: str) -> None:
            self.bar.pause(why)

        def finished(self, result: TargetComparison) -> None:
            self.bar.close()
            err.print(comparison_line(result))

        def close(self) -> None:
            self.bar.close()

    class PipeView(ComparisonView):
        def paused(self, why: str) -> None:
            if why:
                err.print(why)

    return TerminalView() if err.is_terminal and not quiet else PipeView()
