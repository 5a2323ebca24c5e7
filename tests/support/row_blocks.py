"""Blocks of rows, row by row."""

from __future__ import annotations

from replicator.rows.row_block import RowBlock

Image = tuple[bytes, bytes, int] | None
"""Line, key and hash of a row."""


def rows_of(block: RowBlock) -> list[tuple[int, Image, Image]]:
    """The index of the event, and the images before and after, of each row."""
    lines, keys, hashes = list(block.lines), list(block.keys), block.hashes.tolist()
    images: list[Image] = [*zip(lines, keys, hashes, strict=True), None]
    rows = zip(block.event.tolist(), block.before.tolist(), block.after.tolist(), strict=True)
    return [(event, images[before], images[after]) for event, before, after in rows]
