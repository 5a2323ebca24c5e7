"""Objects over a connection: what arrives, and what is refused before it costs anything."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from replicator.pipeline.workers import frames
from replicator.pipeline.workers.frames import (
    ConnectionClosedError,
    FrameError,
    WorkFailedError,
    frame_of,
    receive,
    receive_answer,
    send,
    send_answer,
)

Ends = tuple[socket.socket, socket.socket]


@pytest.fixture
def ends() -> Iterator[Ends]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


@pytest.mark.parametrize("size", [0, 1, 100, 1_000_000])
def test_what_is_sent_arrives(ends: Ends, size: int) -> None:
    here, there = ends
    value = {"n": size, "data": np.arange(size, dtype=np.int64), "text": "é" * (size % 7)}
    both = (*frame_of(value), *frame_of(None))
    sending = threading.Thread(target=send, args=(here, both))
    sending.start()
    got = receive(there)
    assert receive(there) is None
    sending.join()
    assert (got["n"], got["text"]) == (size, value["text"])
    np.testing.assert_array_equal(got["data"], value["data"])


def test_large_arrays_are_sent_from_where_they_lie() -> None:
    data = np.zeros(1_000_000, np.uint8)
    _, piece = frame_of(data)
    data[5] = 7
    assert piece[5] == 7


def test_half_a_frame_is_a_lost_connection(ends: Ends) -> None:
    here, there = ends
    (piece,) = frame_of("what is cut")
    here.sendall(piece[:-3])
    here.close()
    with pytest.raises(ConnectionClosedError):
        receive(there)


def test_a_connection_that_is_closed(ends: Ends) -> None:
    here, there = ends
    here.close()
    with pytest.raises(ConnectionClosedError):
        receive(there)
    with pytest.raises(ConnectionClosedError):
        send(there, frame_of("into nothing"))


@pytest.mark.parametrize(
    "head",
    [
        struct.pack("!IQ", 0, 1 << 40),
        struct.pack("!IQQ", 1, 5, 1 << 62),
        struct.pack("!IQ", 1 << 31, 5),
    ],
)
def test_a_frame_that_says_it_is_huge_is_refused(ends: Ends, head: bytes) -> None:
    here, there = ends
    here.sendall(head)
    with pytest.raises(FrameError, match="announced"):
        receive(there)


def test_what_is_too_large_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "LIMIT", 1000)
    with pytest.raises(FrameError, match="more than a frame takes"):
        frame_of(np.zeros(1001, np.uint8))


@pytest.mark.parametrize("size", [0, 1, 1_000_000])
def test_an_answer_arrives_as_the_bytes_that_it_is(ends: Ends, size: int) -> None:
    here, there = ends
    sending = threading.Thread(target=send_answer, args=(here, b"x" * size))
    sending.start()
    assert receive_answer(there) == b"x" * size
    sending.join()
    send_answer(here, "äh".encode() + b"\xff", failed=True)
    with pytest.raises(WorkFailedError, match="äh"):
        receive_answer(there)


@pytest.mark.parametrize(
    "head",
    [struct.pack("!cQ", b"+", frames.ANSWER_LIMIT + 1), struct.pack("!cQ", b"\x80", 1)],
)
def test_an_answer_that_is_huge_or_of_no_known_kind_is_refused(ends: Ends, head: bytes) -> None:
    here, there = ends
    here.sendall(head)
    with pytest.raises(FrameError, match="announced"):
        receive_answer(there)


def test_a_pickle_is_no_answer(ends: Ends) -> None:
    here, there = ends
    send(here, frame_of(["what a driver sends"]))
    with pytest.raises(FrameError):
        receive_answer(there)
