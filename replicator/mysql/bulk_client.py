"""PyMySQL's connection, made to tell a MariaDB that statements may come with many rows at once.

A MariaDB shows in its greeting what it can beyond MySQL, in bytes that MySQL leaves zero, and takes
the commands of that from clients that name it in theirs (MariaDB KB, "Connection": "Initial
Handshake Packet", "Handshake Response Packet"). Such a client leaves out the flag CLIENT_MYSQL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, cast

from pymysql.constants import CLIENT

from replicator.mysql.blocking_login import LoginConnection

BULK_OPERATIONS = 1 << 2
"""MARIADB_CLIENT_STMT_BULK_OPERATIONS, among the capabilities that only MariaDB has."""

_AFTER_VERSION = struct.Struct("<4x8xxHBHHB6xI")
"""Behind the version's name: number of the thread, first part of the salt, a zero; then the lower
capabilities, collation, status, upper capabilities, length of the salt, zeros, MariaDB's own."""

_RESPONSE = struct.Struct("<IIB19sI")
"""Capabilities, largest packet, collation, zeros, MariaDB's own capabilities."""


def offers_bulk(greeting: bytes) -> bool:
    """Whether a server's first packet says that it takes many rows with one statement."""
    at = greeting.find(b"\0", 1) + 1
    if not at or len(greeting) < at + _AFTER_VERSION.size:
        return False
    lower, *_, own = _AFTER_VERSION.unpack_from(greeting, at)
    return not lower & CLIENT.LONG_PASSWORD and bool(own & BULK_OPERATIONS)


def naming_bulk(response: bytes) -> bytes:
    """A client's answer to the greeting, or its request for TLS, which names this too."""
    flags, largest, collation, zeros, _ = _RESPONSE.unpack_from(response)
    head = _RESPONSE.pack(flags & ~CLIENT.LONG_PASSWORD, largest, collation, zeros, BULK_OPERATIONS)
    return head + response[_RESPONSE.size :]


class BulkConnection(LoginConnection):
    """A connection with `takes_bulk`: whether the server takes many rows with one statement."""

    takes_bulk = False
    _answers_greeting = False

    def _get_server_information(self) -> None:
        own = cast(Any, self)
        read: Callable[..., Any] = own._read_packet

        def noticed(*given: Any) -> Any:
            packet = read(*given)
            self.takes_bulk = offers_bulk(packet.get_all_data())
            return packet

        own._read_packet = noticed
        try:
            cast(Any, super())._get_server_information()
        finally:
            del own._read_packet

    def _request_authentication(self) -> None:
        self._answers_greeting = self.takes_bulk
        cast(Any, super())._request_authentication()

    def write_packet(self, payload: bytes) -> None:
        """Send a packet. Raises the driver's error."""
        if self._answers_greeting:
            # A request for TLS is the head of the answer, which follows.
            self._answers_greeting = len(payload) == _RESPONSE.size
            payload = naming_bulk(payload)
        cast(Any, super()).write_packet(payload)
