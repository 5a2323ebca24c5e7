"""Tables that fit a terminal: the least important columns are omitted, and no word is broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from replicator.printable_text import printable_text, shown_line

_GAP = 2
"""Width of the gap between two columns of a table, in terminal cells."""

_EDGES = 2
"""Width of both edges of a table, in terminal cells."""

_SENTENCE = 20
"""Minimum width of a column of sentences, in terminal cells."""

_FEWEST = 8
"""A sentence is omitted from its column if the column has fewer terminal cells."""

_CUT = " …"


@dataclass(frozen=True, slots=True)
class TextColumn:
    """A column: its heading, and a cell for each row.

    Attributes:
        rank: a column of rank 0 is always shown; of the others, a narrow terminal first omits the
            one with the highest rank.
        sentences: whether its cells may be long. Such a column gets the remaining width; sentences
            that don't fit are repeated in full below the table.
    """

    heading: str
    cells: Sequence[str]
    rank: int = 0
    numeric: bool = False
    sentences: bool = False

    def __post_init__(self) -> None:
        shown = printable_text if self.sentences else shown_line
        object.__setattr__(self, "cells", [*map(shown, self.cells)])

    @property
    def longest(self) -> int:
        """The number of terminal cells that the longest cell of the column needs."""
        return max(max(map(cell_len, self.cells), default=0), cell_len(self.heading))

    @property
    def width(self) -> int:
        """The number of terminal cells that the column requests."""
        return min(self.longest, _SENTENCE) if self.sentences else self.longest


@dataclass(frozen=True, slots=True)
class FittingTable:
    """A table whose number of columns is decided when it is printed.

    ``repeated_below``: whether sentences that don't fit are repeated in full below the table, each
    after the first cell of its row.
    """

    columns: Sequence[TextColumn]
    repeated_below: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(
            box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False, collapse_padding=True
        )
        width = options.max_width - _EDGES
        wanted = fitting(self.columns, width)
        shown = [column for column in (_cut(column, wanted, width) for column in wanted) if column]
        for number, column in enumerate(shown):
            room = width - sum(other.longest + _GAP for other in shown[1:])
            # A name can't be broken between words: if it is too long, it continues on the next
            # line.
            fixed = max(min(column.longest, room), 1) if not number else column.longest
            table.add_column(
                column.heading,
                justify="right" if column.numeric else "left",
                width=fixed,
                overflow="fold",
            )
        for row in zip(*(column.cells for column in shown), strict=True):
            table.add_row(*map(Text, row))
        yield table
        if self.repeated_below:
            yield from self._below(wanted, width)

    def _below(self, wanted: Sequence[TextColumn], width: int) -> Iterator[Padding]:
        for column in wanted:
            cut = _cut(column, wanted, width)
            for number, cell in enumerate(column.cells):
                if cell and (cut is None or cut.cells[number] != cell):
                    name = self.columns[0].cells[number]
                    line = Text.assemble((f"{name}: ", "bold"), cell)
                    yield Padding(line, (0, 0, 0, 1), expand=False)


def _cut(column: TextColumn, shown: Sequence[TextColumn], width: int) -> TextColumn | None:
    """Return the column with its sentences cut to the remaining width.

    Return None if this width is too small for sentences.
    """
    if not column.sentences:
        return column
    room = width - _taken([other for other in shown if other is not column]) - _GAP
    if column.longest <= room:
        return column
    if room < max(_FEWEST, cell_len(column.heading)):
        return None
    cells = [
        cell if cell_len(cell) <= room else shorten(cell, room, placeholder=_CUT)
        for cell in column.cells
    ]
    return replace(column, cells=cells)


def _taken(columns: Sequence[TextColumn]) -> int:
    return sum(column.width + _GAP for column in columns) - _GAP * bool(columns)


def fitting(columns: Sequence[TextColumn], width: int) -> list[TextColumn]:
    """Return the columns that are shown in this number of terminal cells, in their order."""
    shown = list(columns)
    while _taken(shown) > width:
        least = max(shown, key=lambda column: column.rank)
        if not least.rank:
            break
        shown.remove(least)
    return shown
