"""Proves a password to a server, except in unsafe ways.

A server, or an impostor, chooses the way. Some ways are scrambles, from which a password can't be
recovered. In others, the server receives the password itself, and both client libraries would send
it to any server that requests it. In this module, one function decides when that is allowed
(`disclosure`), and these exchanges are implemented once for both libraries.

Sources: MySQL internals manual, "Authentication Method", "Caching_sha2_password",
"sha256_password", "Clear text client plugin"; MySQL manual, "--get-server-public-key",
"--server-public-key-path". Needs no more than PyMySQL: executors have no asyncio driver.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, cast

import pymysql.err
from pymysql import _auth
from pymysql.constants import CR
from pymysql.protocol import MysqlPacket

from replicator.mysql.connection.address import DatabaseAddress, ServerKey
from replicator.mysql.connection.tls import PemError
from replicator.mysql.errors import OddAnswerError

CACHING_SHA2 = "caching_sha2_password"
SHA256 = "sha256_password"
CLEAR = "mysql_clear_password"
_DIALOG = "dialog"
_OLD = "mysql_old_password"

_ASK_FOR_KEY = {CACHING_SHA2: b"\2", SHA256: b"\1"}
_KNOWS_PASSWORD, _WANTS_PASSWORD = b"\3", b"\4"

Exchange = Generator[bytes | None, MysqlPacket, MysqlPacket]
"""Yields the bytes to send, or None; is sent the packet that follows; returns the last packet."""


@dataclass(frozen=True, slots=True)
class Channel:
    """The protection of a connection over which a password would be sent.

    Attributes:
        verified: whether it has TLS with a server that ``ssl-ca`` has signed.
        local: whether the connection never leaves this host.
    """

    encrypted: bool
    verified: bool
    local: bool


class Disclosure(Enum):
    """The form in which a server receives a password that it can read."""

    CLEAR = auto()
    WITH_PINNED_KEY = auto()
    WITH_KEY_OF_SERVER = auto()


class PasswordWithheldError(pymysql.err.OperationalError):
    """A server requests the password in a readable form over an unsafe connection.

    Anyone could be the server, so the password was not sent.
    """


def disclosure(plugin: str, channel: Channel, key: ServerKey) -> Disclosure | None:
    """Return how a server that uses ``plugin`` receives the password; None if it must not.

    Over TLS, servers accept it only unencrypted, otherwise only encrypted with their RSA key.
    """
    if plugin == CLEAR:
        return Disclosure.CLEAR if channel.encrypted and channel.verified else None
    if plugin not in (CACHING_SHA2, SHA256):
        return None
    believed = channel.local or (key.any_key and not key.pinned)
    if channel.encrypted:
        return Disclosure.CLEAR if channel.verified or believed else None
    if key.pinned:
        return Disclosure.WITH_PINNED_KEY
    return Disclosure.WITH_KEY_OF_SERVER if believed else None


def is_local(peer: object) -> bool:
    """Return whether a socket's other end (``getpeername``) is on this host.

    This is so for loopback addresses and Unix sockets.
    """
    if not isinstance(peer, tuple):
        return isinstance(peer, str | bytes)
    address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    inner = getattr(address, "ipv4_mapped", None) or address
    return bool(inner.is_loopback)


def channel_of(address: DatabaseAddress, connected: socket.socket, *, encrypted: bool) -> Channel:
    """Return the protection of a connection to ``address``. Raises OSError if it is lost."""
    vouched = address.tls is not None and bool(address.tls.ca)
    return Channel(encrypted, encrypted and vouched, is_local(connected.getpeername()))


def first_plugin(offered: str) -> str:
    """Return the plugin to answer a greeting that offers ``offered``: one that reveals no password.

    If the account has another plugin, the server requests it.
    """
    return CACHING_SHA2 if offered in (SHA256, CLEAR, _OLD, _DIALOG) else offered


def prove(
    plugin: str, address: DatabaseAddress, channel: Channel, packet: MysqlPacket, salt: bytes
) -> Exchange:
    """Prove the password by one of `OWN_PLUGINS` when ``packet`` requests it.

    ``salt``: the salt of the greeting. Raises PasswordWithheldError, OddAnswerError, and the
    driver's error for unsupported plugins.
    """
    if plugin == _DIALOG:
        raise _not_taken_part_in(
            "it asks questions at the login (dialog, as PAM does); with TLS and security.ssl-ca it"
            " may ask for the password in the clear instead (pam_use_cleartext_plugin)"
        )
    if plugin == _OLD:
        raise _not_taken_part_in(
            "it asks for the password as servers before MySQL 4.1 did (mysql_old_password), which"
            " is as good as in the clear"
        )
    if packet.is_auth_switch_request():
        salt = bytes(cast(Any, packet).read_all()).removesuffix(b"\0")
    elif plugin == CACHING_SHA2:
        return (yield from _after_scramble(address, channel, packet, salt))
    if plugin == CLEAR:
        return (yield from _disclosed(plugin, address, channel, salt))
    if plugin == SHA256:
        if not address.password:
            return (yield b"\0" if channel.encrypted else b"")
        return (yield from _disclosed(plugin, address, channel, salt))
    if not address.password:
        return (yield b"")
    packet = yield _auth.scramble_caching_sha2(address.password_bytes, salt)
    return (yield from _after_scramble(address, channel, packet, salt))


def proved(packet: MysqlPacket) -> MysqlPacket:
    """Return the last packet of a proof. Raises OddAnswerError if the server requests more."""
    if packet.is_extra_auth_data():
        raise OddAnswerError.of("the server asks for more than the proof of a password")
    return packet


OWN_PLUGINS = (CACHING_SHA2, SHA256, CLEAR, _DIALOG, _OLD)
"""The plugins that `prove` supports."""


def _after_scramble(
    address: DatabaseAddress, channel: Channel, packet: MysqlPacket, salt: bytes
) -> Exchange:
    if not address.password:
        return (yield b"")
    status = _content(packet)[:2]
    if status == b"\1" + _KNOWS_PASSWORD:
        return (yield None)
    if status != b"\1" + _WANTS_PASSWORD:
        raise OddAnswerError.of(f"the server answers a scramble with {status!r}")
    return (yield from _disclosed(CACHING_SHA2, address, channel, salt))


def _disclosed(plugin: str, address: DatabaseAddress, channel: Channel, salt: bytes) -> Exchange:
    form = disclosure(plugin, channel, address.server_key)
    if form is None:
        raise _withheld(plugin, address, channel)
    if form is Disclosure.CLEAR:
        return (yield address.password_bytes + b"\0")
    if form is Disclosure.WITH_PINNED_KEY:
        return (yield _encrypted(address, salt, _pinned(address)))
    reply = yield _ASK_FOR_KEY[plugin]
    if not reply.is_extra_auth_data():
        raise OddAnswerError.of("the server does not send its key when it is asked for it")
    try:
        key = _rsa_key(_content(reply)[1:])
    except ValueError as error:
        raise OddAnswerError.of(f"the server sends a key that is none: {error}") from error
    return (yield _encrypted(address, salt, key))


def _content(packet: MysqlPacket) -> bytes:
    return bytes(cast(Any, packet).get_all_data())


def _pinned(address: DatabaseAddress) -> bytes:
    pinned = address.server_key.pinned
    try:
        return _rsa_key(pinned.read().encode())
    except ValueError as error:
        raise PemError(
            f"server-public-key-path ({pinned}) holds no RSA key of a server: {error}"
        ) from None


def _rsa_key(text: bytes) -> bytes:
    """Return the key in PEM, as received. Raises ValueError if it is not an RSA key."""
    try:
        # Executors need this module only for such accounts.
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as error:
        raise _not_taken_part_in(
            "it wants the password encrypted with its key, for which Python's package"
            " 'cryptography' is needed here"
        ) from error
    if not isinstance(load_pem_public_key(text), RSAPublicKey):
        raise ValueError("it is a key of another kind than RSA")
    return text


def _encrypted(address: DatabaseAddress, salt: bytes, key: bytes) -> bytes:
    if len(salt) != _auth.SCRAMBLE_LENGTH:
        raise OddAnswerError.of(f"the server sends a salt of {len(salt)} bytes")
    try:
        return bytes(_auth.sha2_rsa_encrypt(address.password_bytes, salt, key))
    except ValueError as error:
        raise OddAnswerError.of(
            f"the password can't be encrypted with the server's key: {error}"
        ) from error


def _withheld(plugin: str, address: DatabaseAddress, channel: Channel) -> PasswordWithheldError:
    if channel.encrypted:
        lacks = "security.ssl-ca does not vouch for the server, so anyone could be it"
    else:
        lacks = "there is no TLS, and any key that it sends could be anyone's"
    asked = "in the clear" if plugin == CLEAR else "in a form that it can read"
    return PasswordWithheldError(
        CR.CR_AUTH_PLUGIN_ERR,
        f"{address.host}:{address.port} asks for the password of {address.user} {asked}"
        f" ({plugin}), and {lacks}: the password was not sent",
    )


def _not_taken_part_in(text: str) -> pymysql.err.OperationalError:
    return pymysql.err.OperationalError(CR.CR_AUTH_PLUGIN_CANNOT_LOAD, text)


def plugins_of(address: DatabaseAddress) -> dict[str, Callable[[Any], Any]]:
    """Return PyMySQL's classes for these plugins, by name (its ``auth_plugin_map``)."""
    return {name: partial(_Plugin, address, name) for name in OWN_PLUGINS}


class _Plugin:
    def __init__(self, address: DatabaseAddress, name: str, connection: Any) -> None:
        self._address = address
        self._name = name
        self._connection = connection

    def authenticate(self, packet: MysqlPacket) -> MysqlPacket:
        """Prove the password; return the server's last packet. Raises the driver's error."""
        own = self._connection
        channel = channel_of(self._address, own._sock, encrypted=own._secure)
        exchange = prove(self._name, self._address, channel, packet, own.salt)
        try:
            sent = next(exchange)
            while True:
                if sent is not None:
                    own.write_packet(sent)
                sent = exchange.send(own._read_packet())
        except StopIteration as end:
            return proved(end.value)
