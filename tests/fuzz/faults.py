"""Faults of single packets on their way to the client: packets in, bytes out. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

from tests.fuzz.packets import HEADER, Packet


class Kind(StrEnum):
    """What becomes of a packet."""

    FLIP = "flip"  # a bit of the payload
    FLIP_HEADER = "flip-header"  # a bit of the length or the sequence number
    CUT = "cut"  # the connection ends in the middle
    STALL = "stall"  # nothing comes any more, from the middle on
    SWALLOW = "swallow"  # this packet, and perhaps the next ones, never come
    DOUBLE = "double"
    SWAP = "swap"  # it comes behind the next one
    EXTEND = "extend"  # further bytes at its end
    SHORTEN = "shorten"  # bytes are missing at its end
    STRETCH = "stretch"  # its header says that it is as large as can be
    REPLACE = "replace"  # another payload in its place
    INSERT = "insert"  # another payload before it
    AGAIN = "again"  # the payload that came before, in its place


RENUMBERED = frozenset({Kind.SWALLOW, Kind.DOUBLE, Kind.SWAP, Kind.INSERT})
"""Kinds that sequence numbers tell of, unless whoever does it numbers the packets anew."""

ODD_PAYLOADS = (
    b"",
    b"\x00",
    b"\xff",
    b"\xff\x15",
    b"\xff\x15\x04#28000no",
    b"\xff\xd4\x04#HY000Could not find first log file name in binary log index file",
    b"\xff\xd4\x04#HY000bogus data in log event",
    b"\xff\xff\xff",
    b"\xfe",
    b"\xfe\x00\x00\x02\x00",
    b"\xfemysql_clear_password\x00",
    b"\xfesha256_password\x00" + b"s" * 20,
    b"\xfedialog\x00",
    b"\xfb/etc/passwd",
    b"\x01\x03",
    b"\x01\x04",
    b"\xfc\xff\xff",
    b"\xfd\xff\xff\xff",
    b"\x00" + b"\xff" * 40,
    b"\x0a" + b"\x00" * 60,
    b"\x0a8.0.0\x00",
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one packet of one connection.

    ``packet`` counts those of the server from the greeting on. ``place`` is where in the packet,
    as a part of it; ``bit`` which bit there; ``count`` how many packets, or bytes, are concerned.
    ``renumbered``: the sequence numbers of what is sent have no gap.
    """

    kind: Kind
    connection: int
    packet: int
    place: float = 0.0
    bit: int = 0
    count: int = 1
    renumbered: bool = False
    filling: bytes = b""

    @property
    def passes_for_real(self) -> bool:
        """Whether a result set with this in it may look like another one: it has no checksums."""
        if self.kind in RENUMBERED:
            return self.renumbered
        return self.kind not in (Kind.FLIP_HEADER, Kind.CUT, Kind.STALL, Kind.STRETCH)

    def __str__(self) -> str:
        more = f" with {self.filling[:24]!r}" if self.filling or self.kind is Kind.REPLACE else ""
        return (
            f"{self.kind} connection {self.connection} packet {self.packet} place {self.place:.4f}"
            f" bit {self.bit} count {self.count}{' renumbered' if self.renumbered else ''}{more}"
        )


def some_fault(
    random: Random, connection: int, packet: int, kinds: Sequence[Kind] = tuple(Kind)
) -> Fault:
    """A fault of any kind for a packet."""
    kind = random.choice(kinds)
    place = random.random()
    if random.random() < 0.5:
        # The beginnings of payloads say what they are: a negative place is counted in bytes.
        place = -float(random.randrange(1, 40))
    odd = random.choice(ODD_PAYLOADS)
    return Fault(
        kind,
        connection,
        packet,
        place,
        random.randrange(8),
        random.choice((1, 1, 1, 2, 3, 5, 8)),
        renumbered=kind in RENUMBERED and random.random() < 0.6,
        filling=odd if random.random() < 0.7 else random.randbytes(random.randrange(1, 80)),
    )


class FaultyLane:
    """What a client gets of the packets that a server sends on one connection.

    ``ended``: the connection is to be closed behind what was sent; ``stalled``: nothing more comes.
    """

    def __init__(self, fault: Fault | None) -> None:
        self.ended = self.stalled = False
        self.done = False
        self._fault = fault
        self._index = 0
        self._shift = 0
        self._swallowed = 0
        self._held: Packet | None = None
        self._before = b""

    def pass_on(self, packet: Packet, *, spared: bool = False) -> bytes:
        """The bytes to send instead of this packet; faults wait for one that is not ``spared``."""
        if self.ended or self.stalled:
            return b""
        fault, index = self._fault, self._index
        self._index += 1
        sent = Packet((packet.sequence + self._shift) % 256, packet.payload)
        if fault is None:
            found = sent.encoded()
        elif self._held is not None:
            held, self._held = self._held, None
            numbers = (held.sequence, sent.sequence)
            first, second = numbers if fault.renumbered else reversed(numbers)
            found = _numbered(sent, first) + _numbered(held, second)
        elif self._swallowed or (index >= fault.packet and not self.done and not spared):
            self.done = True
            found = self._struck(fault, sent)
        else:
            found = sent.encoded()
        self._before = packet.payload
        return found

    def asked(self) -> None:
        """The client has sent a command: the numbers of its answer begin anew."""
        self._shift = 0

    def _struck(self, fault: Fault, packet: Packet) -> bytes:
        payload = packet.payload
        match fault.kind:
            case Kind.SWALLOW:
                self._swallowed = (self._swallowed or fault.count) - 1
                self._shift -= fault.renumbered
                return b""
            case Kind.DOUBLE:
                self._shift += fault.renumbered
                return packet.encoded() + _numbered(packet, packet.sequence + fault.renumbered)
            case Kind.SWAP:
                self._held = packet
                return b""
            case Kind.INSERT:
                self._shift += fault.renumbered
                other = Packet(packet.sequence, fault.filling)
                return other.encoded() + _numbered(packet, packet.sequence + fault.renumbered)
            case Kind.CUT | Kind.STALL:
                self.ended = fault.kind is Kind.CUT
                self.stalled = not self.ended
                whole = packet.encoded()
                return whole[: _at(fault, len(whole))]
            case Kind.FLIP_HEADER:
                return _flipped(packet.encoded(), abs(int(fault.place * 97)) % HEADER, fault.bit)
            case Kind.STRETCH:
                return packet.encoded(claimed=0xFFFFFF)
            case _:
                other = Packet(packet.sequence, _other_payload(fault, payload, self._before))
                return other.encoded()


def _numbered(packet: Packet, sequence: int) -> bytes:
    return Packet(sequence, packet.payload).encoded()


def _other_payload(fault: Fault, payload: bytes, before: bytes) -> bytes:
    match fault.kind:
        case Kind.FLIP:
            return _flipped(payload, _at(fault, len(payload)), fault.bit)
        case Kind.EXTEND:
            return payload + (fault.filling or b"\x00") * fault.count
        case Kind.SHORTEN:
            return payload[: max(0, len(payload) - fault.count)]
        case Kind.AGAIN:
            return before
        case _:
            return fault.filling


def _at(fault: Fault, size: int) -> int:
    if not size:
        return 0
    return int(fault.place * size) if fault.place >= 0 else int(-fault.place - 1) % size


def _flipped(data: bytes, at: int, bit: int) -> bytes:
    if not data:
        return data
    return data[:at] + bytes((data[at] ^ 1 << bit,)) + data[at + 1 :]
