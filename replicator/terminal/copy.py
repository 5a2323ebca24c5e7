"""The full copy on a terminal: a bar while a task runs in the foreground, a panel in its status."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from replicator.status import CopyStatus
from replicator.terminal.figures import number, seconds, size


def copy_line(copy: CopyStatus) -> str:
    """Tables, rows, bytes, rate and time left, in one line."""
    parts = [
        f"{number(copy.tables_done)} of {number(copy.tables)} tables",
        f"{number(copy.rows)} of about {number(copy.rows_expected)} rows"
        if copy.state == "copying"
        else f"{number(copy.rows)} rows",
        size(copy.bytes),
        f"{number(round(copy.rows_per_second))} rows/s",
    ]
    if copy.state == "copying":
        parts.append(f"{seconds(copy.seconds_left)} left")
    if copy.replaced:
        parts.append(f"{number(copy.replaced)} replaced")
    if copy.ignored:
        parts.append(f"{number(copy.ignored)} ignored")
    return ", ".join(parts)


def render_copy(copy: CopyStatus) -> Table:
    """The copy as a line of the status."""
    grid = Table.grid(padding=(0, 1))
    text = Text(copy_line(copy))
    if copy.waiting:
        text.append(f"  waits: {copy.waiting}", style="bold yellow")
    grid.add_row(Text("copy", style="dim"), Text(copy.state, style="bold"), text)
    return grid


class CopyBar:
    """A bar below the log of a foreground task, for as long as it copies."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("copy"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[line]}"),
            console=console,
            transient=True,
        )
        self._task: TaskID | None = None

    def show(self, copy: CopyStatus | None) -> None:
        """Show this state; nothing where no copy is under way."""
        if copy is None or copy.state != "copying":
            self.close()
            return
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task("copy", total=None, line="")
        self._progress.update(
            self._task,
            total=max(copy.rows_expected, 1),
            completed=copy.rows,
            line=copy_line(copy),
        )

    def close(self) -> None:
        """Take the bar away."""
        if self._task is not None:
            self._progress.remove_task(self._task)
            self._progress.stop()
            self._task = None
