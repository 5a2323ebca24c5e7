"""Blocks of rows, row by row."""

from __future__ import annotations

from replicator.rows.decoder.row_block import RowBlock

Image = tuple[bytes, bytes, int] | None
"""Line, key and hash of a row."""


def rows_of(block: RowBlock) -> list[tuple[int, Image, Image]]:
    """The index of the event, and the images before and after, of each row."""
    hashes = block.hashes.tolist()
    images: list[Image] = [(block.lines[n], block.keys[n], h) for n, h in enumerate(hashes)]
    images.append(None)
    rows = zip(block.event.tolist(), block.before.tolist(), block.after.tolist(), strict=True)
    return [(event, images[before], images[after]) for event, before, after in rows]
