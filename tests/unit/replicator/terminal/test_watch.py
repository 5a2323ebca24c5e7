"""`status --watch`: what keys open, that nothing overflows, and the keys of a real terminal."""

from __future__ import annotations

import io
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from replicator.status import LockSource, TargetStatus, TaskStatus
from replicator.terminal.watch import View, WatchScreen, after_key, keys_of
from tests.support.terminal import needs_tmux, terminal
from tests.unit.replicator.test_status import FULL

TARGETS = tuple(TargetStatus(f"shop.orders_{n}", 4, inserted=n) for n in range(60))
MANY = replace(FULL, targets=TARGETS)


def after(keys: str, status: TaskStatus = FULL) -> View:
    view: View | None = View()
    for key in keys.split():
        assert view is not None
        view = after_key(view, key, status)
    assert view is not None
    return view


def screen(status: TaskStatus, keys: str, width: int = 80, height: int = 24) -> list[str]:
    out = io.StringIO()
    console = Console(width=width, height=height, file=out, force_terminal=True, color_system=None)
    console.print(WatchScreen(status, after(keys, status)))
    shown = [line.rstrip() for line in out.getvalue().splitlines()]
    assert len(shown) <= height, "\n".join(shown)
    assert max(map(len, shown)) <= width
    return shown


def test_keys_open_a_part_and_lead_back() -> None:
    assert after("x up down open back") == View()
    assert after("l") == View("lock", "d.t:3", opened=True), "the only one is opened at once"
    assert after("l back") == View()
    assert after("s") == View("source", "c"), "what is blocked stands first"
    assert after("s down down down") == View("source", "c")
    assert after("s up") == View("source", "b")
    assert after("s down open") == View("source", "a", opened=True)
    assert after("s down open down") == View("source", "b", opened=True)
    assert after("s down open back") == View("source", "a")
    assert after("s down open back back") == View()
    assert after("s down open t") == View("target", "d.u")
    assert after_key(after("s open"), "q", FULL) is None


def test_open_statements_of_one_target_are_one_entry() -> None:
    [lock] = FULL.locks
    status = replace(FULL, locks=(lock, replace(lock, owner="z"), replace(lock, id="d.u:1")))
    assert after("l down", status) == View("lock", "d.u:1")
    assert [line[:15] for line in screen(status, "l")][1:3] == [
        "▸ 2 statements:",
        "  lock d.u:1  c",
    ]


def test_what_has_gone_is_no_more_looked_at() -> None:
    gone = replace(FULL, locks=())
    assert after_key(after("l"), "down", gone) == after("l")
    assert after_key(after("l"), "back", gone) == View()
    renamed = replace(FULL, targets=TARGETS[:2], blocked=())
    assert after_key(after("t open"), "down", renamed) == View("target", "shop.orders_1", True)


def test_all_of_a_part_is_told() -> None:
    lock = "\n".join(screen(FULL, "l"))
    assert "lock 1 of 1  d.t:3" in lock
    assert "replicator unlock-ddl-lock orders d.t:3 --owner b" in lock
    source = "\n".join(screen(FULL, "s down open"))
    for told in ("bin.000001:900", "0-1-9", "bin.000001:4", "12 row events, 2.9 MiB", "1.5 s"):
        assert told in source
    waits = "\n".join(screen(FULL, "s up open"))
    assert "lock d.t:3  conflict" in waits, "a lock that misses shards of it"
    target = "\n".join(screen(FULL, "t up open"))
    for told in ("lock d.t:3", "ALTER TABLE", "overwritten", "10"):
        assert told in target
    blocked = "\n".join(screen(FULL, "t open"))
    assert "target d.u is blocked" in blocked
    assert "replicator resume orders --target d.u" in blocked


def test_a_list_moves_with_what_is_chosen() -> None:
    shown = screen(MANY, "t " + "down " * 40)
    assert shown[0] == "targets 62 of task orders"
    assert [line for line in shown if line.startswith("▸")] == ["▸ shop.orders_38  0 rows/s"]
    assert len(shown) == 24
    assert "esc back" in shown[-1]
    assert screen(MANY, "t up")[-2].startswith("▸ shop.orders_59")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (200, 50), (80, 12), (40, 10)])
def test_nothing_makes_a_screen_overflow(width: int, height: int) -> None:
    sources = tuple(LockSource(f"shard-{n}", False, ("s.t",) * 9) for n in range(40))
    large = replace(MANY, locks=(replace(FULL.locks[0], sources=sources),) * 2)
    for keys in ("", "s", "s open", "s up open", "t", "t open", "t up open", "l", "l open"):
        for status in (FULL, MANY, large, replace(FULL, locks=())):
            shown = screen(status, keys, width, height)
            assert "q quit" in shown[-1] or width == 40
    assert "all of it: replicator status orders --all" in screen(large, "l open")


def test_the_keys_of_terminals() -> None:
    assert [*keys_of("\x1b[A\x1bOBkj\r\x1b\x7fx\x1b[5~éslq")] == [
        *("up", "down", "up", "down", "open", "back", "back", "s", "l", "q")
    ]


PRESSED = """
from replicator.terminal.watch import keyboard
with keyboard() as keys:
    print("listens", keys.listens, flush=True)
    for key in keys.pressed(100):
        print(key, flush=True)
        if key == "q":
            break
input()
print("end")
"""


@needs_tmux
def test_keys_are_read_at_once_and_the_terminal_is_given_back(tmp_path: Path) -> None:
    program = [sys.executable, "-c", PRESSED]
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with terminal(program, env, (40, 12), tmp_path) as opened:
        opened.until("listens True")
        opened.press("Up", "Escape")
        opened.until("up\nback")
        opened.press("x", "Enter", "q")
        opened.until("up\nback\nopen\nq")
        opened.press("line", "Enter")
        assert opened.until_end() == 0
        assert "\n".join(opened.rows).strip().endswith("q\nline\nend"), "echoed again"
