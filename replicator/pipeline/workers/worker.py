"""A long-lived Spark task that receives requests from the driver one after the other.

It connects to the driver, both authenticate, and then it answers each request with the result of
`Work`. It ends when the driver dismisses it or is gone. An error of the work is reported to the
driver and to Spark. Runs in executors, which may be on other machines.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from replicator.pipeline.spark.unix_socket import connect_privately
from replicator.pipeline.workers.frames import (
    ConnectionClosedError,
    receive,
    receive_exactly,
    send,
    send_answer,
)

Work = Callable[[Any], bytes]
"""The work of a task on a request; the result is sent back to the driver."""

SILENCE = (10, 5, 3)
"""Seconds of silence after which the other machine is probed, seconds between two probes, and the
maximum number of unanswered probes."""

ATTEMPTS = 5
"""Maximum attempts of a task to connect while the driver refuses it without reading. The driver
does so if many strangers connect at the same time."""

PAUSE = 0.2
"""Seconds between two attempts."""

SECONDS = 10.0
"""Maximum seconds for each message of the driver before a task is accepted. The driver's worker
listener limits the total time of a task (`replicator.pipeline.workers.worker_listener`)."""

SLOT = struct.Struct("!I")

ACCEPTED = b"+"
"""The driver's answer to a task that has authenticated itself."""


@dataclass(frozen=True, slots=True)
class LocalAddress:
    """The address of the driver for tasks on the same host: a Unix socket in a private folder."""

    folder: str
    name: str


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The address of the driver for tasks on other hosts, and its identity.

    ``certificate``: the driver's certificate for this job, in PEM.
    """

    host: str
    port: int
    secret: bytes = field(repr=False)
    certificate: str


DriverAddress = LocalAddress | ClusterAddress


class DriverUnreachableError(Exception):
    """This host can't connect to the driver."""


def serve(work: Work, point: DriverAddress, slot: int) -> Iterator[bytes]:
    """The function that Spark runs as the task of this slot."""
    with connect(point, slot) as connection:
        answer_requests(connection, work)
    yield from ()


def connect(point: DriverAddress, slot: int) -> socket.socket:
    """Return an authenticated connection to the driver.

    Raises DriverUnreachableError, ConnectionClosedError.
    """
    if isinstance(point, LocalAddress):
        return _connect_locally(point, slot)
    for _ in range(ATTEMPTS - 1):
        with contextlib.suppress(ConnectionClosedError):
            return _connect_over_network(point, slot)
        time.sleep(PAUSE)
    return _connect_over_network(point, slot)


def _connect_locally(point: LocalAddress, slot: int) -> socket.socket:
    try:
        connection = connect_privately(point.folder, point.name, SECONDS)
        connection.sendall(SLOT.pack(slot))
        connection.settimeout(None)
    except OSError as error:
        raise DriverUnreachableError(
            f"a task can't connect to the driver by its socket in {point.folder}: {error}"
        ) from error
    return connection


def _connect_over_network(point: ClusterAddress, slot: int) -> socket.socket:
    connection = connected(point)
    try:
        prove_membership(connection, point.secret, slot)
    except BaseException:
        connection.close()
        raise
    return connection


def connected(point: ClusterAddress) -> ssl.SSLSocket:
    """Return an encrypted connection to the driver with this certificate; SECONDS for each call.

    Raises DriverUnreachableError, and ConnectionClosedError if the driver refuses it without
    reading.
    """
    try:
        connection = socket.create_connection((point.host, point.port), SECONDS)
        set_options(connection)
    except OSError as error:
        raise _unreachable(point, error) from error
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Only one certificate is accepted, whatever the driver's host name is.
    context.check_hostname = False
    context.load_verify_locations(cadata=point.certificate)
    try:
        return context.wrap_socket(connection)
    except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError) as error:
        connection.close()
        raise ConnectionClosedError(f"the driver has closed the connection: {error}") from error
    except OSError as error:
        connection.close()
        raise _unreachable(point, error) from error


def prove_membership(connection: ssl.SSLSocket, secret: bytes, slot: int) -> None:
    """Send the job's secret to the driver, which has shown its certificate.

    Raises ConnectionClosedError if the driver refuses it.
    """
    send(connection, (SLOT.pack(slot) + secret,))
    receive_exactly(connection, len(ACCEPTED))
    connection.settimeout(None)


def _unreachable(point: ClusterAddress, error: OSError) -> DriverUnreachableError:
    return DriverUnreachableError(
        f"the executor on {socket.gethostname()} can't connect to the driver at"
        f" {point.host}:{point.port}: {error}"
    )


def set_options(connection: socket.socket) -> None:
    """Send written bytes at once, and detect that the other machine is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle, between, count = SILENCE
    # Not all systems let a program set these; their defaults take hours.
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
    """Answer the driver's requests until it closes the connection.

    Raises the errors of the work, and ConnectionClosedError if the network failed: Spark then runs
    the task again, if the driver still exists.
    """
    while True:
        try:
            request = receive(connection)
        except ConnectionClosedError as error:
            if isinstance(error.__cause__, ConnectionError | None):
                return
            raise
        try:
            answer = work(request)
        except BaseException:
            trace = traceback.format_exc().encode("utf-8", "backslashreplace")
            _tell(connection, trace, failed=True)
            raise
        _tell(connection, answer)


def _tell(connection: socket.socket, answer: bytes, *, failed: bool = False) -> None:
    # A driver that has closed the connection meanwhile does not need the answer.
    with contextlib.suppress(ConnectionClosedError):
        send_answer(connection, answer, failed=failed)
