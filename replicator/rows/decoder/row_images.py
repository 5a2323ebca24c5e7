"""What row events did to rows, as lists that are written without another look at the events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class RowChange(IntEnum):
    """What a row event did to a row."""

    INSERT = 1
    UPDATE = 2
    DELETE = 3


@dataclass(frozen=True, slots=True, eq=False)
class NotedColumn:
    """The values of a column as they stand in events, one for each row image.

    Of an update the image before comes first. The values are the ``sizes[i]`` bytes of ``data``
    from ``starts[i]`` on, with their length where they have one in front; the size of NULL is below
    0.
    """

    data: bytes
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def values(self) -> list[bytes | None]:
        """The bytes of each value; None for NULL."""
        data, ends = self.data, self.starts + self.sizes
        return [
            None if end < start else data[start:end]
            for start, end in zip(self.starts.tolist(), ends.tolist(), strict=True)
        ]


def noted_column(values: Sequence[bytes | None]) -> NotedColumn:
    """A column of these values."""
    lengths = [0 if value is None else len(value) for value in values]
    sizes = np.array([-1 if value is None else len(value) for value in values], np.int64)
    starts = np.cumsum(np.array(lengths, np.int64)) - lengths
    return NotedColumn(b"".join(filter(None, values)), starts.astype(np.int64), sizes)


@dataclass(slots=True)
class RowImages:
    """Parallel lists with one entry for each changed row, in binlog order.

    ``event`` is the index into the events given; ``change`` a value of `RowChange`. ``before`` and
    ``after`` are the row as a line without its newline (None: there was, there is no row);
    ``…_key`` the key columns as such a line, or the whole line where there is no key; ``…_hash``
    the CRC32 of the hashed columns' fields joined by tabs, but for
    the bytes that are cut off (0 without hashed columns or row).
    ``noted``: the values of noted columns as they stand in the events.
    """

    event: list[int] = field(default_factory=list)
    change: list[int] = field(default_factory=list)
    before: list[bytes | None] = field(default_factory=list)
    after: list[bytes | None] = field(default_factory=list)
    before_key: list[bytes | None] = field(default_factory=list)
    after_key: list[bytes | None] = field(default_factory=list)
    before_hash: list[int] = field(default_factory=list)
    after_hash: list[int] = field(default_factory=list)
    noted: Sequence[NotedColumn] = ()


def present_rows(images: RowImages) -> RowImages:
    """What the changes do to the rows that are the present ones.

    A server with system versioning deletes a row by giving it an end, and logs an update as the new
    row in place of the old one, and the insert of that with its end (MariaDB's page
    "System-Versioned Tables").
    """
    found = RowImages()
    for index, (before, after) in enumerate(zip(images.before, images.after, strict=True)):
        if before is None and after is None:
            continue
        if before is None or after is None:
            change = RowChange.DELETE if after is None else RowChange.INSERT
        else:
            change = RowChange.UPDATE
        found.event.append(images.event[index])
        found.change.append(int(change))
        found.before.append(before)
        found.after.append(after)
        found.before_key.append(images.before_key[index])
        found.after_key.append(images.after_key[index])
        found.before_hash.append(images.before_hash[index])
        found.after_hash.append(images.after_hash[index])
    return found
