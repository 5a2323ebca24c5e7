"""The demo, as a newcomer starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DEADLINE = 300.0


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """`replicator demo` with all its temporary files in a folder."""
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "cli", "demo", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "COLUMNS": "120"},
        # A shell that runs the tests in the background lets them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not tmp_path: the path of a socket in it must be short.
    with tempfile.TemporaryDirectory(prefix="rt-") as name:
        path = Path(name)
        path.chmod(0o755)  # the servers of root's demo run as another user
        yield path


def test_the_demo_proves_the_merge_and_leaves_nothing(folder: Path) -> None:
    with demo(folder, "--seconds", "6") as process:
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, output
    assert "Every target equals the union of its shards, row for row." in output
    assert output.count("equal") > 3
    assert list(folder.iterdir()) == []


def test_kept_servers_can_be_reached_until_ctrl_c(folder: Path) -> None:
    with demo(folder, "--seconds", "1", "--keep") as process:
        assert process.stdout is not None
        seen = []
        for line in process.stdout:
            seen.append(line)
            if "Ctrl-C stops" in line:
                break
        text = "".join(seen)
        assert "mariadb -h 127.0.0.1 -P" in text
        runtime = text.split("XDG_RUNTIME_DIR=")[1].split()[0]
        status = subprocess.run(
            [sys.executable, "-m", "cli", "status", "demo", "--json"],
            env={**os.environ, "XDG_RUNTIME_DIR": runtime},
            check=True,
            capture_output=True,
            text=True,
        )
        assert '"running"' in status.stdout
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, text + output
    assert list(folder.iterdir()) == []


def test_ctrl_c_in_the_middle_leaves_nothing(folder: Path) -> None:
    with demo(folder, "--seconds", "60") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Starting the replicator" in line:
                break
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=DEADLINE)
    assert process.returncode == 1
    assert "Interrupted" in output
    assert list(folder.iterdir()) == []
