"""Checksums of lines are those of zlib."""

from __future__ import annotations

import zlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from replicator.rows.decoder.lines import Lines, lines_of


@given(
    lines=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), min_size=1)
)
def test_of_lines_of_any_length(lines: list[bytes]) -> None:
    for cut in (0, 2):
        whole = [line + b"\0" * cut for line in lines]
        assert lines_of(whole).checksums(cut).tolist() == [zlib.crc32(line) for line in lines]


def test_a_line_that_nobody_wants_has_no_bytes() -> None:
    lines = Lines(np.frombuffer(b"ab\ncd\n", np.uint8), np.array([0, 3, 3, 6]))
    assert lines.checksums().tolist() == [zlib.crc32(b"ab"), 0, zlib.crc32(b"cd")]
    assert lines.checksums(1).tolist() == [zlib.crc32(b"a"), 0, zlib.crc32(b"c")]
