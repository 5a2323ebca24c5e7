"""Columns of values from the bytes that they have in row images."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from replicator.mysql.column_types import BINLOG_TYPES, Decoder
from replicator.pipeline.plans.filter_columns import ReadField
from replicator.routing.expression.column_evaluation import Array, Coded
from replicator.routing.expression.types import Kind
from replicator.routing.expression.vectors import ArrowColumn, numbers_of
from replicator.rows.decoder.row_block import RawColumn
from replicator.rows.values.column_format import ColumnFormat
from replicator.rows.values.decimals import stored_groups
from replicator.rows.values.fields import Read

_NUMERIC = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.YEAR, Kind.TIME})
_MOST_DIGITS = 18
"""So many digits of a DECIMAL an int64 holds, whichever they are."""


class ImageColumn:
    """A column of row images.

    ``layout`` says how its values stand there; ``read`` and ``convert`` make a value of one that
    there is no quicker way for: to a field of a row line, and from there to a value.
    """

    def __init__(
        self,
        kind: Kind,
        layout: ColumnFormat,
        read: Read,
        convert: ReadField,
        stored: RawColumn,
    ) -> None:
        self.numeric = kind in _NUMERIC
        self._layout = layout
        self._read = read
        self._convert = convert
        self._stored = stored

    def null(self) -> Array:
        """Where it is NULL: a mask."""
        return self._null

    @cached_property
    def _null(self) -> Array:
        return self._stored.sizes < 0

    def numbers(self) -> ArrowColumn:
        """Its values, of a ``numeric`` one.

        Raises BinlogError or ValueError, or one of `replicator.routing.expression.vectors.INEXACT`.
        """
        stored = BINLOG_TYPES[self._layout.type_code]
        if stored.decoder is Decoder.INTEGER:
            values = self._whole(stored.sizes[0])
        elif stored.decoder is Decoder.REAL:
            layout = np.dtype(f"<f{stored.sizes[0]}")
            values = self._bytes(layout.itemsize).view(layout).ravel().astype(np.float64)
        elif stored.decoder is Decoder.DECIMAL and self._layout.metadata >> 8 <= _MOST_DIGITS:
            values = self._decimal()
        else:
            coded = self.coded()
            return numbers_of(coded.values).take(pa.array(coded.codes))
        found = pa.array(values, mask=self._null)
        return found if values.dtype.kind == "f" else found.cast(pa.int64())

    def coded(self) -> Coded:
        """Its values, each once. Raises BinlogError or ValueError."""
        return self._coded

    @cached_property
    def _coded(self) -> Coded:
        images = self._stored.values()
        numbers = {image: number for number, image in enumerate(dict.fromkeys(images))}
        codes = np.fromiter(map(numbers.__getitem__, images), np.int64, count=len(images))
        read, convert = self._read, self._convert
        values = [None if image is None else convert(read(image, 0)[0]) for image in numbers]
        return Coded(codes, values)

    def _bytes(self, size: int) -> NDArray[np.uint8]:
        """A line of so many bytes for each value, zeros for NULL; each value has so many."""
        found = np.zeros((len(self._null), size), np.uint8)
        there = ~self._null
        places = self._stored.starts[there, np.newaxis] + np.arange(size)
        found[there] = np.frombuffer(self._stored.data, np.uint8)[places]
        return found

    def _whole(self, size: int) -> Array:
        stored, unsigned = self._bytes(size), self._layout.unsigned
        if size == 3:
            wide = np.zeros((len(stored), 4), np.uint8)
            # In front, as the high bytes, so that the sign is where it belongs.
            wide[:, 1:] = stored
            return (wide.view("<u4" if unsigned else "<i4").ravel() >> 8).astype(np.int64)
        return stored.view(f"<{'u' if unsigned else 'i'}{size}").ravel()

    def _decimal(self) -> Array:
        """The digits as one whole number (`replicator.rows.values.decimals` has the format)."""
        groups = stored_groups(self._layout.metadata >> 8, self._layout.metadata & 255)
        size = sum(width for _, width in groups)
        stored = self._bytes(size)
        negative = stored[:, 0] < 0x80
        digits = np.where(negative[:, np.newaxis], ~stored, stored)
        digits[:, 0] ^= 0x80
        found = np.zeros(len(stored), np.int64)
        at = 0
        for count, width in groups:
            group = np.zeros(len(stored), np.int64)
            for place in range(at, at + width):
                group = group << 8 | digits[:, place]
            found = found * 10**count + group
            at += width
        return np.where(negative, -found, found)
