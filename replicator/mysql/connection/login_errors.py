"""Translates errors of the client libraries at a login into errors that name the cause."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql.err
from pymysql.constants import CR

from replicator.mysql.connection.address import CONNECT_TIMEOUT, DatabaseAddress
from replicator.mysql.connection.auth_plugins import PasswordWithheldError, plugins_of
from replicator.mysql.connection.blocking_client import LoginConnection
from replicator.mysql.connection.tls import TlsError, context_for, tls_error
from replicator.mysql.errors import error_code

_LISTENING = 1.0
"""Seconds in which a server checks a certificate and refuses it."""

_BROKEN = (CR.CR_SERVER_LOST, CR.CR_SERVER_GONE_ERROR)


@contextmanager
def raising_tls_errors(address: DatabaseAddress) -> Iterator[None]:
    """Raise TlsError for errors about TLS; raise all others unchanged."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        found = tls_error(address.tls, address.host, address.port, error)
        if found is None or found is error:
            raise
        raise found from error


def may_refuse_certificate(address: DatabaseAddress, error: BaseException) -> bool:
    """Return whether the server may have broken the connection because of our certificate."""
    shown = address.tls is not None and bool(address.tls.cert)
    return shown and error_code(error) in _BROKEN


def look_at_refusal(address: DatabaseAddress) -> None:
    """Connect once more, to find out why the server breaks the connection. Blocks; for a thread.

    In TLS 1.3, a server checks our certificate when the connection is already open for us: our next
    bytes reach a closed connection, and then nobody reads the server's reason (RFC 8446, section
    4.4.2.4). Raises TlsError if it refuses the certificate.
    """
    context = context_for(address.tls, listening=_LISTENING)
    try:
        with raising_tls_errors(address):
            LoginConnection(
                **address.options(),
                ssl=context,
                read_timeout=10,
                auth_plugin_map=plugins_of(address),
            ).close()
    except TlsError:
        raise
    except (pymysql.err.MySQLError, OSError):
        return  # It broke for another reason, which the caller's error names.


def provable_beside(address: DatabaseAddress, error: BaseException) -> bool:
    """Return whether a password withheld over TLS can be proved without it, by the server's key.

    That is so if the task file has that key, and does not require TLS.
    """
    withheld = isinstance(error, PasswordWithheldError)
    return withheld and address.tls is None and bool(address.server_key.pinned)


def prove_beside(address: DatabaseAddress) -> None:
    """Prove a password without TLS, so that the server knows it. Blocks; for a thread.

    Over TLS, a server accepts only the unencrypted password, even if the client has its RSA key.
    But once the server knows the password of an account with caching_sha2_password, a scramble is
    enough (MySQL manual, "Caching SHA-2 Pluggable Authentication"). Raises TlsError for an unusable
    key.
    """
    try:
        with raising_tls_errors(address):
            LoginConnection(
                **address.options(),
                ssl_disabled=True,
                read_timeout=CONNECT_TIMEOUT,
                auth_plugin_map=plugins_of(address),
            ).close()
    except TlsError:
        raise
    except (pymysql.err.MySQLError, OSError):
        return  # The next login decides: the server may know the password, despite the refusal.
