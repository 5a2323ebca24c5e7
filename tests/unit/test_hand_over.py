"""A process gives its files, words and environment to another one, or keeps them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from replicator.pipeline.hand_over import VARIABLE, hand_over, listen

TAKES = """
import os, sys
from replicator.pipeline.hand_over import listen, take_over
listening = listen(sys.argv[1])
lifeline, held = os.pipe()
if len(sys.argv) > 2:
    os.close(held)
print("listening", flush=True)
taken = take_over(listening, lifeline)
if taken:
    print("out:", sys.stdin.readline().strip(), sys.argv, os.environ["GIVEN"], flush=True)
    print("err", file=sys.stderr, flush=True)
    sys.stdin.read()
print("taken" if taken else "alone", flush=True)
"""

GIVES = """
import os
from replicator.pipeline.hand_over import hand_over
print("gave" if hand_over(os.environ) else "kept", flush=True)
"""


@contextlib.contextmanager
def process(code: str, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def line(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


def test_all_is_given_and_the_giver_stays_as_long_as_the_other(tmp_path: Path) -> None:
    # Longer than the name of a socket can be.
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    with process(TAKES, str(folder)) as taker:
        assert line(taker) == "listening"
        with process(GIVES, "words", GIVEN="ä\n", **{VARIABLE: str(folder)}) as giver:
            assert giver.stdin is not None
            giver.stdin.write("hello\n")
            giver.stdin.flush()
            assert line(giver) == "out: hello ['-c', 'words'] ä"
            assert giver.poll() is None
            giver.stdin.close()
            assert line(giver) == ""
            assert line(giver) == "taken"
            assert taker.wait(10) == 0
            assert line(giver) == "gave"
            assert giver.wait(10) == 0
            assert giver.stderr is not None
            assert giver.stderr.read() == "err\n"


def test_a_taker_whose_lifeline_ends_waits_no_longer(tmp_path: Path) -> None:
    with process(TAKES, str(tmp_path), "cut") as taker:
        assert line(taker) == "listening"
        assert line(taker) == "alone"
        assert taker.wait(10) == 0


def test_nothing_is_given_where_nobody_is(tmp_path: Path) -> None:
    assert not hand_over({})
    assert not hand_over({VARIABLE: str(tmp_path / "nowhere")})
    assert not hand_over({VARIABLE: str(tmp_path)})
    listen(str(tmp_path)).close()
    assert not hand_over({VARIABLE: str(tmp_path)})


def test_nothing_is_given_to_one_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replicator.pipeline.hand_over.PATIENCE", 0.05)
    with listen(str(tmp_path)) as listening:
        began = time.monotonic()
        assert not hand_over({VARIABLE: str(tmp_path)})
        assert time.monotonic() - began < 5
        other, _ = listening.accept()
        with other:
            assert socket.recv_fds(other, 1, 3)[:2] == (b"", [])
