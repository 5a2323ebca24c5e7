"""Whether the process that has a lease is surely gone."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from replicator.downstream.meta.lease import LeaseHolder, begun, is_gone, this_process

HERE = LeaseHolder("db1", 17, "boot 1", "100")
OTHER = LeaseHolder("db1", 23, "boot 1", "200")


@pytest.mark.parametrize(
    ("holder", "begun_at", "gone"),
    [
        (OTHER, "200", False),
        (OTHER, "", True),
        (OTHER, "300", True),
        (replace(OTHER, host="db2"), "", False),
        (replace(OTHER, machine="boot 2"), "", False),
        (replace(OTHER, machine=""), "", False),
    ],
    ids=["lives", "no-such-process", "another-has-its-number", "host", "boot", "unknown"],
)
def test_only_what_can_be_seen_from_here_is_surely_gone(
    holder: LeaseHolder, begun_at: str, gone: bool
) -> None:
    assert is_gone(holder, HERE, {holder.process: begun_at}.__getitem__) is gone


def test_nothing_is_known_where_the_machine_is_not() -> None:
    assert not is_gone(replace(OTHER, machine=""), replace(HERE, machine=""), lambda _: "")


def test_this_process_lives() -> None:
    me = this_process()
    assert me.process == os.getpid()
    assert me.begun == begun(os.getpid()) != ""
    assert not is_gone(me, me, begun)


def test_a_process_that_was_killed_has_ended_before_anybody_has_asked_how() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert begun(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert begun(process.pid) == ""
