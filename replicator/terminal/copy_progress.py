"""The full copy as a line of the status, and as a progress bar."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column, Table
from rich.text import Text

from replicator.status import CopyStatus
from replicator.terminal.figures import number, parts, seconds, size


def copy_line(copy: CopyStatus) -> str:
    """Return one line: progress and remaining time, then rows, bytes, rate and tables.

    The most important parts come first, because a narrow terminal cuts the line.
    """
    copying = copy.state == "copying"
    found = [f"{copy.percent:.1f} %"] if copying and copy.percent is not None else []
    if copying and copy.seconds_left is not None:
        found.append(f"{seconds(copy.seconds_left)} left")
    if copying and copy.rows_expected:
        found.append(f"{parts(copy.rows, copy.rows_expected)} rows")
    else:
        found.append(f"{number(copy.rows)} rows")
    if copying and copy.bytes_expected:
        found.append(parts(copy.bytes, copy.bytes_expected, binary=True))
    else:
        found.append(size(copy.bytes))
    if copy.rows_per_second:
        found.append(f"{number(round(copy.rows_per_second))} rows/s")
    found.append(f"{number(copy.tables_done)} of {number(copy.tables)} tables")
    if copy.replaced:
        found.append(f"{number(copy.replaced)} replaced")
    if copy.ignored:
        found.append(f"{number(copy.ignored)} ignored")
    return ", ".join(found)


def render_copy(copy: CopyStatus) -> Table:
    """Return the copy as a line of the status."""
    grid = Table.grid(padding=(0, 1))
    text = Text(copy_line(copy))
    if copy.waiting:
        text.append(f"  waits: {copy.waiting}", style="bold yellow")
    if copy.held:
        text.append(f"  held until then: {', '.join(copy.held)}", style="bold yellow")
    grid.add_row(Text("copy", style="dim"), Text(copy.state, style="bold"), text)
    return grid


_WIDE = 140
_BAR = 40
_SHORT_BAR = 8
"""Columns of the bar; a narrow terminal needs the rest of its width for the figures."""


class CopyBar:
    """A progress bar below the log of a foreground task while the full copy runs."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("copy"),
            BarColumn(bar_width=_BAR if console.width >= _WIDE else _SHORT_BAR),
            TextColumn(
                "{task.fields[line]}", markup=False, table_column=Column(no_wrap=True, ratio=1)
            ),
            console=console,
            transient=True,
            expand=True,
        )
        self._task: TaskID | None = None

    def show(self, copy: CopyStatus | None) -> None:
        """Show this state; show nothing if no full copy is running."""
        if copy is None or copy.state != "copying":
            self.close()
            return
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task("copy", total=None, line=copy_line(copy))
        self._progress.update(
            self._task,
            total=100,
            completed=copy.percent or 0,
            line=copy_line(copy),
        )

    def close(self) -> None:
        """Remove the bar."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._progress.stop()
            self._task = None
