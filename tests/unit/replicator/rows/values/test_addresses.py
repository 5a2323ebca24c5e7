"""MariaDB's addresses as it shows them."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.rows.values.value_readers import inet4_text, inet6_text, uuid_text


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("0:0:0:0:0:0:0:0", "::"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("0:0:0:0:0:0:102:304", "::1.2.3.4"),
        ("0:0:0:0:0:ffff:102:304", "::ffff:1.2.3.4"),
        ("1:1:ab:ab:0:ffff:ab:0", "1:1:ab:ab::ffff:ab:0"),
        ("1:2001:1:2001:ffff:1:ab:0", "1:2001:1:2001:ffff:1:ab::"),
        ("0:1:0:0:1:0:0:0", "0:1:0:0:1::"),
        ("1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"),
    ],
)
def test_an_address_is_shown_as_mariadb_does(words: str, text: str) -> None:
    value = b"".join(int(word, 16).to_bytes(2, "big") for word in words.split(":"))
    assert inet6_text(value.rstrip(b"\0")) == text.encode()


@given(st.binary(min_size=16, max_size=16))
def test_the_text_means_the_same_address(value: bytes) -> None:
    assert ipaddress.IPv6Address(inet6_text(value).decode()).packed == value


def test_missing_zeros_are_filled_up() -> None:
    assert inet4_text(b"\x01\x02") == b"1.2.0.0"
    assert uuid_text(b"\x12\x3e") == b"123e0000-0000-0000-0000-000000000000"
