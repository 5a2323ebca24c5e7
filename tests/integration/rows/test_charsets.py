"""Our codecs against the server's own conversion."""

from __future__ import annotations

import pytest

from replicator.rows.values.charsets import codec, transcoder
from replicator.sandbox.server import DatabaseServer


@pytest.mark.parametrize(
    "charset",
    [
        "ascii",
        "cp1250",
        "cp1251",
        "cp1256",
        "cp1257",
        "cp850",
        "cp852",
        "cp866",
        "greek",
        "hebrew",
        "hp8",
        "koi8r",
        "koi8u",
        "latin1",
        "latin2",
        "latin5",
        "latin7",
        "macce",
        "macroman",
        "tis620",
    ],
)
def test_single_byte_charsets(charset: str, mariadb_source: DatabaseServer) -> None:
    """Every byte that has a character to the server has the same one to us."""
    found = mariadb_source.execute(
        "SELECT seq, HEX(CONVERT(CONVERT(UNHEX(LPAD(HEX(seq), 2, '0')) USING "
        f"{charset}) USING utf32)) FROM mysql.seq_0_to_255"
    )
    assert len(found) == 256
    convert = transcoder(codec(charset), codec("utf32"))
    for byte, text in found:
        if text not in ("0000003F", "0000FFFD") or byte == ord("?"):
            assert convert(bytes([byte])).hex().upper() == text, hex(byte)


@pytest.mark.parametrize("charset", ["gbk", "gb2312", "euckr", "cp932"])
def test_double_byte_charsets(charset: str, mariadb_source: DatabaseServer) -> None:
    found = mariadb_source.execute(
        f"SELECT seq, HEX(CONVERT(CONVERT(UNHEX(HEX(seq)) USING {charset}) USING utf32))"
        " FROM mysql.seq_33024_to_65535"
        f" WHERE HEX(CONVERT(UNHEX(HEX(seq)) USING {charset})) = HEX(seq)"
    )
    convert = transcoder(codec(charset), codec("utf32"))
    known = [(code, text) for code, text in found if text and "0000003F" not in text]
    assert len(known) > 6000
    for code, text in known:
        assert convert(code.to_bytes(2, "big")).hex().upper() == text, hex(code)
