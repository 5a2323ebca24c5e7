"""Remedies as a list, with commands on separate lines, ready to be copied; and framed messages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_INDENT = "    "

# A command of ours with at least one argument; without an argument, it is only mentioned.
_OWN = r"`(?P<own>replicator [a-z-]+ [^`]+)`"
_SQL_BEGINS = (
    r"GRANT (?=[^;]* TO )|REVOKE (?=[^;]* FROM )|RENAME TABLE "
    r"|CREATE (?:TABLE|DATABASE|USER|UNIQUE INDEX|INDEX) "
    r"|ALTER (?:TABLE|DATABASE|USER) |DROP (?:TABLE|DATABASE|INDEX|TRIGGER) |TRUNCATE TABLE "
    r"|SET (?:GLOBAL|SESSION|PERSIST) |INSERT INTO |DELETE FROM "
    r"|UPDATE \S+ SET |SELECT (?=[^;]* FROM )|SHOW (?:CREATE|GLOBAL|BINARY|MASTER|GRANTS)"
)
_SQL = (
    rf"(?<![\w`])(?P<sql>(?:{_SQL_BEGINS})"
    r"(?:'(?:[^'\\]|''|\\.)*'|`(?:[^`]|``)*`|\"[^\"]*\"|[^;'`\"])+;)"
)
_COMMANDS = re.compile(f"{_OWN}|{_SQL}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RemedyPart:
    """A part of a remedy: prose, or a command to paste."""

    text: str
    command: bool


def parts_of(way: str) -> Iterator[RemedyPart]:
    """Yield the parts of a remedy, prose and commands, in their order.

    Commands are our own commands, in backquotes and with arguments, and statements that end in a
    semicolon.
    """
    place = 0
    for found in _COMMANDS.finditer(way):
        yield from _prose(way[place : found.start()])
        yield RemedyPart(" ".join((found["own"] or found["sql"]).splitlines()), True)
        place = found.end()
    yield from _prose(way[place:])


def _prose(text: str) -> Iterator[RemedyPart]:
    words = text.strip(" ,;:" if text.startswith((":", ",", ";")) else " ")
    # A word that only joined two commands has no meaning without them.
    if words.strip(" .,;:") and words.strip(" ,;") not in ("and", "then"):
        yield RemedyPart(words, False)


@dataclass(frozen=True, slots=True)
class Remedies:
    """A list of remedies: each has a bullet, and its commands on separate lines, never broken.

    The list has to be printed with ``crop=False``.

    Attributes:
        elsewhere: a command that shows all remedies. If it is set, commands wider than the terminal
            are omitted, and this command is shown after the list.
        margin: number of blanks before each line.
    """

    ways: tuple[str, ...]
    elsewhere: str = ""
    margin: int = 0

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        margin = " " * self.margin
        yield Text(f"{margin}remedies:", style="bold")
        left_out = False
        for way in self.ways:
            bullet = f"{margin}  •"
            for part in _with_introduction(parts_of(way)):
                if not part.command:
                    yield _beside(bullet, part.text)
                    bullet = f"{margin}   "
                elif self.elsewhere and cell_len(f"{bullet} {part.text}") > options.max_width:
                    yield Text(f"{margin}    …")
                    left_out = True
                else:
                    yield command_line(part.text, f"{margin}    ")
        if left_out:
            yield Text(f"commands that are wider than this: {self.elsewhere}", style="dim")


def _with_introduction(parts: Iterable[RemedyPart]) -> list[RemedyPart]:
    """Return the parts with a text before the first command: the text after it, or "run:"."""
    found = list(parts)
    if not found or not found[0].command:
        return found
    if [part.command for part in found] == [True, False]:
        return [RemedyPart(f"{found[1].text.rstrip('.')}:", False), found[0]]
    return [RemedyPart("run:", False), *found]


def command_line(command: str, lead: str = _INDENT) -> Text:
    """Return a command on a line that is not broken if it is printed with ``crop=False``."""
    return Text.assemble(lead, (command, "cyan"), no_wrap=True, overflow="ignore")


def _beside(bullet: str, text: str) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_row(Text(bullet), Text(text))
    return grid


def remedies_list(ways: Iterable[str], elsewhere: str = "", margin: int = 0) -> RenderableType:
    """Return some remedies as a list; see `Remedies`."""
    return Remedies(tuple(ways), elsewhere, margin)


@dataclass(frozen=True, slots=True)
class Framed:
    """A body in a frame with a title; without a terminal, the frame is omitted.

    ``below`` is printed after the frame, so a command in it can be copied without frame characters.
    """

    title: Text
    body: RenderableType
    border_style: str = ""
    below: RenderableType | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if console.is_terminal:
            yield Panel(
                self.body, title=self.title, title_align="left", border_style=self.border_style
            )
        else:
            yield self.title
            yield self.body
        if self.below is not None:
            yield self.below
