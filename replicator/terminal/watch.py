"""The screens of ``status --watch``, and its keys.

A screen shows the whole task, a list of its parts, or one part. The state of the screen is a value
(`View`), and each key makes another value from it; only `keyboard` reads keys.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import time
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from types import FrameType
from typing import Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from replicator.printable_text import shown_line
from replicator.status import SourceStatus, TargetStatus, TaskStatus
from replicator.terminal.figures import number, seconds, size
from replicator.terminal.locks import differences_list, distance_text, lock_line, lock_panel
from replicator.terminal.status import (
    StatusScreen,
    blocked_line,
    blocked_panel,
    one_line,
    whole_status,
)

Kind = Literal["source", "target", "lock"]
_LISTED: dict[str, Kind] = {"s": "source", "t": "target", "l": "lock"}


@dataclass(frozen=True, slots=True)
class View:
    """The visible part of a task: the whole task, or its parts of one ``kind``.

    ``chosen`` is the name of one of these parts (for a lock, its id), which is marked in the list,
    or shown alone if it is ``opened``. If the part does not exist any more, the first part is
    chosen.
    """

    kind: Kind | None = None
    chosen: str = ""
    opened: bool = False


def after_key(view: View, key: str, status: TaskStatus) -> View | None:
    """Return the view after a key; None if the key ends the command."""
    if key == "q":
        return None
    if key in _LISTED:
        names = _names(status, _LISTED[key])
        return View(_LISTED[key], next(iter(names), ""), len(names) == 1)
    if view.kind is None:
        return view
    names = _names(status, view.kind)
    if key == "back":
        return replace(view, opened=False) if view.opened and len(names) > 1 else View()
    if not names:
        return view
    if key == "open":
        return replace(view, chosen=names[_place(view, names)], opened=True)
    step = {"up": -1, "down": 1}.get(key, 0)
    return replace(view, chosen=names[(_place(view, names) + step) % len(names)])


def _names(status: TaskStatus, kind: Kind) -> list[str]:
    if kind == "lock":
        locks = sorted(status.locks, key=lambda k: k.state != "conflict")
        # Several open statements of one target have the id of the same lock.
        return list(dict.fromkeys(lock.id for lock in locks))
    blocked = [part.name for part in status.blocked if part.kind == kind]
    others = (
        (source.source for source in status.sources)
        if kind == "source"
        else (target.target for target in status.targets)
    )
    return list(dict.fromkeys((*blocked, *others)))


def _place(view: View, names: list[str]) -> int:
    return names.index(view.chosen) if view.chosen in names else 0


@dataclass(frozen=True, slots=True)
class WatchScreen:
    """A view of a task that is never higher than the terminal.

    ``keys``: whether keys are read; if so, the last line lists them.
    """

    status: TaskStatus
    view: View = View()
    keys: bool = True

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = console.height - self.keys
        if self.view.kind is None:
            yield StatusScreen(self.status, spared=int(self.keys))
        else:
            yield from self._parts(console, options, self.view.kind, room)
        if self.keys:
            yield _keys_line(self.view)

    def _parts(
        self, console: Console, options: ConsoleOptions, kind: Kind, room: int
    ) -> RenderResult:
        names = _names(self.status, kind)
        if not names:
            yield Text("no open locks" if kind == "lock" else f"no {kind}s")
            return
        place = _place(self.view, names)
        if not self.view.opened:
            yield one_line((f"{kind}s ", "dim"), f"{number(len(names))} of task {self.status.task}")
            first = max(0, min(place - (room - 1) // 2, len(names) - room + 1))
            for name in names[first : first + room - 1]:
                yield _listed(self.status, kind, name, chosen=name == names[place])
            return
        parts = _opened(self.status, kind, names[place])
        counted = (f"{kind} {number(place + 1)} of {number(len(names))}", "dim")
        shown = chain([one_line(counted, f"  {shown_line(names[place])}")], parts)
        lines = [line for part in shown for line in console.render_lines(part, options)]
        cut = len(lines) > room
        for line in lines[: room - cut]:
            yield Segments([*line, Segment.line()])
        if cut:
            yield one_line((f"all of it: {whole_status(self.status)}", "dim"))


def _keys_line(view: View) -> Text:
    told = "s sources  t targets  l locks  q quit"
    if view.kind is not None:
        told = f"↑↓ {'next' if view.opened else 'choose  ⏎ open'}  esc back  {told}"
    return one_line((told, "reverse"))


def _listed(status: TaskStatus, kind: Kind, name: str, *, chosen: bool) -> Text:
    if kind == "lock":
        lines = [lock_line(lock) for lock in status.locks if lock.id == name]
        more = Text(f"{number(len(lines))} statements: " if len(lines) > 1 else "")
        told = more.append(lines[0])
    elif blocked := [p for p in status.blocked if (p.kind, p.name) == (kind, name)]:
        told = blocked_line(blocked[0])
    elif kind == "source":
        [source] = [source for source in status.sources if source.source == name]
        state = shown_line(source.state)
        told = Text(f"{shown_line(name)}  {state}, lag {seconds(source.lag_seconds)}")
    else:
        [target] = [target for target in status.targets if target.target == name]
        rate = f"{number(round(target.rows_per_second))} rows/s"
        told = Text(f"{shown_line(name)}  {rate}  {shown_line(target.ddl)}")
    line = one_line("▸ " if chosen else "  ", told)
    if chosen:
        line.stylize("bold")
    return line


def _opened(status: TaskStatus, kind: Kind, name: str) -> Iterator[RenderableType]:
    elsewhere = whole_status(status)
    for part in status.blocked:
        if (part.kind, part.name) == (kind, name):
            yield blocked_panel(part, elsewhere)
    for lock in status.locks:
        awaited = any(source.source == name and not source.ready for source in lock.sources)
        if kind == "lock" and lock.id == name:
            yield lock_panel(lock, elsewhere, everything=True)
        elif (kind == "target" and lock.target == name) or (kind == "source" and awaited):
            yield lock_line(lock)
    if kind == "source":
        yield from (_source_facts(source) for source in status.sources if source.source == name)
    elif kind == "target":
        yield from (_target_facts(target) for target in status.targets if target.target == name)
        yield from (differences_list(d) for d in status.differing if d.target == name)


def _source_facts(source: SourceStatus) -> Table:
    return _facts(
        ("state", source.state),
        ("read up to", source.position),
        ("GTID", source.gtid),
        ("on the target up to", source.applied_position),
        ("saved up to", f"{source.saved_position}{distance_text(source.distance)}"),
        ("lag", seconds(source.lag_seconds)),
        ("read", f"{number(source.rows)} row events, {size(source.bytes)}"),
        ("transactions", number(source.transactions)),
        ("reconnects", number(source.reconnects)),
        ("XA prepared at", ", ".join(source.prepared)),
    )


def _target_facts(target: TargetStatus) -> Table:
    return _facts(
        ("schema change", target.ddl),
        ("version", number(target.version)),
        ("shards", number(target.members)),
        ("rows/s", number(round(target.rows_per_second))),
        ("inserted", number(target.inserted)),
        ("overwritten", number(target.overwritten)),
        ("deleted", number(target.deleted)),
        ("missing", number(target.missing)),
        ("filtered", number(target.filtered)),
        ("applied", f"{number(target.transactions)} transactions, {size(target.bytes)}"),
    )


def _facts(*facts: tuple[str, str]) -> Table:
    grid = Table.grid(padding=(0, 2))
    for label, value in facts:
        if value:
            grid.add_row(Text(label, "dim"), Text(value))
    return grid


_SENT_BY = {
    "up": ("\x1b[A", "\x1bOA", "k"),
    "down": ("\x1b[B", "\x1bOB", "j"),
    "open": ("\r", "\n", "\x1b[C", "\x1bOC"),
    "back": ("\x1b", "\x7f", "\b", "\x1b[D", "\x1bOD"),
    **{letter: (letter,) for letter in ("q", *_LISTED)},
}
_KEYS = {sent: key for key, sequences in _SENT_BY.items() for sent in sequences}
_SENT = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)

_REST_SECONDS = 0.05
"""If no further part of a key's sequence arrives within this time, the key was Esc."""


def keys_of(sent: str) -> Iterator[str]:
    """Yield the keys in a terminal's input (ECMA-48).

    They are ``up``, ``down``, ``open``, ``back``, and the letters that have a meaning; other keys
    are ignored.
    """
    return (_KEYS[part] for part in _SENT.findall(sent) if part in _KEYS)


@dataclass(frozen=True, slots=True)
class Keyboard:
    """The keys of the terminal; there are none without a descriptor."""

    descriptor: int | None = None

    @property
    def listens(self) -> bool:
        """Whether there are keys."""
        return self.descriptor is not None

    def pressed(self, patience: float) -> Iterator[str]:
        """Yield the keys pressed within ``patience`` seconds, each when it is pressed."""
        deadline = time.monotonic() + patience
        while (left := deadline - time.monotonic()) > 0:
            sent = b"" if self.descriptor is None else _sent(self.descriptor, left)
            if sent is None:
                return
            if not sent:
                # The terminal is closed, or there was none.
                time.sleep(left)
            yield from keys_of(sent.decode(errors="replace"))


def _sent(descriptor: int, patience: float) -> bytes | None:
    if not select.select([descriptor], [], [], patience)[0]:
        return None
    sent = os.read(descriptor, 1024)
    begun = sent.endswith((b"\x1b", b"\x1b[", b"\x1bO"))
    if begun and select.select([descriptor], [], [], _REST_SECONDS)[0]:
        sent += os.read(descriptor, 1024)
    return sent


@contextmanager
def keyboard() -> Iterator[Keyboard]:
    """Yield the keys of this process's terminal as they are pressed, only in the foreground.

    Keys work without Enter and are not echoed. Ctrl-C keeps its effect. At the end, the terminal
    has its former settings.
    """
    try:
        descriptor = sys.stdin.fileno()
        in_front = os.tcgetpgrp(descriptor) == os.getpgrp()
    except (AttributeError, OSError, ValueError):
        in_front = False
    if not in_front:
        yield Keyboard()
        return

    def listen(*_: int | FrameType | None) -> None:
        tty.setcbreak(descriptor, termios.TCSADRAIN)

    before = termios.tcgetattr(descriptor)
    # After Ctrl-Z and `fg`, the terminal has the shell's settings.
    continued = signal.signal(signal.SIGCONT, listen)
    try:
        listen()
        yield Keyboard(descriptor)
    finally:
        signal.signal(signal.SIGCONT, continued)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
