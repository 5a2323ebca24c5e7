"""How a shard is named on the command line."""

from __future__ import annotations

import pytest

from actors.control.retire_request import parse_shard


@pytest.mark.parametrize(
    ("text", "shard"),
    [
        ("a:s.t", ("a", "s", "t")),
        ("a:`s.1`.t", ("a", "s.1", "t")),
        ("`a:1`:s.`t``x`", ("a:1", "s", "t`x")),
        ("a:s.t:u", ("a", "s", "t:u")),
    ],
)
def test_a_shard_is_a_source_and_a_table(text: str, shard: tuple[str, str, str]) -> None:
    assert parse_shard(text) == shard


@pytest.mark.parametrize("text", ["", "a", "a:s", "s.t", "a:s.", "a:`s.t", ":s.t"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no shard"):
        parse_shard(text)
