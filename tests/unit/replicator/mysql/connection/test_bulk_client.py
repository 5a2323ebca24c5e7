"""Which servers take many rows at once, and how they are told that we know it."""

from __future__ import annotations

import struct

import pytest
from pymysql.constants import CLIENT

from replicator.mysql.connection.blocking_client import BULK_OPERATIONS, naming_bulk, offers_bulk


def greeting(version: str, *, mysql: bool, own: int) -> bytes:
    """A server's first packet (MySQL internals manual, "Protocol::HandshakeV10")."""
    flags = CLIENT.PROTOCOL_41 | CLIENT.SECURE_CONNECTION | (CLIENT.LONG_PASSWORD if mysql else 0)
    return (
        b"\x0a" + version.encode() + b"\0" + (42).to_bytes(4, "little") + b"saltsalt\0"
        + struct.pack("<HBHHB", flags & 0xFFFF, 45, 2, flags >> 16, 21)
        + b"\0" * 6 + struct.pack("<I", own) + b"saltsaltsalt\0mysql_native_password\0"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("first", "offers"),
    [
        (greeting("5.5.5-10.11.6-MariaDB", mysql=False, own=0x1D), True),
        (greeting("5.5.5-10.1.48-MariaDB", mysql=False, own=0x01), False),
        (greeting("9.7.4", mysql=True, own=0), False),
        # These bytes are of no meaning there.
        (greeting("8.0.11-TiDB-v7.5.0", mysql=True, own=0xFF), False),
        (b"\x0a5.5.5-10.11.6-MariaDB\0\1\0\0\0salt", False),
        (b"\xff\x10\x04Too many connections", False),
    ],
    ids=["mariadb", "old-mariadb", "mysql", "tidb", "cut-off", "refused"],
)
def test_a_greeting_tells_whether_bulks_are_taken(first: bytes, offers: bool) -> None:
    assert offers_bulk(first) is offers


def test_the_answer_names_them_and_is_otherwise_the_same() -> None:
    flags = CLIENT.LONG_PASSWORD | CLIENT.PROTOCOL_41 | CLIENT.LOCAL_FILES
    answer = struct.pack("<IIB23s", flags, 1 << 24, 45, b"") + b"root\0\x14scramble"
    named = naming_bulk(answer)
    assert struct.unpack_from("<I", named)[0] == flags & ~CLIENT.LONG_PASSWORD
    assert struct.unpack_from("<I", named, 28)[0] == BULK_OPERATIONS
    assert named[4:28] + named[32:] == answer[4:28] + answer[32:]
