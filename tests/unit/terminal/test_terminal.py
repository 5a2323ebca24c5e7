"""The terminal of the tests shows what a real one would."""

from __future__ import annotations

import sys

from tests.support.tasks.terminal import Screen, screen_of

FRAMES = """
import time
from rich.console import Console
from rich.live import Live
from rich.text import Text
out = Console()
out.print(Text("before", style="bold red"))
with Live(Text("first\\nframe\\nof three"), console=out, auto_refresh=False) as live:
    live.update(Text("second"), refresh=True)
out.print(out.size.width, out.size.height)
"""


def test_letters_go_on_in_the_next_line_and_lines_leave_at_the_top() -> None:
    screen = Screen(4, 3)
    screen.feed("abcdef\r\n12\r\n\x1b[1mx\x1b[0m\r\n")
    assert screen.rows == ["12", "x", ""]
    assert screen.all == ["abcd", "ef", "12", "x", ""]
    screen.feed("\x1b[2A\x1b[2Kz")
    assert screen.rows == ["z", "x", ""]


def test_what_rich_shows_again_and_again() -> None:
    screen = screen_of([sys.executable, "-c", FRAMES], {"PATH": "/usr/bin:/bin"}, (40, 6))
    assert screen.rows == ["before", "second", "40 6", "", "", ""]
