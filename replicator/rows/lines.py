"""Many row lines in one run of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from replicator.rows.compiled import Bytes, Integers


@dataclass(frozen=True, slots=True)
class Lines(Sequence[bytes]):
    """Lines as a server loads them, each with its newline, in ``text``.

    ``starts`` has the place of each line, and behind them the end of the last one.
    """

    text: Bytes
    starts: Integers

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
        """All lines, without their newlines; none holds another, as those are escaped."""
        return self.text[self.starts[0] : self.starts[-1]].tobytes().split(b"\n")[:-1]
