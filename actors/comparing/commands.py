"""The command compare: whether the targets of a task hold the rows of its shards."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import anyio
import typer

from actors.control.arguments import AsJson, TaskFile
from actors.control.exit_codes import FAILED, INCOMPLETE
from replicator.printable_text import shown_json
from replicator.terminal.consoles import err, show, tell

if TYPE_CHECKING:
    from collections.abc import Callable

    from actors.comparing.comparing import CompareOptions
    from config import Task
    from replicator.pipeline.compare.findings import TargetComparison


class CompareMode(StrEnum):
    """What is compared of a range at first."""

    CHECKSUM = "checksum"
    ROWS = "rows"


def compare(
    task_file: TaskFile,
    tables: Annotated[
        list[str] | None,
        typer.Option(help="Targets to compare, as schema.table; * and ? are wildcards."),
    ] = None,
    mode: Annotated[
        CompareMode,
        typer.Option(
            help="Compare checksums that the servers compute, and rows only if these differ; or"
            " compare all rows."
        ),
    ] = CompareMode.CHECKSUM,
    where: Annotated[
        str, typer.Option(help="Rows to compare, as an SQL condition on columns of both sides.")
    ] = "",
    chunk_rows: Annotated[
        int, typer.Option(min=1, help="The number of rows of the target to compare at a time.")
    ] = 100_000,
    repair: Annotated[
        Path | None,
        typer.Option(help="Write the SQL that makes the targets equal to this file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare each target with its shards, also while the task runs, and name the rows that differ.

    While the task runs, the command looks at a row that differs again, until the task has applied
    what its source had. It writes nothing to a server.
    """
    from actors.comparing.comparing import CompareOptions
    from config import load_task
    from replicator import logs
    from replicator.memory import set_largest_event
    from replicator.terminal.comparison import comparison_line, render_comparison

    task = load_task(task_file)
    logs.configure("warning", task=task.name)
    set_largest_event(task.limits.largest_event)
    options = CompareOptions(tuple(tables or ()), mode is CompareMode.CHECKSUM, where, chunk_rows)

    def finished(result: TargetComparison) -> None:
        if err.is_terminal and not as_json:
            err.print(comparison_line(result))

    results = _compared(task, options, repair, finished)
    if as_json:
        tell(shown_json(json.loads(_as_json(task.name, results)), indent=2))
    else:
        show(render_comparison(results, repair))
    if not results:
        raise typer.BadParameter("no target of the task has this name")
    if any(result.unequal for result in results):
        raise typer.Exit(FAILED)
    if any(result.incomplete for result in results):
        raise typer.Exit(INCOMPLETE)


def _compared(
    task: Task,
    options: CompareOptions,
    repair: Path | None,
    finished: Callable[[TargetComparison], None],
) -> list[TargetComparison]:
    file: BinaryIO | None = None
    if repair is not None:
        try:
            file = repair.open("wb")
        except OSError as error:
            raise typer.BadParameter(f"{repair} can't be written: {error}") from error
    try:
        return anyio.run(_with_spark, task, options, file, finished)
    finally:
        if file is not None:
            file.close()


async def _with_spark(
    task: Task,
    options: CompareOptions,
    repair: BinaryIO | None,
    finished: Callable[[TargetComparison], None],
) -> list[TargetComparison]:
    from actors.comparing.comparing import TargetComparer
    from actors.task.resources.spark import TaskSpark

    spark = TaskSpark(task)
    try:
        return await TargetComparer(task, options, spark.context, repair).run(finished)
    finally:
        await spark.close()


def _as_json(task: str, results: list[TargetComparison]) -> str:
    targets = [
        {
            "target": str(result.target),
            "rows": result.rows,
            "shards": result.by_shard,
            "ranges": result.ranges,
            "missing": result.missing,
            "extra": result.extra,
            "different": result.different,
            "held": result.held,
            "unsettled": result.unsettled,
            "seconds": round(result.seconds, 3),
            "left_out": [{"column": out.column, "why": out.why} for out in result.left_out],
            "failure": result.failure,
            "structure": result.structure,
            "examples": [
                {"kind": kind, "shard": shard, "key": key, "columns": columns}
                for kind, shard, key, columns in result.examples
            ],
        }
        for result in results
    ]
    equal = not any(result.unequal or result.incomplete for result in results)
    return json.dumps({"task": task, "equal": equal, "targets": targets})
