"""Accepts connections at a listening socket: each client must authenticate itself in time.

One deadline applies to everything that a client sends before it is authenticated, however it
spreads its bytes. If the maximum number of clients is pending, the next client replaces another:
the oldest client of the address with the most pending clients. So slow or silent clients keep
nobody out, and the clients of one host keep out no client of another.
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
"""Maximum seconds from the acceptance of a client until it has authenticated itself."""

AT_THE_DOOR = 64
"""Maximum number of pending clients, each in a separate thread."""

PAUSE = 0.1
"""Seconds until the next attempt if no connection could be accepted."""

BACKLOG = 128
"""Number of connections that the system keeps until they are accepted."""


class AuthenticationError(Exception):
    """The other side does not know the secret, or uses another protocol."""


Authenticate = Callable[[socket.socket], tuple[int, socket.socket]]
"""Authenticates a client; returns its slot, and the connection to continue with. Raises
AuthenticationError, ConnectionClosedError, OSError. The caller limits its time."""


@dataclass(eq=False, slots=True)
class _PendingWorker:
    """A client that is not authenticated yet.

    ``handle``: a second handle of its socket, to shut it down from another thread.
    """

    handle: socket.socket
    address: str
    until: float


class WorkerListener:
    """Listens until it is closed.

    ``entered``: called in a thread, with the slot and the connection of each authenticated client.
    """

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
        """Stop accepting clients."""
        with self._changed:
            self._closed = True
            for newcomer in self._there:
                _end(newcomer)
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            # Closing alone would not end the wait for the next client.
            self._listening.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> None:
        with self._listening:
            while not self._closed:
                try:
                    connection, address = self._listening.accept()
                except OSError:
                    # The client has left again, or there are too many open files.
                    time.sleep(PAUSE)
                    continue
                # The address of a Unix socket is a string.
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
        """Make room for a client; return False if the listener is closed."""
        with self._changed:
            if len(self._there) == AT_THE_DOOR:
                ((most, _),) = Counter(one.address for one in self._there).most_common(1)
                oldest = next(one for one in self._there if one.address == most)
                self._there.remove(oldest)
                _end(oldest)
            # An ended client is gone soon; the number of threads does not grow until then.
            self._changed.wait_for(lambda: self._threads < AT_THE_DOOR or self._closed)
            if self._closed:
                return False
            self._threads += 1
            self._there.append(newcomer)
            self._changed.notify_all()
            return True

    def _watch(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                for newcomer in [one for one in self._there if one.until <= now]:
                    self._there.remove(newcomer)
                    _end(newcomer)
                # Clients are in the order of their deadlines.
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
            # Does not concern the job: a refused task reports the reason to Spark.
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
    with contextlib.suppress(OSError):
        newcomer.handle.shutdown(socket.SHUT_RDWR)
