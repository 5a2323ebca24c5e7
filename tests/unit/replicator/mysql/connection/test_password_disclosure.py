"""Which servers get a password that they can read: one function decides, and here is its table."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from replicator.mysql.connection.address import ServerKey
from replicator.mysql.connection.auth_plugins import (
    CACHING_SHA2,
    CLEAR,
    SHA256,
    Channel,
    Disclosure,
    disclosure,
    first_plugin,
    is_local,
)
from replicator.mysql.connection.tls import Pem

NO_KEY = ServerKey()
ANY_KEY = ServerKey(any_key=True)
PINNED = ServerKey(Pem("/key.pem"))
BOTH = ServerKey(Pem("/key.pem"), any_key=True)

FAR = Channel(encrypted=False, verified=False, local=False)
FAR_TLS = Channel(encrypted=True, verified=False, local=False)
VOUCHED = Channel(encrypted=True, verified=True, local=False)
HERE = Channel(encrypted=False, verified=False, local=True)
HERE_TLS = Channel(encrypted=True, verified=False, local=True)

RSA = [
    (FAR, NO_KEY, None),
    (FAR, ANY_KEY, Disclosure.WITH_KEY_OF_SERVER),
    (FAR, PINNED, Disclosure.WITH_PINNED_KEY),
    (FAR, BOTH, Disclosure.WITH_PINNED_KEY),
    (FAR_TLS, NO_KEY, None),
    (FAR_TLS, ANY_KEY, Disclosure.CLEAR),
    # A server takes no key over TLS, and whoever holds the other end is not the owner of this one.
    (FAR_TLS, PINNED, None),
    (FAR_TLS, BOTH, None),
    (VOUCHED, NO_KEY, Disclosure.CLEAR),
    (VOUCHED, PINNED, Disclosure.CLEAR),
    (HERE, NO_KEY, Disclosure.WITH_KEY_OF_SERVER),
    (HERE, PINNED, Disclosure.WITH_PINNED_KEY),
    (HERE_TLS, NO_KEY, Disclosure.CLEAR),
]


@pytest.mark.parametrize("plugin", [CACHING_SHA2, SHA256])
@pytest.mark.parametrize(("channel", "key", "form"), RSA)
def test_a_server_gets_the_password_where_nobody_else_can_be_it_or_the_task_file_says_so(
    plugin: str, channel: Channel, key: ServerKey, form: Disclosure | None
) -> None:
    assert disclosure(plugin, channel, key) is form


@pytest.mark.parametrize("key", [NO_KEY, ANY_KEY, PINNED, BOTH])
def test_no_key_lets_a_server_have_the_password_in_the_clear_without_a_certificate(
    key: ServerKey,
) -> None:
    for channel in (FAR, FAR_TLS, HERE, HERE_TLS):
        assert disclosure(CLEAR, channel, key) is None
    assert disclosure(CLEAR, VOUCHED, key) is Disclosure.CLEAR


def test_a_plugin_that_nobody_knows_gets_nothing() -> None:
    for plugin in ("", "dialog", "mysql_old_password", "authentication_ldap_sasl_client"):
        assert disclosure(plugin, VOUCHED, BOTH) is None


@pytest.mark.parametrize(
    ("peer", "local"),
    [
        (("127.0.0.1", 3306), True),
        (("127.9.8.7", 3306), True),
        (("::1", 3306, 0, 0), True),
        (("::ffff:127.0.0.1", 3306, 0, 0), True),
        (("10.0.0.1", 3306), False),
        (("128.0.0.1", 3306), False),
        (("0.0.0.0", 3306), False),
        (("::ffff:10.0.0.1", 3306, 0, 0), False),
        (("fe80::1%eth0", 3306, 0, 2), False),
        (("2001:db8::1", 3306, 0, 0), False),
    ],
)
def test_only_loopback_addresses_are_on_this_host(peer: object, local: bool) -> None:
    assert is_local(peer) is local


def test_a_unix_socket_is_on_this_host(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        client.connect(path)
        assert is_local(client.getpeername())


@pytest.mark.parametrize("offered", [SHA256, CLEAR, "mysql_old_password", "dialog"])
def test_a_greeting_is_never_answered_with_a_password(offered: str) -> None:
    assert first_plugin(offered) == CACHING_SHA2


@pytest.mark.parametrize("offered", ["", "mysql_native_password", CACHING_SHA2, "parsec"])
def test_a_greeting_that_asks_for_a_scramble_gets_that(offered: str) -> None:
    assert first_plugin(offered) == offered
