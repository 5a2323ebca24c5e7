from __future__ import annotations

import struct
import zlib

import pytest

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.query_event import (
    TransactionControl,
    parse_query_event,
    sql_offset,
    transaction_control,
)


def body(sql: bytes, *, schema: bytes = b"s", variables: bytes = b"") -> bytes:
    head = struct.pack("<IIBHH", 5, 0, len(schema), 0, len(variables))
    return head + variables + schema + b"\x00" + sql


SQL_MODE = b"\x01" + (1 << 21).to_bytes(8, "little")
TIME_ZONE = b"\x05\x06+03:00"
LATIN1 = b"\x04" + struct.pack("<HHH", 8, 8, 33)


def test_settings_of_the_session() -> None:
    variables = (
        b"\x00"
        + bytes(4)
        + SQL_MODE
        + b"\x06\x03std"
        + b"\x03"
        + bytes(4)
        + LATIN1
        + TIME_ZONE
        + b"\x07"
        + bytes(2)
        + b"\x08"
        + bytes(2)
        + b"\x0b\x01u\x01h"
        + b"\x0c\x02s1\x00s2\x00"
        + b"\x0d"
        + bytes(3)
        + b"\x10\x01"
        + b"\x80"
        + bytes(3)
    )
    query = parse_query_event(body("ALTER é".encode("cp1252"), variables=variables))
    assert (query.schema, query.sql) == ("s", "ALTER é")
    assert query.context.sql_mode == 1 << 21
    assert query.context.time_zone == "+03:00"


def test_settings_after_others_of_varying_length() -> None:
    before = b"\x02\x03std\x00" + b"\x0b\x04user\x04host" + b"\x0c\xfe" + b"\x81" + bytes(8)
    query = parse_query_event(body(b"x", variables=before + TIME_ZONE))
    assert query.context.time_zone == "+03:00"


def test_collations_of_charsets_hide_nothing() -> None:
    """MariaDB 11 writes them before the charsets of the session."""
    collations = b"\x83\x02" + struct.pack("<HHHH", 33, 2048, 45, 2304)
    query = parse_query_event(
        body("ALTER é".encode("cp1252"), variables=SQL_MODE + collations + LATIN1 + TIME_ZONE)
    )
    assert query.sql == "ALTER é"
    assert query.context.collation_ids == (8, 8, 33)
    assert query.context.time_zone == "+03:00"
    assert query.context.charset_collation_ids == (2048, 2304)


@pytest.mark.parametrize("first_half", [0, 5, 255, 256, 257, 5734, 1 << 40])
def test_the_halves_of_an_alter_hide_nothing(first_half: int) -> None:
    """Where MariaDB writes it in two, the second one names the number of the first one's GTID."""
    settings = b"\0\0\0\0\1" + SQL_MODE
    collations = b"\x83\x01" + struct.pack("<HH", 45, 46)
    plain = parse_query_event(body(b"x", variables=settings + collations)).context
    assert plain.charset_collation_ids == (46,)
    second = b"\x82\x04" + struct.pack("<Q", first_half)
    for half in (b"\x82\x02", second, b"\x82\x08" + second[2:]):
        found = parse_query_event(body(b"x", variables=settings + half + collations)).context
        assert found == plain


def test_the_collation_that_utf8mb4_has_in_a_session() -> None:
    query = parse_query_event(body(b"x", variables=b"\x12" + struct.pack("<H", 45) + TIME_ZONE))
    assert query.context.charset_collation_ids == (45,)
    assert query.context.time_zone == "+03:00"
    assert query.context.unread_code is None


@pytest.mark.parametrize(
    ("variables", "explicit"),
    [(b"\x00" + bytes(4), None), (b"\x00\x00\x00\x00\x05", True), (b"\x10\x00", False),
     (b"\x10\x01", True)],
)  # fmt: skip
def test_the_defaults_of_timestamps(variables: bytes, explicit: bool | None) -> None:
    query = parse_query_event(body(b"x", variables=variables))
    assert query.context.explicit_timestamp_defaults is explicit


@pytest.mark.parametrize("code", [b"\x0d", b"\x80"])
def test_the_microseconds_of_the_moment(code: bytes) -> None:
    query = parse_query_event(body(b"x", variables=code + (123456).to_bytes(3, "little")))
    assert query.context.microseconds == 123456


def test_an_unknown_setting_hides_only_what_follows_it() -> None:
    query = parse_query_event(body(b"DROP TABLE t", variables=SQL_MODE + b"\x7f123" + TIME_ZONE))
    assert query.sql == "DROP TABLE t"
    assert query.context.sql_mode == 1 << 21
    assert query.context.time_zone is None
    # That there was something is told: a schema change may need what follows.
    assert query.context.unread_code == 0x7F


def test_the_error_that_a_statement_ended_with() -> None:
    event = bytearray(body(b"DROP TABLE t"))
    assert parse_query_event(bytes(event)).error == 0
    struct.pack_into("<H", event, 9, 1051)
    assert parse_query_event(bytes(event)).error == 1051


def test_bytes_that_are_no_text_are_kept() -> None:
    query = parse_query_event(body(b"x'\xff\x80'"))
    assert query.sql.encode("utf-8", "surrogateescape") == b"x'\xff\x80'"


def test_offset_of_the_statement() -> None:
    event = body(b"BEGIN", schema=b"abc", variables=SQL_MODE)
    assert event[sql_offset(event) :] == b"BEGIN"


def test_a_compressed_statement_is_expanded() -> None:
    sql = b"ALTER TABLE t ADD c INT" * 30
    packed = b"\x82" + len(sql).to_bytes(2, "big") + zlib.compress(sql)
    assert parse_query_event(body(packed), compressed=True).sql == sql.decode()
    with pytest.raises(BinlogError):
        parse_query_event(body(packed[:-5]), compressed=True)


@pytest.mark.parametrize("data", [b"", b"\x00" * 5, body(b"x", variables=b"\x05\x20")[:14]])
def test_a_damaged_query_event_is_refused(data: bytes) -> None:
    with pytest.raises(BinlogError, match="query event"):
        parse_query_event(data)


@pytest.mark.parametrize(
    ("sql", "control"),
    [
        ("BEGIN", TransactionControl.BEGIN),
        ("start transaction", TransactionControl.BEGIN),
        ("/* app */ commit", TransactionControl.COMMIT),
        ("-- why\nROLLBACK", TransactionControl.ROLLBACK),
        ("ROLLBACK TO `s`", TransactionControl.ROLLBACK_TO),
        ("rollback work to savepoint s", TransactionControl.ROLLBACK_TO),
        ("SAVEPOINT `s`", TransactionControl.SAVEPOINT),
        ("XA END X'01'", TransactionControl.XA_END),
        ("XA PREPARE X'01'", TransactionControl.XA_OUTCOME),
        ("CREATE TABLE `begin` (a INT)", None),
        ("/*!40000 COMMIT */", None),
        ("COMMITTED", None),
        ("BEGIN NOT ATOMIC DROP TABLE t; END", None),
    ],
)
def test_transaction_control(sql: str, control: TransactionControl | None) -> None:
    assert transaction_control(sql) is control
