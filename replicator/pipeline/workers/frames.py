"""Messages over a connection of the worker pool: objects to a task, bytes back from it.

An object is sent as a frame: its sizes, a pickle, and the object's large buffers. A frame is
``number of buffers (4 bytes), bytes of the pickle (8), bytes of each buffer (8 each)``, all
big-endian, then the pickle and the buffers. Buffers (of numpy arrays, for example) are sent out of
band (pickle protocol 5, PEP 574), without being copied. Only a task reads frames, from the driver
that it has authenticated: a pickle can run any code.

An answer is ``kind (1 byte), size (8, big-endian), bytes``. It is not a pickle, so a task under
foreign control can't run anything in the driver.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections.abc import Sequence
from typing import Any

Frame = tuple[bytes | memoryview, ...]
"""An object as it is sent over a connection, in pieces; it may be sent to several tasks."""

LIMIT = 1 << 32
"""The largest frame, in bytes: larger than any batch, smaller than most damaged lengths."""

MOST_BUFFERS = 1024

ANSWER_LIMIT = 1 << 30
"""The largest answer, in bytes: far more than the outcomes of thousands of targets need."""

_HEAD = struct.Struct("!IQ")
_ANSWER_HEAD = struct.Struct("!cQ")
_DONE, _FAILED = b"+", b"-"
_PIECE = 1 << 16
"""Frames smaller than this, in bytes, are sent as one piece."""


class ConnectionClosedError(Exception):
    """The other end has closed the connection, or the connection broke."""


class FrameError(Exception):
    """The received bytes are not a frame or an answer of ours."""


class WorkFailedError(Exception):
    """The work of a task raised an exception; the message is its traceback."""


def frame_of(value: object) -> Frame:
    """Return an object as a frame. Raises FrameError if it is too large."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.append)
    views = [buffer.raw() for buffer in buffers]
    sizes = [len(view) for view in views]
    if len(data) + sum(sizes) > LIMIT or len(views) > MOST_BUFFERS:
        raise FrameError(
            f"{len(data) + sum(sizes)} bytes in {len(views)} buffers are more than a frame takes"
        )
    head = _HEAD.pack(len(views), len(data)) + struct.pack(f"!{len(sizes)}Q", *sizes) + data
    if len(head) + sum(sizes) < _PIECE:
        return (b"".join([head, *views]),)
    return (head, *views)


def send(connection: socket.socket, frame: Frame) -> None:
    """Send a frame. Raises ConnectionClosedError."""
    try:
        for piece in frame:
            connection.sendall(piece)
    except OSError as error:
        raise ConnectionClosedError(f"nothing can be sent any more: {error}") from error


def receive(connection: socket.socket, limit: int = LIMIT) -> Any:
    """Receive the next object. Raises ConnectionClosedError, FrameError.

    ``limit``: maximum size, in bytes; a larger frame is refused before memory is allocated for it.
    """
    count, size = _HEAD.unpack(receive_exactly(connection, _HEAD.size))
    if count > MOST_BUFFERS or size > limit:
        raise FrameError(f"a frame of {count} buffers and {size} bytes is announced")
    sizes: Sequence[int] = struct.unpack(f"!{count}Q", receive_exactly(connection, 8 * count))
    if size + sum(sizes) > limit:
        raise FrameError(f"a frame of {size + sum(sizes)} bytes is announced")
    data = receive_exactly(connection, size)
    # Frames are only received from the driver: a task has verified its certificate, or is on its
    # host.
    buffers = [receive_exactly(connection, n) for n in sizes]
    return pickle.loads(data, buffers=buffers)  # nosec B301


def send_answer(connection: socket.socket, answer: bytes, *, failed: bool = False) -> None:
    """Send an answer, or if the work ``failed``, its traceback in UTF-8.

    Raises ConnectionClosedError.
    """
    send(connection, (_ANSWER_HEAD.pack(_FAILED if failed else _DONE, len(answer)), answer))


def receive_answer(connection: socket.socket) -> bytes:
    """Receive the next answer, of at most `ANSWER_LIMIT` bytes.

    Raises ConnectionClosedError, FrameError, WorkFailedError with the traceback.
    """
    kind, size = _ANSWER_HEAD.unpack(receive_exactly(connection, _ANSWER_HEAD.size))
    if kind not in (_DONE, _FAILED) or size > ANSWER_LIMIT:
        raise FrameError(f"an answer of kind {kind!r} and {size} bytes is announced")
    answer = bytes(receive_exactly(connection, size))
    if kind == _FAILED:
        raise WorkFailedError(answer.decode("utf-8", "replace"))
    return answer


def receive_exactly(connection: socket.socket, size: int) -> bytearray:
    """Receive this many bytes. Raises ConnectionClosedError if the connection ends before."""
    data = bytearray(size)
    view = memoryview(data)
    while view:
        try:
            count = connection.recv_into(view)
        except OSError as error:
            raise ConnectionClosedError(f"nothing comes any more: {error}") from error
        if not count:
            raise ConnectionClosedError("the other end has closed the connection")
        view = view[count:]
    return data
