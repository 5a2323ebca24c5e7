"""The status of a task as tables on a terminal."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from replicator.status import Fault, SourceStatus, TargetStatus, TaskStatus, WriterStatus
from replicator.terminal.copy import render_copy
from replicator.terminal.figures import number, seconds, size
from replicator.terminal.locks import lock_panel

_STATE_STYLE = {
    "running": "bold green",
    "paused": "bold red",
    "pausing": "yellow",
    "stopping": "yellow",
    "starting": "cyan",
}


def render(status: TaskStatus) -> RenderableType:
    """Everything the status says; locks, the fault and its ways out last, where the eye ends up."""
    parts: list[RenderableType] = [_head(status)]
    if status.copy:
        parts.append(render_copy(status.copy))
    if status.sources:
        parts.append(_sources(status.sources))
    if status.targets:
        parts.append(_targets(status.targets))
    if status.copy is None or status.copy.state != "copying":
        parts.append(_writer(status.writer))
    parts.extend(map(lock_panel, status.locks))
    if status.error:
        parts.append(fault_panel(status.error, f"task {status.task}"))
    return Group(*parts)


def fault_panel(fault: Fault, title: str) -> Panel:
    """One fault with its ways out."""
    text = Text(fault.message)
    if fault.where:
        text.append(f"\nwhere: {fault.where}", style="dim")
    text.append(f"\nsince: {_clock(fault.since)}", style="dim")
    if fault.ways_out:
        text.append("\nways out:", style="bold")
        for way in fault.ways_out:
            text.append(f"\n  • {way}")
    heading = Text.assemble((title, "bold"), f"  {fault.event}")
    return Panel(text, title=heading, title_align="left", border_style="red")


def _head(status: TaskStatus) -> Text:
    age = (datetime.now(UTC) - status.since).total_seconds()
    return Text.assemble(
        ("task ", "dim"),
        (status.task, "bold"),
        "  ",
        (status.state, _STATE_STYLE.get(status.state, "bold")),
        (f" for {seconds(max(age, 0.0))} (process {status.pid})", "dim"),
    )


def _table(left: Iterable[str], numeric: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True)
    for column in left:
        table.add_column(column, overflow="fold", min_width=len(column))
    for column in numeric:
        table.add_column(column, justify="right", no_wrap=True, min_width=len(column))
    return table


def _sources(sources: tuple[SourceStatus, ...]) -> Table:
    table = _table(
        ("source", "state", "read up to", "saved"), ("lag", "rows", "read", "reconnects")
    )
    for source in sources:
        table.add_row(
            Text(source.source),
            Text(source.state),
            Text(source.position),
            Text(source.saved_position),
            seconds(source.lag_seconds),
            number(source.rows),
            size(source.bytes),
            number(source.reconnects),
        )
    return table


def _targets(targets: tuple[TargetStatus, ...]) -> Table:
    counts = ("shards", "inserted", "overwritten", "deleted", "missing", "rows/s")
    changes = any(target.version or target.ddl for target in targets)
    table = _table(("target",), (*counts, *(("version",) if changes else ())))
    if changes:
        table.add_column("schema change", overflow="fold", min_width=len("schema"))
    for target in targets:
        table.add_row(
            Text(target.target),
            number(target.members),
            number(target.inserted),
            number(target.overwritten),
            number(target.deleted),
            number(target.missing),
            number(round(target.rows_per_second)),
            *((number(target.version), Text(target.ddl)) if changes else ()),
        )
    return table


def _writer(writer: WriterStatus) -> Text:
    return Text.assemble(
        ("writer ", "dim"),
        (writer.state, "bold" if writer.state in ("idle", "applying") else "bold yellow"),
        f"  {number(writer.batches)} batches, {number(writer.rows)} rows, "
        f"{number(round(writer.rows_per_second))} rows/s, "
        f"last batch {seconds(writer.last_batch_seconds)}, {size(writer.queued_bytes)} wait, "
        f"saved {seconds(writer.checkpoint_age_seconds)} ago"
        if writer.checkpoint_age_seconds is not None
        else f"  {number(writer.batches)} batches, {number(writer.rows)} rows, nothing saved yet",
    )


def _clock(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
