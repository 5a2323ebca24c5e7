"""Where the tasks of a living job come in: a listening socket at the driver.

Whoever does not prove to know the job's secret is turned away (`replicator.pipeline.handshake`).
On a cluster connections are encrypted, whatever Spark's own settings are: rows and the target's
password go over them.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable
from datetime import UTC, datetime

from replicator.mysql.tls import load_pair
from replicator.pipeline.frames import ClosedError
from replicator.pipeline.handshake import SECONDS, StrangerError, meet_task, new_secret
from replicator.pipeline.living_task import MeetingPoint, set_options

AT_THE_DOOR = 64
"""How many may be proving themselves at a time: the others wait."""

PAUSE = 0.1
"""Seconds until the next attempt where none could be let in."""

_VALID = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
"""The clocks of executors may go wrong, and the certificate lives as long as its job."""


class Entrance:
    """Listens until it is closed; each task that has proved itself is handed on.

    ``bind`` and ``port`` (0: any free one) are what it listens at, ``host`` the name by which tasks
    reach it. ``entered`` is called with a task's slot and its connection, in a thread.
    Raises OSError where it can't listen there.
    """

    def __init__(
        self,
        host: str,
        bind: str,
        port: int,
        *,
        encrypted: bool,
        entered: Callable[[int, socket.socket], None],
    ) -> None:
        family = socket.getaddrinfo(bind, port, type=socket.SOCK_STREAM)[0][0]
        self._listening = socket.create_server((bind, port), family=family)
        self._context: ssl.SSLContext | None = None
        certificate = ""
        if encrypted:
            certificate, self._context = _own_certificate()
        self.point = MeetingPoint(host, self._listening.getsockname()[1], new_secret(), certificate)
        self._entered = entered
        self._door = threading.Semaphore(AT_THE_DOOR)
        self._closed = threading.Event()
        threading.Thread(target=self._receive, daemon=True, name="entrance").start()

    def close(self) -> None:
        """Let nobody in any more."""
        self._closed.set()
        with contextlib.suppress(OSError):
            # Closing alone would not end the waiting for the next one.
            self._listening.shutdown(socket.SHUT_RDWR)

    def _receive(self) -> None:
        with self._listening:
            while not self._closed.is_set():
                try:
                    connection, _ = self._listening.accept()
                except OSError:
                    # Whoever wanted to come has left again, or there are too many open files.
                    self._closed.wait(PAUSE)
                    continue
                self._door.acquire()
                threading.Thread(target=self._meet, args=(connection,), daemon=True).start()

    def _meet(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(SECONDS)
            set_options(connection)
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            slot = meet_task(connection, self.point.secret)
        except (OSError, ClosedError, StrangerError):
            # Of no concern to the job: a task that is turned away tells Spark why.
            connection.close()
        else:
            self._entered(slot, connection)
        finally:
            self._door.release()


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
