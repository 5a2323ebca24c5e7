"""The full copy as a line of the status."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from replicator.status import CopyStatus
from replicator.terminal.figures import number, seconds, size


def copy_line(copy: CopyStatus) -> str:
    """Tables, rows, bytes, rate and time left, in one line."""
    expected = f" of about {number(copy.rows_expected)}" if copy.rows_expected else ""
    parts = [
        f"{number(copy.tables_done)} of {number(copy.tables)} tables",
        f"{number(copy.rows)}{expected if copy.state == 'copying' else ''} rows",
        size(copy.bytes),
    ]
    if copy.rows_per_second:
        parts.append(f"{number(round(copy.rows_per_second))} rows/s")
    if copy.state == "copying" and copy.seconds_left is not None:
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
    if copy.held:
        text.append(f"  held until then: {', '.join(copy.held)}", style="bold yellow")
    grid.add_row(Text("copy", style="dim"), Text(copy.state, style="bold"), text)
    return grid
