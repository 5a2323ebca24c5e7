"""The command `report`, which shows what a task did."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from actors.control.arguments import TaskName, name_of
from actors.control.exit_codes import FAILED, WRONG_USAGE
from replicator.terminal.consoles import complain, out, show

if TYPE_CHECKING:
    from actors.reporting.log_records import LogReader


def report(
    task: TaskName,
    log_file: Annotated[
        list[str],
        typer.Option(
            metavar="FILE",
            help="The log as JSON lines. If it was rotated, repeat the option, the oldest file"
            " first. - reads standard input.",
        ),
    ],
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Leave out older records: a time, for example '2026-11-20 10:00:00' (UTC), or a"
            " duration before now, for example 12h.",
        ),
    ] = "",
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the report with its plots as a page."),
    ] = None,
) -> None:
    """Show what a task did, from its log: faults, schema changes, warnings, throughput, lag.

    The task need not run.
    """
    from itertools import chain

    from actors.reporting.log_records import LogReader, lines_of
    from actors.reporting.page import report_page
    from actors.reporting.report import report_of
    from actors.reporting.summary import Summary

    begin = _moment(since, datetime.now(UTC)) if since else None
    name = name_of(task)
    reader = LogReader(name, begin)
    try:
        with ExitStack() as stack:
            files = [_opened(file, stack) for file in log_file]
            lines = chain.from_iterable(map(lines_of, files))
            made = report_of(name, reader.records(lines))
    except OSError as error:
        complain(f"the log {error.filename or ''} can't be read: {error.strerror or error}")
        raise typer.Exit(WRONG_USAGE) from None
    if not made.records:
        complain(_nothing(name, reader))
        raise typer.Exit(FAILED)
    show(Summary(made, reader))
    if html is not None:
        try:
            html.write_text(report_page(made, reader), encoding="utf-8")
        except OSError as error:
            complain(f"the page {html} can't be written: {error.strerror or error}")
            raise typer.Exit(FAILED) from None
        out.print(f"\npage: {html}", highlight=False, soft_wrap=True)


def _opened(file: str, stack: ExitStack) -> BinaryIO:
    if file == "-":
        return sys.stdin.buffer
    return stack.enter_context(open(file, "rb"))


def _nothing(task: str, reader: LogReader) -> str:
    if reader.others:
        names = ", ".join(sorted(reader.others)[:8])
        return f"the log has no record of task {task}; it has records of {names}"
    if reader.earlier:
        return f"the log has no record of task {task} since then; all of them are older"
    if reader.lines:
        return (
            f"the log has no record: none of its {reader.lines} lines is one. Give the file that"
            " `replicator run --log-file` writes"
        )
    return "the log is empty"


def _moment(given: str, now: datetime) -> datetime:
    """Return a time that is given as such, or as a time span before ``now``.

    Raises BadParameter.
    """
    from config.values import parse_duration, parse_moment

    try:
        found = parse_moment(given)
        assert isinstance(found, datetime)
    except (ValueError, OverflowError):
        pass
    else:
        return found
    try:
        ago = parse_duration(given)
    except (ValueError, OverflowError):
        ago = None
    if not isinstance(ago, timedelta) or ago > now - datetime.min.replace(tzinfo=UTC):
        raise typer.BadParameter(
            f"--since {given}: write a time as '2026-11-20 10:00:00' (UTC), or how long ago as 12h"
        )
    return now - ago
