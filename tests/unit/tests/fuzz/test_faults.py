"""The faults of the stream fuzzer do what they are named after, and what a seed says."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.faults import Fault, FaultyLane, Kind, some_fault
from tests.fuzz.packets import CLIENT_SSL, Packet, PacketCutter, packets_in, without_tls

SENT = [Packet(number, bytes((number,)) * 10) for number in range(1, 6)]


def through(fault: Fault | None) -> bytes:
    lane = FaultyLane(fault)
    return b"".join(map(lane.pass_on, SENT))


def numbers(fault: Fault) -> list[tuple[int, int]]:
    """(sequence number, which packet it is) of what comes through."""
    return [(packet.sequence, packet.payload[0]) for packet in packets_in(through(fault))]


def test_nothing_happens_without_a_fault() -> None:
    assert packets_in(through(None)) == SENT


@pytest.mark.parametrize(
    ("kind", "renumbered", "expected"),
    [
        (Kind.SWALLOW, False, [(1, 1), (4, 4), (5, 5)]),
        (Kind.SWALLOW, True, [(1, 1), (2, 4), (3, 5)]),
        (Kind.DOUBLE, False, [(1, 1), (2, 2), (2, 2), (3, 3), (4, 4), (5, 5)]),
        (Kind.DOUBLE, True, [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 5)]),
        (Kind.SWAP, False, [(1, 1), (3, 3), (2, 2), (4, 4), (5, 5)]),
        (Kind.SWAP, True, [(1, 1), (2, 3), (3, 2), (4, 4), (5, 5)]),
        (Kind.INSERT, True, [(1, 1), (2, 9), (3, 2), (4, 3), (5, 4), (6, 5)]),
        (Kind.REPLACE, False, [(1, 1), (2, 9), (3, 3), (4, 4), (5, 5)]),
        (Kind.AGAIN, False, [(1, 1), (2, 1), (3, 3), (4, 4), (5, 5)]),
    ],
)
def test_packets_that_are_moved(
    kind: Kind, renumbered: bool, expected: list[tuple[int, int]]
) -> None:
    fault = Fault(kind, 0, 1, count=2, renumbered=renumbered, filling=b"\x09")
    assert numbers(fault) == expected


@pytest.mark.parametrize(
    ("kind", "size"),
    [(Kind.EXTEND, 12), (Kind.SHORTEN, 8), (Kind.FLIP, 10), (Kind.REPLACE, 1)],
)
def test_payloads_that_are_changed(kind: Kind, size: int) -> None:
    found = packets_in(through(Fault(kind, 0, 1, 0.5, 3, 2, filling=b"\x09")))
    assert [len(packet.payload) for packet in found] == [10, size, 10, 10, 10]
    assert found[1].payload != SENT[1].payload
    assert [found[0], *found[2:]] == [SENT[0], *SENT[2:]]


def test_one_bit_differs() -> None:
    found = packets_in(through(Fault(Kind.FLIP, 0, 1, 0.5, 3)))[1].payload
    assert int.from_bytes(found) ^ int.from_bytes(SENT[1].payload) == 1 << (4 * 8 + 3)


@pytest.mark.parametrize("kind", [Kind.CUT, Kind.STALL])
def test_nothing_comes_behind_the_middle_of_a_packet(kind: Kind) -> None:
    lane = FaultyLane(Fault(kind, 0, 1, 0.5))
    assert b"".join(map(lane.pass_on, SENT)) == through(None)[: 14 + 7]
    assert (lane.ended, lane.stalled) == (kind is Kind.CUT, kind is Kind.STALL)


def test_a_length_that_is_too_great() -> None:
    assert through(Fault(Kind.STRETCH, 0, 1))[14:18] == b"\xff\xff\xff\x02"


def test_a_fault_waits_for_a_packet_that_is_not_spared() -> None:
    lane = FaultyLane(Fault(Kind.REPLACE, 0, 1))
    found = [lane.pass_on(packet, spared=packet.sequence < 4) for packet in SENT]
    assert [len(data) for data in found] == [14, 14, 14, 4, 14]


def test_the_numbers_of_the_next_answer_begin_anew() -> None:
    lane = FaultyLane(Fault(Kind.SWALLOW, 0, 1, renumbered=True))
    first = [lane.pass_on(packet) for packet in SENT[:3]]
    lane.asked()
    found = packets_in(b"".join([*first, lane.pass_on(SENT[0])]))
    assert [packet.sequence for packet in found] == [1, 2, 1]


def test_seeds_choose_all_kinds_and_the_same_ones_again() -> None:
    chosen = [some_fault(Random(seed), 2, 7) for seed in range(400)]
    assert {fault.kind for fault in chosen} == set(Kind)
    assert chosen == [some_fault(Random(seed), 2, 7) for seed in range(400)]


def test_packets_are_cut_from_bytes_however_they_come() -> None:
    cutter, data = PacketCutter(), through(None)
    assert [one for byte in data for one in cutter.take(bytes((byte,)))] == SENT


def test_a_greeting_offers_no_tls() -> None:
    head = b"\x0a8.0.0\x00" + b"\x01\x00\x00\x00" + b"saltsalt\x00"
    flags = CLIENT_SSL | 0x8201
    found = without_tls(Packet(0, head + flags.to_bytes(2, "little") + b"rest"))
    assert found.payload == head + (0x8201).to_bytes(2, "little") + b"rest"
