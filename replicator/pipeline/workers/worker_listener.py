"""Who may come in by a listening socket: each must prove itself in time, few at a time.

One deadline holds for all that a newcomer does before it has proved itself, however it spreads its
bytes. Where as many are at the door as there is room for, room is made for the next: the one that
has been there longest goes, of those who come from the address that most of them come from. So
clients that are slow or silent keep nobody out, and those of one host nobody of another.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from replicator.pipeline.workers.frames import ConnectionClosedError

SECONDS = 10.0
"""How long a newcomer may take to prove itself, from the moment that it is let in on."""

AT_THE_DOOR = 64
"""How many may be proving themselves at a time, each in a thread of its own."""

PAUSE = 0.1
"""Seconds until the next attempt where none could be let in."""

BACKLOG = 128
"""How many connections the system keeps until they are looked at."""


class AuthenticationError(Exception):
    """The other side does not know the secret, or does not speak like ours."""


Authenticate = Callable[[socket.socket], tuple[int, socket.socket]]
"""Has a newcomer prove itself: its slot, and the connection to go on with. Raises
AuthenticationError, ConnectionClosedError, OSError. It need not watch the time."""


@dataclass(eq=False, slots=True)
class _PendingWorker:
    """``handle`` is a second one for its socket, by which it is ended from outside."""

    handle: socket.socket
    address: str
    until: float


class WorkerListener:
    """Listens until it is closed. ``entered`` is called with a newcomer's slot and its connection,
    in a thread, when it has proved itself."""

    def __init__(
        self,
        listening: socket.socket,
        authenticate: Authenticate,
        entered: Callable[[int, socket.socket], None],
    ) -> None:
        self._listening = listening
        self._authenticate = authenticate
        self._entered = entered
        self._changed = threading.Condition()
        self._there: list[_PendingWorker] = []
        self._threads = 0
        self._closed = False
        threading.Thread(target=self._receive, daemon=True, name="worker listener").start()
        threading.Thread(target=self._watch, daemon=True, name="door deadlines").start()

    def close(self) -> None:
        """Let nobody in any more."""
        with self._changed:
            self._closed = True
            for newcomer in self._there:
                _end(newcomer)
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            # Closing alone would not end the waiting for the next one.
            self._listening.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> None:
        with self._listening:
            while not self._closed:
                try:
                    connection, address = self._listening.accept()
                except OSError:
                    # Whoever wanted to come has left again, or there are too many open files.
                    time.sleep(PAUSE)
                    continue
                # The address of a Unix socket is a text.
                self._let_prove(connection, address if isinstance(address, str) else address[0])

    def _let_prove(self, connection: socket.socket, address: str) -> None:
        with contextlib.ExitStack() as undone:
            undone.callback(connection.close)
            try:
                handle = undone.enter_context(connection.dup())
            except OSError:
                return
            newcomer = _PendingWorker(handle, address, time.monotonic() + SECONDS)
            if self._has_room(newcomer):
                undone.pop_all()
                arguments = (newcomer, connection)
                threading.Thread(target=self._prove, args=arguments, daemon=True).start()

    def _has_room(self, newcomer: _PendingWorker) -> bool:
        """Make room for a newcomer; False where nobody is let in any more."""
        with self._changed:
            if len(self._there) == AT_THE_DOOR:
                ((most, _),) = Counter(one.address for one in self._there).most_common(1)
                oldest = next(one for one in self._there if one.address == most)
                self._there.remove(oldest)
                _end(oldest)
            # Whoever was ended is gone in a moment; threads do not grow beyond that.
            self._changed.wait_for(lambda: self._threads < AT_THE_DOOR or self._closed)
            if self._closed:
                return False
            self._threads += 1
            self._there.append(newcomer)
            self._changed.notify_all()
            return True

    def _watch(self) -> None:
        """End those whose time is up."""
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                for newcomer in [one for one in self._there if one.until <= now]:
                    self._there.remove(newcomer)
                    _end(newcomer)
                # They are in the order in which their times end.
                wait = self._there[0].until - now if self._there else None
                self._changed.wait(wait)

    def _prove(self, newcomer: _PendingWorker, connection: socket.socket) -> None:
        try:
            slot, task = self._authenticate(connection)
            with self._changed:
                if newcomer not in self._there:
                    raise AuthenticationError("it came too late")
                self._there.remove(newcomer)
            self._entered(slot, task)
        except (OSError, ConnectionClosedError, AuthenticationError):
            # Of no concern to the job: a task that is turned away tells Spark why.
            with contextlib.suppress(OSError):
                newcomer.handle.shutdown(socket.SHUT_RDWR)
            connection.close()
        finally:
            newcomer.handle.close()
            with self._changed:
                if newcomer in self._there:
                    self._there.remove(newcomer)
                self._threads -= 1
                self._changed.notify_all()


def _end(newcomer: _PendingWorker) -> None:
    """Have all that its thread waits for end."""
    with contextlib.suppress(OSError):
        newcomer.handle.shutdown(socket.SHUT_RDWR)
