"""A proxy to a living server that does to what it sends what seeds say."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from functools import partial
from random import Random

from tests.fuzz.faults import Fault, FaultyLane, some_fault
from tests.fuzz.packets import PacketCutter, without_tls
from tests.support.servers.relay import Relay, shut

_CHUNK = 1 << 16
_REACHES = (4, 40, 300, 3000)
"""How many packets of a connection may be hit: login, look-ups, and what follows."""
_LOGIN = 3
"""Packets of a login, at least."""
_DUMPS = (b"\x12", b"\x1e")
"""What the commands begin with that ask for a binlog."""

Choose = Callable[[int], Fault | None]
"""The fault of a connection, by its number since the last one was clean."""


def seeded(seed: int) -> Choose:
    """A fault for each connection."""

    def choose(number: int) -> Fault:
        random = Random(f"task {seed} {number}")
        return some_fault(random, number, random.randrange(random.choice(_REACHES)))

    return choose


class FuzzProxy(Relay):
    """A relay with faults; clean at first."""

    def __init__(self, backend: int) -> None:
        self.struck: list[Fault] = []
        """The faults that came about."""
        self._choose: Choose | None = None
        self._number = 0
        super().__init__(backend)

    def turn(self, choose: Choose | None) -> None:
        """From now on new connections have these faults (None: no faults); all others end."""
        with self._lock:
            self._choose, self._number = choose, 0
        self.end_all()

    def _take(self, client: socket.socket, server: socket.socket) -> None:
        fault = self._choose(self._number) if self._choose else None
        self._number += 1
        self._start(partial(self._serve, client, server, FaultyLane(fault), fault))

    def _serve(
        self, client: socket.socket, server: socket.socket, lane: FaultyLane, fault: Fault | None
    ) -> None:
        with client, server:
            dumping = threading.Event()
            asking = threading.Thread(
                target=_ask, args=(client, server, lane, dumping), daemon=True
            )
            asking.start()
            with contextlib.suppress(OSError):
                self._answer(client, server, lane, fault, dumping)
            shut(client)
            shut(server)
            asking.join()

    def _answer(
        self,
        client: socket.socket,
        server: socket.socket,
        lane: FaultyLane,
        fault: Fault | None,
        dumping: threading.Event,
    ) -> None:
        cutter, number = PacketCutter(), 0
        doubtful = fault is not None and fault.passes_for_real
        while data := server.recv(_CHUNK):
            for packet in cutter.take(data):
                # A look-up that says something else is another estate: no reader can tell.
                spared = doubtful and number >= _LOGIN and not dumping.is_set()
                whole = packet if number else without_tls(packet)
                number += 1
                client.sendall(lane.pass_on(whole, spared=spared))
            if lane.done and fault is not None:
                self.struck.append(fault)
                fault = None
            if lane.ended:
                return


def _ask(
    client: socket.socket, server: socket.socket, lane: FaultyLane, dumping: threading.Event
) -> None:
    cutter = PacketCutter()
    with contextlib.suppress(OSError):
        while data := client.recv(_CHUNK):
            if any(packet.payload[:1] in _DUMPS for packet in cutter.take(data)):
                dumping.set()
            lane.asked()
            server.sendall(data)
    shut(server)
