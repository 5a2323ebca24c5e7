"""Decodes damaged table maps, row events and result rows where a stray access ends the process.

``python -m tests.support.streams.crafted_rows SEED ROUNDS`` prints how many were decoded and how
many were refused.
"""

from __future__ import annotations

import random
import struct
import sys
import zlib
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import numpy as np
from pymysql.constants import FIELD_TYPE

from replicator.binlog.errors import BinlogError
from replicator.binlog.events.event_header import EventType
from replicator.binlog.events.table_map import parse_table_map
from replicator.binlog.segments.row_events import RowEvents
from replicator.mysql.column_types import ColumnType
from replicator.mysql.connection.prepared_statements import WireType
from replicator.pipeline.copy.binary_rows import convert_binary, value_sizes
from replicator.pipeline.copy.text_rows import OUTPUT_FACTOR, convert_rows
from replicator.rows.decoder.block_decoder import CompiledDecoder
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.rows.values.value_readers import MappedValueError
from tests.support.streams.guarded_memory import guarded, guarded_copy

_KINDS: list[tuple[int, bytes, bytes]] = [
    (ColumnType.LONG, b"", bytes(4)),
    (ColumnType.VARCHAR, b"\x2c\x01", b"\x02\x00a\t"),
    (ColumnType.BLOB, b"\x02", b"\x03\x00abc"),
    (ColumnType.DECIMAL, b"\x0a\x02", b"\x80\x00\x00\x07\x05"),
    (ColumnType.DATETIME_2, b"\x03", b"\x99\x9e\x00\x00\x00\x00\x0a"),
    (ColumnType.TIME_2, b"\x06", b"\x80\x10\x00\x00\x00\x07"),
    (ColumnType.TIMESTAMP_2, b"\x00", b"\x60\x00\x00\x00"),
    (ColumnType.BIT, b"\x03\x01", b"\x01\x07"),
    (ColumnType.STRING, bytes((ColumnType.ENUM, 1)), b"\x02"),
    (ColumnType.STRING, bytes((ColumnType.SET, 2)), b"\x05\x00"),
    (ColumnType.STRING, bytes((ColumnType.STRING, 40)), b"\x02ab"),
    (ColumnType.DATE, b"", b"\x21\xca\x0f"),
    (ColumnType.DOUBLE, b"\x08", bytes(8)),
    (ColumnType.JSON, b"\x04", b"\x04\x00\x00\x00\x0c\x02ab"),
    (ColumnType.YEAR, b"", b"\x7b"),
]
"""Types, their metadata, and a value."""
_EVENTS = (
    EventType.WRITE_ROWS_V1,
    EventType.UPDATE_ROWS_V2,
    EventType.DELETE_ROWS_V1,
    EventType.MARIADB_WRITE_ROWS_COMPRESSED,
)
_WIRE = [
    WireType(code)
    for code in (FIELD_TYPE.LONG, FIELD_TYPE.BLOB, FIELD_TYPE.DATETIME, FIELD_TYPE.VAR_STRING)
]


def _damaged(random_: random.Random, data: bytes) -> bytes:
    found = bytearray(data)
    for _ in range(random_.randrange(4)):
        if found:
            found[random_.randrange(len(found))] = random_.choice((0, 1, 250, 252, 254, 255)) or (
                random_.randrange(256)
            )
    if random_.random() < 0.3:
        del found[random_.randrange(len(found) + 1) :]
    return bytes(found)


def _table_map(random_: random.Random, chosen: list[tuple[int, bytes, bytes]]) -> bytes:
    codes = bytes(kind for kind, _, _ in chosen)
    metadata = bytearray(b"".join(more for _, more, _ in chosen))
    if metadata and random_.random() < 0.4:
        metadata[random_.randrange(len(metadata))] = random_.randrange(256)
    nulls = b"\xff" * ((len(chosen) + 7) // 8)
    head = bytes(8) + b"\x01s\x00\x01t\x00"
    return head + bytes((len(codes),)) + codes + bytes((len(metadata),)) + bytes(metadata) + nulls


def _column(kind: int, metadata: int) -> ColumnFormat:
    labels = (b"a", b"b\t", b"c") if kind in (ColumnType.ENUM, ColumnType.SET) else ()
    length = metadata if kind == ColumnType.STRING and metadata < 200 else None
    return ColumnFormat("c", kind, metadata, labels=labels, length=length)


def _event(random_: random.Random, chosen: list[tuple[int, bytes, bytes]]) -> bytes:
    columns = len(chosen)
    kind = random_.choice(_EVENTS)
    extra = b"\x02\0" if kind == EventType.UPDATE_ROWS_V2 else b""
    width = (columns + 7) // 8
    bitmaps = b"\xff" * width * (2 if kind == EventType.UPDATE_ROWS_V2 else 1)
    rows = (bytes(width) + b"".join(value for *_, value in chosen)) * random_.choice((2, 4))
    if kind == EventType.MARIADB_WRITE_ROWS_COMPRESSED:
        rows = b"\x82" + len(rows).to_bytes(2, "big") + zlib.compress(rows)
    body = bytes(6) + b"\x01\0" + extra + bytes((columns,)) + bitmaps + rows
    size = struct.pack("<I", 19 + len(body))
    return _damaged(random_, bytes(4) + bytes((kind,)) + bytes(4) + size + bytes(6) + body)


def _decode(random_: random.Random) -> bool:
    chosen = random_.sample(_KINDS, random_.randrange(1, 6))
    try:
        table = parse_table_map(_table_map(random_, chosen))
        columns = tuple(map(_column, table.types, table.metadata))
        everything = tuple(range(len(columns)))
        decoder = CompiledDecoder(
            RowFormat(columns, everything, everything[:1], everything[:1], frozenset())
        )
        event = _event(random_, chosen)
        data = guarded_copy(event)
        ends = np.array([len(event)], np.int64)
        nothing = ends * 0
        decoder.decode(RowEvents(data, nothing, ends, nothing, nothing, nothing))
    except (BinlogError, MappedValueError):
        return False
    return True


def _result_rows(random_: random.Random) -> None:
    values = [struct.pack("<i", 7), b"\xfc\x05\x00hello", b"\x04" + bytes(4), b"\x03abc"]
    text = b"\x02ab\xfb\xfc\x05\x00hello\xfd\x01\x00\x00x\xfe" + struct.pack("<Q", 3) + b"xyz"
    for row, typed in ((b"\0\0" + b"".join(values), True), (text, False)):
        payload = _damaged(random_, row)
        packets = len(payload).to_bytes(3, "little") + b"\0" + payload
        data = guarded_copy(packets)
        if typed:
            out = guarded(len(packets) + len(_WIRE))
            convert_binary(data, len(packets), out, value_sizes(_WIRE))
        else:
            convert_rows(data, len(packets), guarded(OUTPUT_FACTOR * len(packets)))


def _guarded_new_arrays() -> AbstractContextManager[object]:
    plain: Any = np.empty

    def empty(shape: Any, dtype: Any = float, **more: Any) -> Any:
        bytes_ = dtype is np.uint8 and isinstance(shape, int | np.integer)
        return guarded(int(shape)) if bytes_ else plain(shape, dtype, **more)

    return mock.patch.object(np, "empty", empty)


def main() -> None:
    seed, rounds = map(int, sys.argv[1:])
    random_ = random.Random(seed)
    decoded = 0
    with _guarded_new_arrays():
        for _ in range(rounds):
            decoded += _decode(random_)
            _result_rows(random_)
    sys.stdout.write(f"{decoded} {rounds - decoded}\n")


if __name__ == "__main__":
    main()
