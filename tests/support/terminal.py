"""A real terminal of a given size (tmux) with a program in it: its screen, and keys to press."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import join, quote
from uuid import uuid4

import pytest

PATIENCE = 120.0
LOOK_SECONDS = 0.05
needs_tmux = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="there is no tmux: `make setup` installs it where it can"
)

_SETTINGS = """
set -g status off
set -g remain-on-exit on
set -g remain-on-exit-format ""
set -g history-limit 100000
set -g default-terminal screen-256color
set -s escape-time 0
"""


class Terminal:
    """A terminal, which stays as it is when its program has ended."""

    def __init__(self, env: Mapping[str, str], ended: Path) -> None:
        self._socket, self._env, self._ended = f"replicator-{uuid4().hex}", env, ended

    def tmux(self, *words: str) -> str:
        """What a command of tmux says."""
        return subprocess.run(
            ["tmux", "-u", "-L", self._socket, *words],
            env=self._env,
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout

    @property
    def rows(self) -> list[str]:
        """The lines of its screen."""
        return self.tmux("capture-pane", "-p").splitlines()

    @property
    def all(self) -> list[str]:
        """All that was written, also what has left the screen at the top."""
        return self.tmux("capture-pane", "-p", "-S", "-").splitlines()

    @property
    def gone(self) -> int:
        """How many lines have left it."""
        return int(self.tmux("display-message", "-p", "#{history_size}"))

    def press(self, *keys: str) -> None:
        """Press keys, named as tmux does."""
        self.tmux("send-keys", *keys)

    def until(self, *texts: str) -> str:
        """Wait until all these stand on the screen; the screen then."""
        deadline = time.monotonic() + PATIENCE
        while any(text not in (shown := "\n".join(self.rows)) for text in texts):
            assert time.monotonic() < deadline, f"not {texts}:\n{shown}"
            time.sleep(LOOK_SECONDS)
        return shown

    def until_end(self) -> int:
        """Wait for the program's end; its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.tmux("display-message", "-p", "#{pane_dead}") != "1\n":
            assert time.monotonic() < deadline, "\n".join(self.rows)
            time.sleep(LOOK_SECONDS)
        return int(self._ended.read_text())


@contextmanager
def terminal(
    arguments: Sequence[str], env: Mapping[str, str], size: tuple[int, int], folder: Path
) -> Iterator[Terminal]:
    """A terminal of so many columns and lines, in which this program has been started."""
    settings, ended = folder / "tmux.conf", folder / "tmux.ended"
    settings.write_text(_SETTINGS)
    plain = {k: v for k, v in env.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "TMUX")}
    opened = Terminal({**plain, "LC_ALL": "C.UTF-8"}, ended)
    columns, lines = map(str, size)
    opened.tmux(
        *("-f", str(settings), "new-session", "-d", "-x", columns, "-y", lines),
        # What tmux itself says of the end of a program may lack its exit code.
        *("-c", str(Path.cwd()), f"{join(arguments)}; echo $? > {quote(str(ended))}"),
    )
    try:
        yield opened
    finally:
        opened.tmux("kill-server")
