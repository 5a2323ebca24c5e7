"""Passing the connections of clients on to a server: what all that stand in between share."""

from __future__ import annotations

import contextlib
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self


class Relay(ABC):
    """Listens on ``port``; each connection gets one to the server that listens on ``backend``."""

    def __init__(self, backend: int) -> None:
        self._backend = backend
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ends: list[socket.socket] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def _take(self, client: socket.socket, server: socket.socket) -> None:
        """Begin to pass on what comes, in threads of their own. The lock is held."""

    def end_all(self) -> None:
        """End all connections."""
        for end in self._ends:
            shut(end)

    def close(self) -> None:
        """Listen no more, and end all connections."""
        shut(self._listener)
        self._threads[0].join()
        self._listener.close()
        self.end_all()
        for thread in self._threads:
            thread.join()

    def _start(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                try:
                    server = socket.create_connection(("127.0.0.1", self._backend))
                except OSError:
                    client.close()
                    continue
                self._ends += [client, server]
                self._take(client, server)


def shut(end: socket.socket) -> None:
    """End a connection, which wakes whoever reads from it."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
