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
from replicator.pipeline.spark.fork_server import start_fork_server

known = ["by the task"]

def load():
    known.append("by the server")

def manage():
    import os
    print(os.environ["OF_JAVA"], sys.argv[1:], known, os.getpid() != int(sys.argv[1]), flush=True)
    print("told", sys.stdin.read(), flush=True)
    print("to stderr", file=sys.stderr)
    sys.exit(0)

start_fork_server(sys.argv[1], load, manage)
print("ready", flush=True)
sys.stdin.read()
"""
STARTED = """
from replicator.pipeline.spark.fork_server import join_fork_server

join_fork_server()
print("without a server", flush=True)
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


def test_a_child_of_the_server_takes_the_place(tmp_path: Path) -> None:
    with python(TASK, str(tmp_path)) as task:
        assert task.stdout is not None
        assert task.stdout.readline() == "ready\n"
        for number in range(2):
            given = {"REPLICATOR_FORK_SERVER": str(tmp_path), "OF_JAVA": f"value {number}"}
            with python(STARTED, "0", **given) as started:
                told, complaint = started.communicate("something", timeout=60)
            assert (
                told
                == f"value {number} ['0'] ['by the task', 'by the server'] True\ntold something\n"
            )
            assert complaint == "to stderr\n"
            assert started.returncode == 0
        assert task.stdin is not None
        task.stdin.close()
        assert task.wait(60) == 0


def test_without_a_server_it_goes_on_itself(tmp_path: Path) -> None:
    for given in ({}, {"REPLICATOR_FORK_SERVER": str(tmp_path)}):
        with python(STARTED, **given) as started:
            assert started.communicate(timeout=60)[0] == "without a server\n"


def test_the_server_ends_with_the_task(tmp_path: Path) -> None:
    with python(TASK, str(tmp_path)) as task:
        assert task.stdout is not None
        assert task.stdout.readline() == "ready\n"
        given = {"REPLICATOR_FORK_SERVER": str(tmp_path), "OF_JAVA": ""}
        with python(STARTED, "0", **given) as started:
            assert started.stdout is not None
            started.stdout.readline()
            task.kill()
            # The server has its standard output, too.
            assert task.stdout.read() == ""
            # What Spark has started depends on Spark alone.
            assert started.communicate("x", timeout=60)[0] == "told x\n"
