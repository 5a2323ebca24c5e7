from __future__ import annotations

import struct
from io import BytesIO
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysqlreplication.gtid import GtidSet

from replicator.binlog.errors import BinlogError, UnsupportedEventError
from replicator.binlog.positions.gtid import (
    GtidStart,
    MariaDBGtid,
    MariaDBGtids,
    MySQLGtid,
    MySQLGtids,
)

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_mariadb_keeps_the_last_of_each_domain() -> None:
    gtids = MariaDBGtids(" 1-2-7,\n0-1-42")
    gtids.add(MariaDBGtid(0, 9, 43))
    assert str(gtids) == "0-9-43,1-2-7"
    assert str(MariaDBGtids("")) == ""


@pytest.mark.parametrize("text", ["0-1", "a-b-c", "0-1-2-3", f"{A}:1-5"])
def test_mariadb_refuses_other_texts(text: str) -> None:
    with pytest.raises(BinlogError, match="domain-server-sequence"):
        MariaDBGtids(text)


def test_mariadb_list_event() -> None:
    entries = [(0, 1, 5), (0, 2, 9), (3, 1, 1)]
    body = struct.pack("<I", len(entries) | 1 << 28)
    body += b"".join(struct.pack("<IIQ", *entry) for entry in entries)
    assert str(MariaDBGtids.from_list_event(body)) == "0-2-9,3-1-1"


def test_mysql_text_is_normalised() -> None:
    assert str(MySQLGtids(f"{B}:7, \n{A} : 5-9:1-3:4")) == f"{A}:1-9,{B}:7"


def test_mysql_adds_at_the_end_and_in_gaps() -> None:
    gtids = MySQLGtids(f"{A}:1-3:7-9")
    source = UUID(A).bytes
    for number in (10, 5, 4, 4):
        gtids.add(MySQLGtid(source, number))
    assert str(gtids) == f"{A}:1-5:7-10"
    gtids.add(MySQLGtid(source, 6))
    assert str(gtids) == f"{A}:1-10"


members = st.tuples(st.sampled_from([A, B]), st.sampled_from(["", "", "a", "b"]))


@given(st.lists(st.tuples(members, st.integers(1, 40)), max_size=60))
def test_mysql_set_is_that_of_its_members(members: list[tuple[tuple[str, str], int]]) -> None:
    gtids = MySQLGtids()
    for (source, tag), number in members:
        gtids.add(MySQLGtid(UUID(source).bytes, number, tag))
    again = MySQLGtids.decode(gtids.encode())
    assert str(again) == str(gtids) == str(MySQLGtids(str(gtids)))
    found = set()
    for part in filter(None, str(gtids).split(",")):
        source, *ranges = part.split(":")
        tag = ""
        for text in ranges:
            if text.isalpha():
                tag = text
                continue
            first, _, last = text.partition("-")
            found |= {((source, tag), n) for n in range(int(first), int(last or first) + 1)}
    assert found == set(members)


def test_the_binary_form_is_that_of_another_implementation() -> None:
    text = f"{A}:1-3:7-9:11,{B}:1"
    encoded = MySQLGtids(text).encode()
    assert encoded == GtidSet(text).encoded()
    assert str(GtidSet.decode(BytesIO(encoded))) == text


@pytest.mark.parametrize(
    "text",
    [
        "0-1-42",
        A,
        f"{A}:",
        f"{A}:x",
        f"{A}:5-2",
        f"{A}:0",
        f"{A}:1-2-3",
        f"{A}:-2",
        f"{A}:1-",
        f"{A}:1 2",
        f"{A}:tag",
        f"{A}:tag:",
        f"{A}:1-3:tag",
        f"{A}:tag:x-1",
        f"{A}:1tag:1",
        f"{A}:t-g:1",
        f"{A}:t\xe4g:1",
        f"{A}:{'t' * 33}:1",
    ],
)
def test_mysql_refuses_other_texts(text: str) -> None:
    with pytest.raises(BinlogError):
        MySQLGtids(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (f"{A}:tag:1-5", f"{A}:tag:1-5"),
        (f"{A}:1-3:5:Red:2:blue: 1-2 :3,\n{B}:_:1", f"{A}:1-3:5:blue:1-3:red:2,{B}:_:1"),
        (f"{A}:red:4,{A}:9,{A}:RED:5:blue:1:red:1", f"{A}:9:blue:1:red:1:4-5"),
        (f"{A}:{'z' * 32}:1", f"{A}:{'z' * 32}:1"),
    ],
)
def test_mysql_text_with_tags(text: str, normal: str) -> None:
    """What the server itself makes of these texts."""
    assert str(MySQLGtids(text)) == normal


def test_the_binary_form_with_tags_is_that_of_the_server() -> None:
    body = bytes.fromhex(
        "0103000000000001"
        "097a239ae67711f1ad6602fc00000001000100000000000000"
        "01000000000000000500000000000000"
        "097a239ae67711f1ad6602fc0000000108626c7565"
        "0100000000000000"
        "01000000000000000200000000000000"
        "fffffffffefdfcfb808182838485868708626c7565"
        "0100000000000000"
        "2c010000000000002d01000000000000"
    )
    gtids = MySQLGtids.decode(body)
    own, other = "097a239a-e677-11f1-ad66-02fc00000001", "ffffffff-fefd-fcfb-8081-828384858687"
    assert str(gtids) == f"{own}:1-4:blue:1,{other}:blue:300"
    assert gtids.encode() == body
    for end in range(len(body)):
        with pytest.raises(BinlogError, match="too short"):
            MySQLGtids.decode(body[:end])
    with pytest.raises(BinlogError, match="damaged"):
        MySQLGtids.decode(body.replace(b"blue", b"Blue"))


def test_a_format_that_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedEventError, match="format 2"):
        MySQLGtids.decode(b"\x02\x00\x00\x00\x00\x00\x00\x02")


@pytest.mark.parametrize(("gtid", "shown"), [("0-1-7", "0-1-7"), ("", "the first GTID")])
def test_people_read_the_set_that_a_stream_starts_behind(gtid: str, shown: str) -> None:
    assert f"after {GtidStart(gtid)}" == f"after {shown}"
