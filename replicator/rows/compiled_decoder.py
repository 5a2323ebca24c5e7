"""The decoder that executors use: compiled loops, and value by value what these don't take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from replicator.rows.block_decoder import BlockDecoder, RowBlock
from replicator.rows.columns import ColumnFormat
from replicator.rows.compiled import Integers
from replicator.rows.row_lines import RowImages, RowsDecoder, compile_decoder


def compile_block_decoder(
    columns: tuple[ColumnFormat, ...],
    written: tuple[int, ...],
    key: tuple[int, ...],
    hashed: tuple[int, ...],
    generated: frozenset[int],
    until: int | None = None,
    constants: tuple[bytes, ...] = (),
) -> RowsDecoder:
    """A decoder as `replicator.rows.row_lines.compile_decoder` makes it, with the same results.

    Raises BinlogError for a column that cannot be read.
    """
    careful = compile_decoder(columns, written, key, hashed, generated, until, constants)
    if until is not None:
        return careful
    return _Decoder(BlockDecoder(columns, written, key, hashed, generated, constants), careful)


Item = TypeVar("Item")


class _Decoder:
    def __init__(self, blocks: BlockDecoder, careful: RowsDecoder) -> None:
        self._blocks = blocks
        self._careful = careful

    def decode(self, events: Sequence[bytes]) -> RowImages:
        block = self._blocks.decode(events)
        return self._careful.decode(events) if block is None else _images(block)


def _images(block: RowBlock) -> RowImages:
    lines = block.lines.split()
    keys = lines if block.keys is block.lines else block.keys.split()
    hashes = block.hashes.tolist()
    return RowImages(
        event=block.event.tolist(),
        change=block.change.tolist(),
        before=_chosen(lines, block.before),
        after=_chosen(lines, block.after),
        before_key=_chosen(keys, block.before),
        after_key=_chosen(keys, block.after),
        before_hash=[0 if h is None else h for h in _chosen(hashes, block.before)],
        after_hash=[0 if h is None else h for h in _chosen(hashes, block.after)],
    )


def _chosen(items: list[Item], images: Integers) -> list[Item | None]:
    present = images[images >= 0]
    if not len(present):
        return [None] * len(images)
    if len(present) == len(images) == len(items):
        return list(items)
    return [None if image < 0 else items[image] for image in images.tolist()]
