"""Tables whose columns fit a terminal: the least wanted ones are left out, no word is broken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

_GAP = 2
"""Columns of the terminal between two columns of a table."""

_SENTENCE = 20
"""So much room a sentence is to have; what is longer goes on in the next line."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its heading and a cell for each row.

    ``rank`` 0 is always shown; of the others the highest goes first where the terminal is narrow.
    ``wraps``: its cells are sentences, and may be told in several lines.
    """

    heading: str
    cells: Sequence[str]
    rank: int = 0
    numeric: bool = False
    wraps: bool = False

    @property
    def width(self) -> int:
        """How many cells of the terminal it wants."""
        longest = max(map(cell_len, self.cells), default=0)
        if self.wraps:
            words = (cell_len(word) for cell in self.cells for word in cell.split())
            longest = max(min(longest, _SENTENCE), max(words, default=0))
        return max(longest, cell_len(self.heading))


@dataclass(frozen=True, slots=True)
class FittingTable:
    """A table of columns; how many of them it has is decided where it is printed."""

    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(
            box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True
        )
        shown = fitting(self.columns, options.max_width)
        for column in shown:
            table.add_column(
                column.heading,
                justify="right" if column.numeric else "left",
                no_wrap=not column.wraps,
                min_width=0 if column.wraps else column.width,
                overflow="fold",
            )
        for row in zip(*(column.cells for column in shown), strict=True):
            table.add_row(*map(Text, row))
        yield table


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """The columns that are shown in so many cells of a terminal, in their order."""
    shown = list(columns)
    while sum(column.width + _GAP for column in shown) - _GAP > width:
        least = max(shown, key=lambda column: column.rank)
        if not least.rank:
            break
        shown.remove(least)
    return shown
