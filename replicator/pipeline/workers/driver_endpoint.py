"""Where the tasks of a worker pool come in: a listening socket at the driver.

On the driver's own host that is a Unix socket which no other user can reach. On a cluster it is a
TCP port, and connections are encrypted whatever Spark's own settings are, since rows and the
target's password go over them: the driver proves by its certificate, made for the job, that it is
the driver, and a task by the job's secret that it is one of its tasks.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from replicator.mysql.connection.tls import load_pair
from replicator.pipeline.spark.unix_socket import check_peer, listen_privately
from replicator.pipeline.workers.frames import receive_exactly, send
from replicator.pipeline.workers.worker import (
    ACCEPTED,
    SLOT,
    ClusterAddress,
    DriverAddress,
    LocalAddress,
    set_options,
)
from replicator.pipeline.workers.worker_listener import BACKLOG, AuthenticationError, WorkerListener

SECRET_SIZE = 32

_VALID = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The clocks of executors may go wrong, and the certificate lives as long as its job."""

Entered = Callable[[int, socket.socket], None]
"""Called with a task's slot and its connection, in a thread, when the task has proved itself."""


class DriverEndpoint:
    """Listens until it is closed; tasks come in by its ``point``."""

    def __init__(self, point: DriverAddress, listener: WorkerListener) -> None:
        self.point = point
        self._listener = listener

    def close(self) -> None:
        """Let nobody in any more."""
        self._listener.close()
        if isinstance(self.point, LocalAddress):
            Path(self.point.folder, self.point.name).unlink(missing_ok=True)


def local_endpoint(folder: str, entered: Entered) -> DriverEndpoint:
    """An endpoint for tasks on this host, in a folder that is this user's alone. Raises OSError."""
    name = f"pool-{secrets.token_hex(8)}"
    listening = listen_privately(folder, name, BACKLOG)
    return DriverEndpoint(
        LocalAddress(folder, name), WorkerListener(listening, _accept_local, entered)
    )


def cluster_endpoint(host: str, bind: str, port: int, entered: Entered) -> DriverEndpoint:
    """An endpoint for tasks on other hosts.

    ``bind`` and ``port`` (0: any free one) are what it listens at, ``host`` the name by which tasks
    reach it. Raises OSError where it can't listen there.
    """
    family = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0][0]
    certificate, context = _own_certificate()
    secret = secrets.token_bytes(SECRET_SIZE)
    listening = socket.create_server((bind, port), family=family, backlog=BACKLOG)
    point = ClusterAddress(host, listening.getsockname()[1], secret, certificate)
    return DriverEndpoint(
        point, WorkerListener(listening, partial(_accept_remote, context, secret), entered)
    )


def _accept_local(connection: socket.socket) -> tuple[int, socket.socket]:
    check_peer(connection)
    (slot,) = SLOT.unpack(receive_exactly(connection, SLOT.size))
    return slot, connection


def _accept_remote(
    context: ssl.SSLContext, secret: bytes, connection: socket.socket
) -> tuple[int, socket.socket]:
    set_options(connection)
    encrypted = context.wrap_socket(connection, server_side=True)
    try:
        # Of a fixed size, whoever it is.
        told = bytes(receive_exactly(encrypted, SLOT.size + SECRET_SIZE))
        if not hmac.compare_digest(told[SLOT.size :], secret):
            raise AuthenticationError(
                "a client that does not know the secret of the job has connected"
            )
        send(encrypted, (ACCEPTED,))
        (slot,) = SLOT.unpack_from(told)
        return slot, encrypted
    except BaseException:
        encrypted.close()
        raise


def _own_certificate() -> tuple[str, ssl.SSLContext]:
    """A certificate that nobody else has, and what proves it to be ours."""
    # Here, since executors import modules that lead to this one, and may lack the package.
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "replicator")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_VALID[0])
        .not_valid_after(_VALID[1])
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    shown = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, (private + shown).decode())
    return shown.decode(), context
