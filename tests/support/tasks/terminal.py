"""A terminal of a given size, with a program in it, and what stands on its screen.

It understands what Rich writes to a terminal (ECMA-48): text, the cursor up and to the left, erased
lines; colours and the like are passed over. Anything else is an error of the test.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.cells import cell_len

PATIENCE = 120.0
_SEQUENCE = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])")
_PASSED_OVER = frozenset("mhl")


class Screen:
    """What stands on a screen of so many columns and lines."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.lines = columns, lines
        self.gone: list[str] = []
        """The lines that have left it at the top."""
        self._rows = [""] * lines
        self._row = self._column = 0

    @property
    def rows(self) -> list[str]:
        """Its lines, without what is blank at their ends."""
        return [row.rstrip() for row in self._rows]

    @property
    def all(self) -> list[str]:
        """All that was written, also what has left it."""
        return [row.rstrip() for row in (*self.gone, *self._rows)]

    def feed(self, text: str) -> None:
        """Write to it; ``text`` ends between two sequences."""
        place = 0
        while place < len(text):
            if text[place] == "\x1b":
                found = _SEQUENCE.match(text, place)
                assert found, f"not understood: {text[place : place + 20]!r}"
                self._obey(found[2], found[3])
                place = found.end()
                continue
            self._put(text[place])
            place += 1

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._next_line()
        else:
            if self._column >= self.columns:
                self._next_line()
                self._column = 0
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + letter + row[self._column + 1 :]
            self._column += cell_len(letter)

    def _next_line(self) -> None:
        self._row += 1
        if self._row == self.lines:
            self.gone.append(self._rows.pop(0))
            self._rows.append("")
            self._row -= 1

    def _obey(self, argument: str, command: str) -> None:
        if command == "A":
            self._row = max(self._row - int(argument or 1), 0)
        elif command == "K":
            row = self._rows[self._row]
            self._rows[self._row] = "" if argument == "2" else row[: self._column]
        else:
            assert command in _PASSED_OVER, f"not understood: {argument}{command}"


def screen_of(
    arguments: Sequence[str],
    env: Mapping[str, str],
    size: tuple[int, int],
    until: Callable[[Screen], bool] | None = None,
) -> Screen:
    """Run a program in a terminal of so many columns and lines, to its end; or until the screen
    looks so, and then end it by SIGINT."""
    columns, lines = size
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    plain = {k: v for k, v in env.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**plain, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    screen, deadline = Screen(columns, lines), time.monotonic() + PATIENCE
    try:
        for text in _output(ours, deadline):
            screen.feed(text)
            if until is not None and until(screen):
                process.send_signal(signal.SIGINT)
                break
    finally:
        os.close(ours)
        process.wait(PATIENCE)
    return screen


def _output(descriptor: int, deadline: float) -> Iterator[str]:
    """What is written, whole sequences and letters at a time."""
    left = b""
    while True:
        readable, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
        assert readable, "the screen did not come to look so"
        try:
            left += os.read(descriptor, 65536)
        except OSError:
            # So Linux tells that the other end is closed.
            yield left.decode()
            return
        # No sequence goes on in the next line.
        whole, newline, left = left.rpartition(b"\n")
        yield (whole + newline).decode()
