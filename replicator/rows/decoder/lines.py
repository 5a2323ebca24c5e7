"""Many row lines in one buffer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from replicator.kernels.compiled import (
    CHECKSUMS,
    INPUT,
    INTEGER,
    INTEGERS,
    NOTHING,
    TRUTHS,
    Bytes,
    Integers,
    Truths,
    compiled,
)
from replicator.kernels.crc32 import TABLES, Checksums, crc32
from replicator.kernels.gather import gather_pieces


@dataclass(frozen=True, slots=True)
class Lines(Sequence[bytes]):
    """Lines as a server loads them, each with its newline, in ``text``.

    ``starts`` has the start of each line, then the end of the last one. An unwanted line has no
    bytes, not even a newline; such lines are dropped before all lines are requested.
    """

    text: Bytes
    starts: Integers

    @property
    def block(self) -> bytes | memoryview:
        """All lines with their newlines."""
        return self.text[self.starts[0] : self.starts[-1]].data

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        """A line, or some, without the newline."""
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        place = range(len(self))[index]
        return self.text[self.starts[place] : self.starts[place + 1] - 1].tobytes()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.split())

    def split(self) -> list[bytes]:
        """Return all lines, without newlines; newlines inside lines are escaped."""
        return self.text[self.starts[0] : self.starts[-1]].tobytes().split(b"\n")[:-1]

    def take(self, indexes: Integers) -> Lines:
        """Return some of the lines, in this order."""
        if len(indexes) == len(self) and np.array_equal(indexes, np.arange(len(self))):
            return self
        return Lines(*gather_pieces(self.text, self.starts[indexes], self.starts[indexes + 1]))

    def differ(self, these: Integers, those: Integers) -> Truths:
        """Return for each pair of indexes whether the two lines differ."""
        found = np.empty(len(these), np.bool_)
        _differ(self.text, self.starts, these, those, found)
        return found

    def checksums(self, cut: int = 0) -> Checksums:
        """Return the CRC32 of each line, without its newline and ``cut`` bytes before that."""
        found = np.empty(len(self), np.uint32)
        _checksums(self.text, self.starts, cut, TABLES, found)
        return found


def lines_of(lines: Sequence[bytes]) -> Lines:
    """Make `Lines` from lines without newlines."""
    starts = np.zeros(len(lines) + 1, np.int64)
    np.cumsum([len(line) + 1 for line in lines], out=starts[1:])
    text = b"".join(line + b"\n" for line in lines)
    return Lines(np.frombuffer(text, np.uint8), starts)


def joined(parts: Sequence[Lines]) -> Lines:
    """Return the lines of all parts in sequence."""
    if len(parts) == 1:
        return parts[0]
    starts, at = [np.zeros(1, np.int64)], 0
    for part in parts:
        starts.append(part.starts[1:] - part.starts[0] + at)
        at += int(part.starts[-1] - part.starts[0])
    text = [np.frombuffer(part.block, np.uint8) for part in parts]
    return Lines(np.concatenate(text), np.concatenate(starts))


def block_of(lines: Sequence[bytes]) -> bytes | memoryview:
    """Return lines with their newlines, for a load."""
    return lines.block if isinstance(lines, Lines) else b"\n".join(lines) + b"\n"


def bytes_of(lines: Sequence[bytes]) -> int:
    """Return the size of all lines together."""
    if isinstance(lines, Lines):
        return int(lines.starts[-1] - lines.starts[0])
    return sum(map(len, lines))


@compiled(NOTHING, INPUT, INTEGERS, INTEGERS, INTEGERS, TRUTHS)
def _differ(text: Bytes, starts: Integers, these: Integers, those: Integers, out: Truths) -> None:
    for pair in range(these.shape[0]):
        first, second = starts[these[pair]], starts[those[pair]]
        size = starts[these[pair] + 1] - first
        other = size != starts[those[pair] + 1] - second
        if not other:
            for index in range(size):
                if text[first + index] != text[second + index]:
                    other = True
                    break
        out[pair] = other


@compiled(NOTHING, INPUT, INTEGERS, INTEGER, CHECKSUMS, CHECKSUMS)
def _checksums(text: Bytes, starts: Integers, cut: int, tables: Checksums, out: Checksums) -> None:
    for line in range(out.shape[0]):
        # An unwanted line has no bytes, so its end would be before its beginning.
        end = max(starts[line], starts[line + 1] - 1 - cut)
        out[line] = crc32(text, starts[line], end, tables)
