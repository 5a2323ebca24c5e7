"""Blocks of rows, row by row."""

from __future__ import annotations

from dataclasses import dataclass, field

from replicator.rows.decoder.row_block import UNKNOWN_LINE, RawColumn, RowBlock, RowChange

Image = tuple[bytes, bytes, int] | None
"""Line, key and hash of a row."""


def rows_of(block: RowBlock) -> list[tuple[int, Image, Image]]:
    """The index of the event, and the images before and after, of each row."""
    hashes = block.hashes.tolist()
    images: list[Image] = [(block.lines[n], block.keys[n], h) for n, h in enumerate(hashes)]
    images.append(None)
    rows = zip(block.event.tolist(), block.before.tolist(), block.after.tolist(), strict=True)
    return [(event, images[before], images[after]) for event, before, after in rows]


@dataclass
class RowImages:
    """A block in lists with one entry for each row: no line where it is not known, and neither
    line nor key, and hash 0, where there is no image."""

    event: list[int] = field(default_factory=list)
    change: list[int] = field(default_factory=list)
    before: list[bytes | None] = field(default_factory=list)
    after: list[bytes | None] = field(default_factory=list)
    before_key: list[bytes | None] = field(default_factory=list)
    after_key: list[bytes | None] = field(default_factory=list)
    before_hash: list[int] = field(default_factory=list)
    after_hash: list[int] = field(default_factory=list)
    raw_columns: tuple[RawColumn, ...] = ()


def images_of(block: RowBlock) -> RowImages:
    """The rows of a block in lists."""
    found = RowImages(raw_columns=block.raw_columns)
    for event, before, after in rows_of(block):
        change = RowChange.INSERT if before is None else RowChange.DELETE
        found.event.append(event)
        found.change.append(int(RowChange.UPDATE if before and after else change))
        for image, lines, keys, hashes in (
            (before, found.before, found.before_key, found.before_hash),
            (after, found.after, found.after_key, found.after_hash),
        ):
            line, key, hashed = image or (None, None, 0)
            lines.append(None if line == UNKNOWN_LINE else line)
            keys.append(key)
            hashes.append(hashed)
    return found
