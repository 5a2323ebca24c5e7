"""What other processes see of this one."""

from __future__ import annotations

import subprocess
import sys

BLOTTED = """
import os
from pathlib import Path
from replicator.pipeline.shown_words import blot_out
blot_out({"SECRET", "NOT_THERE"})
print(os.environ["SECRET"], os.environ["SECRETIVE"])
print(repr(Path("/proc/self/environ").read_bytes()))
"""

SHOWN = """
import sys
from pathlib import Path
from replicator.pipeline.shown_words import show_as
show_as("short words")
print(repr(Path("/proc/self/cmdline").read_bytes()))
show_as("long " * 10_000)
print(len(Path("/proc/self/cmdline").read_bytes()), sys.argv[1])
"""


def python(code: str, *arguments: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


def test_a_secret_is_not_shown_any_more_and_all_else_is() -> None:
    values, shown = python(BLOTTED, A="1", SECRET="hush=hush", SECRETIVE="open", Z="26")
    assert values == "hush=hush open"
    assert "hush" not in shown
    assert "SECRET=\\x00" in shown
    assert all(text in shown for text in ("A=1\\x00", "SECRETIVE=open\\x00", "Z=26\\x00"))


def test_words_are_shown_in_place_of_those_of_the_call() -> None:
    short, long = python(SHOWN, "given")
    assert short.startswith("b'short words\\x00")
    assert "SHOWN" not in short
    assert "import sys" not in short
    length, given = long.split()
    assert int(length) < 10_000
    assert given == "given"
