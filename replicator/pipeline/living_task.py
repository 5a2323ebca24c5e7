"""A task of Spark that stays: it fetches requests from the driver one after the other.

It connects to the driver, each proves itself to the other, and from then on it answers: whatever
`Work` makes of a request. It ends when the driver lets it go or is gone. What goes wrong in the
work is told to the driver and to Spark. Runs in executors, which may be on other machines.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replicator.pipeline.frames import ClosedError, frame_of, receive, send
from replicator.pipeline.handshake import SECONDS, meet_driver

Work = Callable[[Any], Any]
"""What a task does with a request; the answer goes back to the driver."""

SILENCE = (10, 5, 3)
"""Seconds of silence after which the other machine is asked whether it is still there, seconds
between two such questions, and how many may stay without an answer."""


@dataclass(frozen=True, slots=True)
class MeetingPoint:
    """Where the tasks of a living job find their driver, and how they know it.

    ``certificate`` is the driver's, in PEM, made for this job; without it (on the driver's own
    host) the connection is not encrypted.
    """

    host: str
    port: int
    secret: bytes = field(repr=False)
    certificate: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The answer of a task whose work raised an exception: how it got there."""

    trace: str


class DriverUnreachableError(Exception):
    """This host can't connect to the driver."""


def stay(point: MeetingPoint, work: Work, slot: int) -> Iterator[Any]:
    """What Spark runs, as the task of this slot."""
    connection = connected(point)
    with connection:
        meet_driver(connection, point.secret, slot)
        answer_requests(connection, work)
    yield from ()


def connected(point: MeetingPoint) -> socket.socket:
    """A connection to the driver. Raises DriverUnreachableError."""
    try:
        connection = socket.create_connection((point.host, point.port), SECONDS)
        set_options(connection)
        if not point.certificate:
            return connection
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # There is one certificate that is right, whatever name the driver is reached by.
        context.check_hostname = False
        context.load_verify_locations(cadata=point.certificate)
        return context.wrap_socket(connection)
    except OSError as error:
        raise DriverUnreachableError(
            f"the executor on {socket.gethostname()} can't connect to the driver at"
            f" {point.host}:{point.port}: {error}"
        ) from error


def set_options(connection: socket.socket) -> None:
    """Send at once what is written, and notice when the other machine is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle, between, count = SILENCE
    # Not all systems let a program say so; with theirs it takes hours.
    for name, value in (
        ("TCP_KEEPIDLE", idle),
        ("TCP_KEEPINTVL", between),
        ("TCP_KEEPCNT", count),
        ("TCP_USER_TIMEOUT", 1000 * (idle + between * count)),
    ):
        option = getattr(socket, name, None)
        if option is not None:
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def answer_requests(connection: socket.socket, work: Work) -> None:
    """Answer what the driver asks until it lets go.

    Raises what the work raises, and ClosedError where the network failed: Spark then runs the task
    anew, if there still is a driver.
    """
    while True:
        try:
            request = receive(connection)
        except ClosedError as error:
            if isinstance(error.__cause__, ConnectionError | None):
                return
            raise
        try:
            answer = work(request)
        except BaseException:
            _tell(connection, Failed(traceback.format_exc()))
            raise
        _tell(connection, answer)


def _tell(connection: socket.socket, answer: object) -> None:
    # A driver that has let go while this task worked knows what to do without the answer.
    with contextlib.suppress(ClosedError):
        send(connection, frame_of(answer))
