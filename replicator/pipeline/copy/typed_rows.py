"""Copies rows of a result set to a statement with many rows, in the binary format of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from replicator.mysql.connection.blocking_client import WatchedConnection
from replicator.mysql.connection.prepared_statements import WireType, forget
from replicator.pipeline.copy.binary_rows import FULL, convert_binary, parameter_types, value_sizes
from replicator.pipeline.copy.result_bytes import BLOCK_BYTES, ResultBytes, damaged_row
from replicator.pipeline.copy.text_rows import DAMAGED, LONG_ROW, MORE


class LargeRowError(Exception):
    """A row is larger than the maximum size of a statement."""


class TypedRows:
    """The rows of a prepared query whose header was read. Raises UnknownTypeError.

    Attributes:
        types: the types of the values as parameters.
    """

    def __init__(
        self, connection: WatchedConnection, number: int, columns: Sequence[WireType]
    ) -> None:
        self.types = parameter_types(columns)
        self._connection = connection
        self._number = number
        self._sizes = value_sizes(columns)

    def blocks(self, room: int) -> Iterator[tuple[memoryview, int]]:
        """Yield all rows, in blocks of at most ``room`` bytes, with the number of rows in each.

        A block is only valid until the next one is requested. Raises the driver's error, and
        LargeRowError, also after some blocks.
        """
        result = ResultBytes(self._connection)
        out = np.empty(min(room, BLOCK_BYTES), np.uint8)
        filled = count = 0
        while True:
            used, written, rows, reason = map(
                int, convert_binary(result.data, result.filled, out[filled:], self._sizes)
            )
            result.drop(used)
            filled, count = filled + written, count + rows
            if reason == MORE:
                # A connection may return a few rows at a time (with TLS, 16 KiB at most). Each
                # block becomes a separate statement, so fill a block first.
                result.more()
                continue
            if reason == DAMAGED:
                raise damaged_row()
            if count:
                yield out.data[:filled], count
            filled = count = 0
            if reason == FULL:
                wanted = result.packet_bytes() + len(self._sizes)
                if wanted > room:
                    raise LargeRowError(f"a row of {wanted} bytes, in statements of {room}")
                if wanted > len(out):
                    out = np.empty(wanted, np.uint8)
            elif reason == LONG_ROW:
                raise LargeRowError("a row of 16 MiB or more")
            else:
                result.end()
                forget(self._connection, self._number)
                return
