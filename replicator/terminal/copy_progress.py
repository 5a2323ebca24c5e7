"""The full copy as a line of the status."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from replicator.status import CopyStatus
from replicator.terminal.figures import number, seconds, size


def copy_line(copy: CopyStatus) -> str:
    """How much is done and when it will be, and then rows, bytes, rate and tables, in one line.

    What matters most stands in front: a narrow terminal cuts the rest.
    """
    copying = copy.state == "copying"
    expected = f" of about {number(copy.rows_expected)}" if copy.rows_expected and copying else ""
    parts = [f"{copy.percent:.1f} %"] if copying and copy.percent is not None else []
    if copying and copy.seconds_left is not None:
        parts.append(f"{seconds(copy.seconds_left)} left")
    parts += [f"{number(copy.rows)}{expected} rows", size(copy.bytes)]
    if copy.rows_per_second:
        parts.append(f"{number(round(copy.rows_per_second))} rows/s")
    parts.append(f"{number(copy.tables_done)} of {number(copy.tables)} tables")
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
