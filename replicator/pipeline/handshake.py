"""Driver and task prove to one another that they know the secret of their job, before all else.

The secret is drawn for each job and sealed for its tasks (`replicator.pipeline.sealed`); it never
goes over the connection. Each side answers a number that the other has just drawn with its HMAC
(RFC 2104, SHA-256), over both numbers and the side's name, so that no answer serves twice, nor for
the other side. Until then only messages of fixed size are read.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct

from replicator.pipeline.doorkeeper import StrangerError
from replicator.pipeline.frames import ClosedError, receive_exactly, send

SECONDS = 10.0
"""How long the driver may take over each message. What a task may take in all, the driver's
doorkeeper knows (`replicator.pipeline.doorkeeper`)."""

SECRET_SIZE = 32

_GREETING = b"replicator living job 1\n"
_NUMBER_SIZE = 32
_SLOT = struct.Struct("!I")
_DIGEST_SIZE = hashlib.sha256().digest_size


def new_secret() -> bytes:
    """A secret for one job."""
    return secrets.token_bytes(SECRET_SIZE)


def meet_task(connection: socket.socket, secret: bytes) -> int:
    """At the driver: have a task prove itself, and prove to it who we are. Its slot.

    Raises StrangerError, and ClosedError where it falls silent.
    """
    ours = secrets.token_bytes(_NUMBER_SIZE)
    send(connection, (_GREETING + ours,))
    answer = bytes(receive_exactly(connection, _SLOT.size + _NUMBER_SIZE + _DIGEST_SIZE))
    head, proof = answer[:-_DIGEST_SIZE], answer[-_DIGEST_SIZE:]
    if not hmac.compare_digest(proof, _proof(secret, b"task", ours, head)):
        raise StrangerError("somebody who does not know the secret of the job has connected")
    send(connection, (_proof(secret, b"driver", ours, head),))
    (slot,) = _SLOT.unpack_from(head)
    return int(slot)


def meet_driver(connection: socket.socket, secret: bytes, slot: int) -> None:
    """In a task: prove ourselves, and have the driver prove that it is ours.

    Raises StrangerError, and ClosedError where it falls silent.
    """
    try:
        connection.settimeout(SECONDS)
    except OSError as error:
        raise ClosedError(str(error)) from error
    greeting = bytes(receive_exactly(connection, len(_GREETING) + _NUMBER_SIZE))
    if not greeting.startswith(_GREETING):
        raise StrangerError("what answers at the driver's address is not the driver")
    its = greeting[len(_GREETING) :]
    head = _SLOT.pack(slot) + secrets.token_bytes(_NUMBER_SIZE)
    send(connection, (head + _proof(secret, b"task", its, head),))
    proof = bytes(receive_exactly(connection, _DIGEST_SIZE))
    if not hmac.compare_digest(proof, _proof(secret, b"driver", its, head)):
        raise StrangerError("what answers at the driver's address does not know the job's secret")
    connection.settimeout(None)


def _proof(secret: bytes, side: bytes, number: bytes, head: bytes) -> bytes:
    return hmac.digest(secret, side + b"\0" + number + head, "sha256")
