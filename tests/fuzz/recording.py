"""What a real server and a reader of its binlog said to each other, kept to be replayed."""

from __future__ import annotations

import pickle
import select
import socket
from dataclasses import dataclass, field
from pathlib import Path

from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.mysql.server.identity import ServerIdentity
from tests.fuzz.packets import Packet, PacketCutter, without_tls
from tests.support.servers.relay import Relay

_CHUNK = 1 << 16


@dataclass(slots=True)
class Flight:
    """So many packets of the client, and what the server sends then."""

    asked: int
    answers: list[Packet] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recording:
    """One reading of a binlog: its start, its end, and all connections in their order.

    In each the first flight is the greeting, and the last one has the binlog.
    """

    name: str
    schema: str
    start: SourcePosition | GtidStart
    end: int
    identity: ServerIdentity
    checksums: bool
    connections: tuple[tuple[Flight, ...], ...]

    @property
    def size(self) -> int:
        """Bytes that the server sent."""
        flights = (flight for connection in self.connections for flight in connection)
        return sum(len(packet.payload) + 4 for flight in flights for packet in flight.answers)


def save(recording: Recording, folder: Path) -> Path:
    """Keep it for later replays; the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{recording.name}.recording"
    path.write_bytes(pickle.dumps(recording))
    return path


def load(path: Path) -> Recording:
    """One that `save` kept: a file of one's own, since it is unpickled."""
    recording = pickle.loads(path.read_bytes())
    assert isinstance(recording, Recording)
    return recording


class Recorder(Relay):
    """A relay that takes connections one after the other, and notes all."""

    def __init__(self, backend: int) -> None:
        self.connections: list[tuple[Flight, ...]] = []
        super().__init__(backend)

    def _take(self, client: socket.socket, server: socket.socket) -> None:
        with client, server:
            self.connections.append(tuple(_record(client, server)))


def _record(client: socket.socket, server: socket.socket) -> list[Flight]:
    """Pass everything on until one side ends the connection."""
    flights = [Flight(0)]
    ask, answer = PacketCutter(), PacketCutter()
    while True:
        ready, _, _ = select.select((client, server), (), ())
        # What the server says was said before the client goes on.
        one = server if server in ready else client
        try:
            data = one.recv(_CHUNK)
            if not data:
                return flights
            if one is client:
                _note_asked(flights, len(ask.take(data)))
                server.sendall(data)
                continue
            for packet in answer.take(data):
                first = len(flights) == 1 and not flights[0].answers
                noted = without_tls(packet) if first else packet
                flights[-1].answers.append(noted)
                client.sendall(noted.encoded())
        except ConnectionError:
            return flights


def _note_asked(flights: list[Flight], packets: int) -> None:
    if flights[-1].answers:
        flights.append(Flight(0))
    flights[-1].asked += packets
