"""What other processes see of this one."""

from __future__ import annotations

import subprocess
import sys

BLOTTED = """
import os
from pathlib import Path
from replicator.pipeline.spark.direct_launch import hide_variables
hide_variables({"SECRET", "NOT_THERE"})
print(os.environ["SECRET"], os.environ["SECRETIVE"])
print(repr(Path("/proc/self/environ").read_bytes()))
"""


def python(code: str, **environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
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
