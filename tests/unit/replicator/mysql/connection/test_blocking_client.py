"""PyMySQL's connection as it is used here, before it is connected."""

from __future__ import annotations

import ssl
from typing import Any, cast

import pytest

from replicator.mysql.connection.blocking_client import LoginConnection
from replicator.mysql.connection.tls import context_for


def test_no_certificates_of_the_host_are_read_where_any_server_is_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reads(*_: object, **__: object) -> ssl.SSLContext:
        pytest.fail("the host's certificates are read for each connection")

    monkeypatch.setattr(ssl, "create_default_context", reads)
    connection = cast(Any, LoginConnection(defer_connect=True))
    # It encrypts with a server that offers TLS, and goes on with one that does not.
    assert (connection.ssl, connection._ssl_required) == (True, False)
    assert connection.ctx.verify_mode is ssl.CERT_NONE
    assert not connection.ctx.check_hostname


def test_a_context_of_ours_is_taken_and_asks_for_tls() -> None:
    context = context_for(None)
    connection = cast(Any, LoginConnection(defer_connect=True, ssl=context))
    assert connection.ctx is context
    assert connection._ssl_required
