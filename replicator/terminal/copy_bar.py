"""The full copy as a bar, while a task runs in the foreground of a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Column

from replicator.status import CopyStatus
from replicator.terminal.copy_progress import copy_line

_WIDE = 140
_BAR = 40
_SHORT_BAR = 10
"""Columns of the bar; on a narrow terminal the figures need the room."""


class CopyBar:
    """A bar below the log of a foreground task, for as long as it copies."""

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
        """Show this state; nothing where no copy is under way."""
        if copy is None or copy.state != "copying":
            self.close()
            return
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task("copy", total=None, line=copy_line(copy))
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
