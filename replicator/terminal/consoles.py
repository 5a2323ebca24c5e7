"""The terminal of the command line: a console for text of any origin.

Only commands print (checked by ``tests/unit/pages/test_layout.py``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from replicator.printable_text import printable_text, shown_json
from replicator.terminal.remedies import command_line, parts_of, remedies_list


class SafeConsole(Console):
    """A console that writes text literally, with control characters as escapes.

    Nearly all output contains names and values from servers and files. They must not be read as
    markup, and must not control the terminal. This also applies to a pipe, because its output may
    reach a terminal.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments of an output."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable_text(segment.text), segment.style)


UNWRAPPED = 1_000_000
"""Width of an output that is not a terminal, so that no line is ever broken in it."""


def _console(*, stderr: bool = False) -> SafeConsole:
    console = SafeConsole(stderr=stderr)
    if not console.is_terminal:
        console.width = UNWRAPPED
    return console


out = _console()
"""The output of a command."""
err = _console(stderr=True)
"""The errors of a command."""


def tell(text: str) -> None:
    """Print a text literally, with control characters as escapes, whatever the terminal's width."""
    out.file.write(f"{printable_text(text)}\n")


def show(shown: RenderableType, console: Console = out) -> None:
    """Print output that has commands to paste: none of its lines is broken or cut."""
    console.print(shown, crop=False)


_as_json: list[bool] = []
"""The form of errors that a command has chosen, if any."""


@contextmanager
def errors_as_json(chosen: bool) -> Iterator[None]:
    """Make `complain` write JSON lines, or text, in this block."""
    _as_json.append(chosen)
    try:
        yield
    finally:
        _as_json.pop()


def is_typed() -> bool:
    """Return whether a person has probably typed the command: a standard stream is a terminal."""
    streams = (sys.stdin, sys.stdout)
    return err.is_terminal or any(stream is not None and stream.isatty() for stream in streams)


def complains_as_json() -> bool:
    """Return whether `complain` writes JSON."""
    return _as_json[-1] if _as_json else not is_typed()


def complain(message: str, *, where: str = "", remedies: Sequence[str] = ()) -> None:
    """Report why a command fails, as text or as a JSON line in the form of the log.

    ``where`` names the source, target and position, as far as known.
    """
    if complains_as_json():
        record = {
            "event": "command.failed",
            "level": "error",
            "error": message,
            "where": where,
            "remedies": list(remedies),
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
    if remedies:
        show(remedies_list(remedies), err)
