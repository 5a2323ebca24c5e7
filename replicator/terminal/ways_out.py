"""Ways out of something, as a list."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text


def ways_out_list(ways: Iterable[str]) -> RenderableType:
    """Each behind a bullet; what goes on in the next line is indented like its beginning."""
    grid = Table.grid(padding=(0, 1))
    for way in ways:
        grid.add_row(Text("  •"), Text(way))
    return Group(Text("ways out:", style="bold"), grid)
