"""A small TCP proxy whose backend can be switched, as a virtual address that moves."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

from replicator.sandbox.server import DatabaseServer

_CHUNK = 1 << 16


class Proxy:
    """Listens on ``port`` and passes each connection on to the backend of that moment."""

    def __init__(self, backend: DatabaseServer) -> None:
        self._backend = backend
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    def switch(self, backend: DatabaseServer) -> None:
        """Pass new connections on to another server, and cut those that are open."""
        with self._lock:
            self._backend = backend
        self.cut()

    def cut(self) -> None:
        """Close all connections."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                _shut(end)

    def close(self) -> None:
        """Listen no more, and close all connections."""
        _shut(self._listener)
        self._threads[0].join()
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                backend = self._backend
                try:
                    server = socket.create_connection((backend.host, backend.port))
                except OSError:
                    client.close()
                    continue
                self._pairs.append((client, server))
            self._start(_serve, client, server)

    def _start(self, work: Callable[..., None], *given: socket.socket) -> None:
        thread = threading.Thread(target=work, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()


def _serve(client: socket.socket, server: socket.socket) -> None:
    with client, server:
        back = threading.Thread(target=_pump, args=(server, client), daemon=True)
        back.start()
        _pump(client, server)
        back.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(_CHUNK):
            sink.sendall(data)
    _shut(source)
    _shut(sink)


def _shut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def proxied(backend: DatabaseServer) -> Iterator[Proxy]:
    """A proxy in front of a server, closed in the end."""
    proxy = Proxy(backend)
    try:
        yield proxy
    finally:
        proxy.close()
