"""A TCP proxy that breaks connections in the ways in which networks do, or leads to another server.

A connection that *stalls* is one whose other end, or something on the way, passes nothing on and
still takes what it is sent. One that *vanishes* is answered by nobody, not even by a kernel, as
behind a firewall that has forgotten it: a socket filter drops every segment before it is looked at
(Linux, socket(7), SO_ATTACH_FILTER), so there is neither FIN nor RST nor ACK.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct
import threading
import time
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial

from tests.support.servers.relay import Relay

_CHUNK = 1 << 16
_SO_ATTACH_FILTER = 26
_BPF_RET = 0x06
"""``BPF_RET | BPF_K``: with 0, keep nothing of the segment."""


class Way(Enum):
    """The two directions of a connection."""

    TO_SERVER = auto()
    TO_CLIENT = auto()

    @property
    def back(self) -> Way:
        return Way.TO_CLIENT if self is Way.TO_SERVER else Way.TO_SERVER


class Fault(Enum):
    """What becomes of a connection, for both of its ends, unless it stalls in one direction."""

    END = auto()
    RESET = auto()
    STALL = auto()
    STALL_THIS_WAY = auto()
    VANISH = auto()


@dataclass(frozen=True, slots=True)
class Trap:
    """Breaks the first connection on which ``pattern`` passes, in direction ``way``.

    ``forwarded``: how many bytes of what passes then still get through, None for all of it.
    ``answer``: not before the other side has answered, whose answer is lost.
    """

    way: Way
    fault: Fault
    pattern: bytes = b""
    forwarded: int | None = 0
    answer: bool = False
    sprung: threading.Event = field(default_factory=threading.Event)


class _Pair:
    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = {Way.TO_SERVER: (client, server), Way.TO_CLIENT: (server, client)}
        self.going = {way: threading.Event() for way in Way}
        self.over = threading.Event()
        self.lost_answer: Trap | None = None
        self.go_on()

    def suffer(self, fault: Fault, way: Way) -> None:
        if fault is Fault.STALL_THIS_WAY:
            self.going[way].clear()
        elif fault in (Fault.STALL, Fault.VANISH):
            for event in self.going.values():
                event.clear()
            if fault is Fault.VANISH:
                for end in self.ends[way]:
                    _drop_all(end)
        else:
            self.close(reset=fault is Fault.RESET)

    def go_on(self) -> None:
        for event in self.going.values():
            event.set()

    def close(self, *, reset: bool = False) -> None:
        self.over.set()
        self.go_on()
        for end in self.ends[Way.TO_SERVER]:
            with contextlib.suppress(OSError):
                if reset:
                    # Nothing is waited for, so that closing sends RST.
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                end.shutdown(socket.SHUT_RD if reset else socket.SHUT_RDWR)


class FaultyLine(Relay):
    """A relay that breaks. Its server may change, as behind a virtual address that moves."""

    def __init__(self, backend: int) -> None:
        self.accepted = 0
        self.bytes_per_second: float | None = None
        """For every connection, while it is set."""
        self._traps: list[Trap] = []
        self._pairs: list[_Pair] = []
        self._is_cut = False
        super().__init__(backend)

    def set(self, trap: Trap) -> Trap:
        """Break the next connection that the trap is for; the trap."""
        with self._lock:
            self._traps.append(trap)
        return trap

    def break_all(self, fault: Fault, way: Way = Way.TO_SERVER) -> int:
        """Break the connections that are open; how many these were."""
        with self._lock:
            pairs = [pair for pair in self._pairs if not pair.over.is_set()]
        for pair in pairs:
            pair.suffer(fault, way)
        return len(pairs)

    def cut(self) -> None:
        """Pass nothing on, also of connections to come; `mend` lets all go on where it was."""
        with self._lock:
            self._is_cut = True
        self.break_all(Fault.STALL)

    def mend(self) -> None:
        """Pass on what was sent while nothing passed, and what comes."""
        with self._lock:
            self._is_cut = False
            pairs = list(self._pairs)
        for pair in pairs:
            pair.go_on()

    def switch(self, backend: int) -> None:
        """Pass new connections on to another server, and end those that are open."""
        with self._lock:
            self._backend = backend
        self.break_all(Fault.END)

    def end_all(self) -> None:
        """End all connections."""
        for pair in self._pairs:
            pair.close()

    def _take(self, client: socket.socket, server: socket.socket) -> None:
        pair = _Pair(client, server)
        if self._is_cut:
            pair.suffer(Fault.STALL, Way.TO_SERVER)
        self._pairs.append(pair)
        self.accepted += 1
        self._start(partial(self._serve, pair))

    def _serve(self, pair: _Pair) -> None:
        client, server = pair.ends[Way.TO_SERVER]
        with client, server:
            back = threading.Thread(target=self._pump, args=(pair, Way.TO_CLIENT), daemon=True)
            back.start()
            self._pump(pair, Way.TO_SERVER)
            back.join()

    def _pump(self, pair: _Pair, way: Way) -> None:
        source, sink = pair.ends[way]
        with contextlib.suppress(OSError):
            while not pair.over.is_set() and (data := source.recv(_CHUNK)):
                pair.going[way].wait()
                if pair.over.is_set():
                    return
                rest = self._through(pair, way, data)
                if rest:
                    sink.sendall(rest)
                    self._dawdle(len(rest))
        # What has stalled does not pass on the end of a connection either.
        pair.going[way].wait()
        pair.close()

    def _through(self, pair: _Pair, way: Way, data: bytes) -> bytes:
        """What gets through of data; springs the traps that are for it."""
        if pair.lost_answer is not None and way is pair.lost_answer.way.back:
            trap, pair.lost_answer = pair.lost_answer, None
            trap.sprung.set()
            pair.suffer(trap.fault, way)
            return b""
        trap_here = self._trap(way, data)
        if trap_here is None:
            return data
        through = data if trap_here.forwarded is None else data[: trap_here.forwarded]
        if trap_here.answer:
            pair.lost_answer = trap_here
            return data
        with contextlib.suppress(OSError):
            pair.ends[way][1].sendall(through)
        trap_here.sprung.set()
        pair.suffer(trap_here.fault, way)
        return b""

    def _trap(self, way: Way, data: bytes) -> Trap | None:
        with self._lock:
            for trap in self._traps:
                if trap.way is way and trap.pattern in data:
                    self._traps.remove(trap)
                    return trap
        return None

    def _dawdle(self, count: int) -> None:
        if self.bytes_per_second is not None:
            time.sleep(count / self.bytes_per_second)


def _drop_all(end: socket.socket) -> None:
    program = ctypes.create_string_buffer(struct.pack("HBBI", _BPF_RET, 0, 0, 0))
    # struct sock_fprog: the number of instructions, and where they are.
    header = struct.pack("HxxxxxxP", 1, ctypes.addressof(program))
    end.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, header)
