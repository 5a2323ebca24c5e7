"""A server that says what was recorded, with a fault in it."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

from tests.fuzz.faults import Fault, FaultyLane
from tests.fuzz.packets import PacketCutter
from tests.fuzz.recording import Flight, Recording

_CHUNK = 1 << 16
_PATIENCE = 20.0
"""Seconds after which a client that neither speaks nor ends its connection is left."""


class Player:
    """Listens on ``port``; the k-th connection gets what the k-th one of the recording got.

    Behind what was recorded the connection ends, as with a server that goes away.
    """

    def __init__(self, recording: Recording, fault: Fault | None) -> None:
        self._recording = recording
        self._fault = fault
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._client: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close all sockets."""
        self._closed.set()
        for one in (self._listener, self._client):
            with contextlib.suppress(OSError):
                if one is not None:
                    one.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        number = 0
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._client = client
            with client:
                client.settimeout(_PATIENCE)
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if number < len(self._recording.connections):
                    own = self._fault is not None and self._fault.connection == number
                    lane = FaultyLane(self._fault if own else None)
                    with contextlib.suppress(OSError):
                        _play(client, self._recording.connections[number], lane)
            number += 1


def _play(client: socket.socket, flights: tuple[Flight, ...], lane: FaultyLane) -> None:
    cutter, asked = PacketCutter(), 0
    for flight in flights:
        while asked < flight.asked:
            data = client.recv(_CHUNK)
            if not data:
                return
            asked += len(cutter.take(data))
        asked = 0
        lane.asked()
        client.sendall(b"".join(map(lane.pass_on, flight.answers)))
        if lane.ended:
            return
    while lane.stalled and client.recv(_CHUNK):
        pass


@contextlib.contextmanager
def player(recording: Recording, fault: Fault | None) -> Iterator[Player]:
    """A player of one recording; closed in the end."""
    with closing(Player(recording, fault)) as found:
        yield found
