"""What the client libraries raise while they log in, as errors that tell what it means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pymysql.err

from replicator.mysql.address import DatabaseAddress
from replicator.mysql.auth_plugins import refused_plugins
from replicator.mysql.errors import ErrorCode, error_code
from replicator.mysql.tls import TlsError, context_for, tls_error

_LISTENING = 1.0
"""Seconds for a server to look at a certificate, and to say that it does not take it."""

_BROKEN = (ErrorCode.CR_SERVER_LOST, ErrorCode.CR_SERVER_GONE_ERROR)


@contextmanager
def telling(address: DatabaseAddress) -> Iterator[None]:
    """Raise TlsError for what has to do with TLS; all else as the client library has it."""
    try:
        yield
    except (pymysql.err.MySQLError, OSError) as error:
        found = tls_error(address.tls, address.host, address.port, error)
        if found is None or found is error:
            raise
        raise found from error
    except RuntimeError as error:
        # PyMySQL lacks a package for this way of proving the password.
        raise pymysql.err.OperationalError(
            ErrorCode.CR_AUTH_PLUGIN_CANNOT_LOAD.value, str(error)
        ) from error


def may_refuse_certificate(address: DatabaseAddress, error: BaseException) -> bool:
    """Whether a connection that broke at the login may have done so for our certificate."""
    shown = address.tls is not None and bool(address.tls.cert)
    return shown and error_code(error) in _BROKEN


def look_at_refusal(address: DatabaseAddress) -> None:
    """Connect once more, to hear why the server breaks the connection. Blocks; for a thread.

    In TLS 1.3 a server looks at our certificate when we take the connection for made: what we send
    meets a closed one, and then nobody reads what it said (RFC 8446, section 4.4.2.4). Raises
    TlsError where it refuses the certificate.
    """
    context = context_for(address.tls, listening=_LISTENING)
    try:
        with telling(address):
            pymysql.connect(
                **address.options(),
                ssl=context,
                read_timeout=10,
                auth_plugin_map=refused_plugins(address),
            ).close()
    except TlsError:
        raise
    except (pymysql.err.MySQLError, OSError):
        return  # It broke for another reason: the caller's error tells.
