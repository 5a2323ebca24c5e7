"""The terminal of the command line. Only commands print (held by ``tests/unit/test_layout.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from rich.console import Console, RenderableType
from rich.text import Text

from replicator.shown_text import shown_json, shown_text
from replicator.terminal.safe_console import SafeConsole
from replicator.terminal.ways_out import command_line, parts_of, ways_out_list

UNWRAPPED = 1_000_000
"""Columns of what is no terminal: so no line is ever broken there."""


def _console(*, stderr: bool = False) -> SafeConsole:
    console = SafeConsole(stderr=stderr)
    if not console.is_terminal:
        console.width = UNWRAPPED
    return console


out = _console()
"""What a command was asked for."""
err = _console(stderr=True)
"""What went wrong."""


def tell(text: str) -> None:
    """Print a text as it is, control characters as escapes, whatever the terminal's width."""
    out.file.write(f"{shown_text(text)}\n")


def show(shown: RenderableType, console: Console = out) -> None:
    """Print something that has commands to paste: no line of these is broken or cut."""
    console.print(shown, crop=False)


def complain(message: str, *, where: str = "", ways_out: Sequence[str] = ()) -> None:
    """Tell why a command fails; where nobody has a terminal as a line of JSON, as the log is.

    ``where`` names source, target and position as far as known.
    """
    if not err.is_terminal:
        record = {
            "event": "command.failed",
            "level": "error",
            "error": message,
            "where": where,
            "ways_out": list(ways_out),
            "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        err.print(shown_json(record), markup=False, highlight=False, soft_wrap=True)
        return
    err.print(Text.assemble(("error: ", "bold red"), message), soft_wrap=True)
    for part in parts_of(message):
        if part.command:
            show(command_line(part.text), err)
    if where:
        err.print(Text(f"where: {where}", style="dim"), soft_wrap=True)
    if ways_out:
        show(ways_out_list(ways_out), err)
