"""A process takes the place of another, with its streams and its environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux only")

TASK = """
import sys, time
from replicator.pipeline.spark.worker_fork import start_worker_fork

known = ["by the task"]

def load():
    known.append("by the fork")

def manage():
    import os
    print(os.environ["OF_JAVA"], sys.argv[1:], known, os.getpid() != int(sys.argv[1]), flush=True)
    print("told", sys.stdin.read(), flush=True)
    print("to stderr", file=sys.stderr)
    sys.exit(0)

start_worker_fork(sys.argv[1], load, manage)
print("ready", flush=True)
sys.stdin.read()
"""
STARTED = """
from replicator.pipeline.spark.worker_fork import join_worker_fork

join_worker_fork()
print("without a fork", flush=True)
"""


def python(program: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_the_fork_takes_the_place_and_another_goes_on_itself(tmp_path: Path) -> None:
    with python(TASK, str(tmp_path)) as task:
        assert task.stdin is not None
        assert task.stdout is not None
        assert task.stdout.readline() == "ready\n"
        given = {"REPLICATOR_WORKER_FORK": str(tmp_path), "OF_JAVA": "a value"}
        with python(STARTED, "0", **given) as started:
            told, complaint = started.communicate("something", timeout=60)
        assert told == "a value ['0'] ['by the task', 'by the fork'] True\ntold something\n"
        assert complaint == "to stderr\n"
        assert started.returncode == 0
        with python(STARTED, "0", **given) as another:
            assert another.communicate(timeout=60)[0] == "without a fork\n"
        task.stdin.close()
        assert task.wait(60) == 0


def test_without_a_fork_it_goes_on_itself(tmp_path: Path) -> None:
    for given in ({}, {"REPLICATOR_WORKER_FORK": str(tmp_path)}):
        with python(STARTED, **given) as started:
            assert started.communicate(timeout=60)[0] == "without a fork\n"


def test_a_fork_that_spark_has_not_started_ends_with_the_task(tmp_path: Path) -> None:
    with python(TASK, str(tmp_path)) as task:
        assert task.stdout is not None
        assert task.stdout.readline() == "ready\n"
        task.kill()
        # The fork has its standard output, too.
        assert task.stdout.read() == ""
