"""The decoder that executors use: compiled loops, and value by value what these don't take."""

from __future__ import annotations

from replicator.rows.decoder.block_decoder import BlockDecoder, OwnBuckets
from replicator.rows.decoder.event_spans import EventSpans
from replicator.rows.decoder.reference_decoder import compile_decoder
from replicator.rows.decoder.row_block import RowBlock, block_of_images
from replicator.rows.values.column_format import ColumnFormat


class CompiledDecoder:
    """Decodes the row events of one table structure."""

    def __init__(
        self,
        columns: tuple[ColumnFormat, ...],
        written: tuple[int, ...],
        key: tuple[int, ...],
        hashed: tuple[int, ...],
        generated: frozenset[int],
        until: int | None = None,
        constants: tuple[bytes, ...] = (),
        noted: tuple[int, ...] = (),
        hash_cut: int = 0,
    ) -> None:
        """The arguments are those of `replicator.rows.decoder.reference_decoder.compile_decoder`.

        Raises BinlogError for a column that cannot be read.
        """
        self._careful = compile_decoder(
            columns, written, key, hashed, generated, until, constants, noted, hash_cut
        )
        self._blocks = (
            BlockDecoder(columns, written, key, hashed, generated, constants, noted, hash_cut)
            if until is None
            else None
        )

    def decode(self, events: EventSpans, own: OwnBuckets | None = None) -> RowBlock:
        """The rows of the events. Of those outside of ``own`` buckets lines and keys may be empty.

        Raises what `replicator.rows.decoder.reference_decoder.RowsDecoder` raises.
        """
        block = self._blocks.decode(events, own) if self._blocks is not None else None
        return block_of_images(self._careful.decode(events.split())) if block is None else block
