"""The terminal of the tests is one: its size, its keys, what stands on it and what has left it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.support.terminal import needs_tmux, terminal

PROGRAM = """
import os, sys
print("\\n".join(map(str, range(9))))
print("\\x1b[1mbold\\x1b[0m", *os.get_terminal_size(), input())
sys.exit(7)
"""


@needs_tmux
def test_a_terminal(tmp_path: Path) -> None:
    with terminal([sys.executable, "-c", PROGRAM], os.environ, (40, 6), tmp_path) as opened:
        opened.until("8")
        opened.press("typed", "Enter")
        assert opened.until_end() == 7
        assert [*filter(None, opened.rows)][-1] == "bold 40 6 typed"
        assert opened.all[0] == "0"
        assert opened.gone == len(opened.all) - 6
