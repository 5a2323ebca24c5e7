"""Prepared statements over a blocking connection, which PyMySQL does not support.

Their rows are in the binary protocol: numbers and times as they are stored rather than as text
(MySQL internals manual, "Prepared Statements", "Binary Protocol Resultset"; MariaDB KB,
"COM_STMT_PREPARE", "COM_STMT_EXECUTE", "COM_STMT_BULK_EXECUTE").
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from pymysql.connections import Connection
from pymysql.constants import COMMAND, FLAG
from pymysql.protocol import FieldDescriptorPacket

from replicator.mysql.connection.blocking_connection import Answer
from replicator.mysql.connection.malformed_answers import READING

_PREPARED = struct.Struct("<xIHH")
_BULK_EXECUTE = 0xFA
_WITH_TYPES = 128
"""The flag of a bulk execution that includes the types of the parameters."""

LARGEST_PACKET = 0xFFFFFF
"""Bytes from which on a command needs several packets."""

_UNSIGNED = 0x80


@dataclass(frozen=True, slots=True)
class WireType:
    """The type of a column or of a parameter.

    It has a number (MySQL internals manual, "Column Types"), and shows whether it is an unsigned
    integer.
    """

    code: int
    unsigned: bool = False


def prepare(connection: Connection[Any], sql: bytes) -> int:
    """Prepare a statement; return its number on this connection. Raises the driver's error."""
    own = cast(Any, connection)
    own._execute_command(COMMAND.COM_STMT_PREPARE, sql)
    answer = own._read_packet()
    with READING:
        number, columns, parameters = _PREPARED.unpack_from(answer.get_all_data())
    # Each list ends with a separate packet.
    for listed in (parameters, columns):
        for _ in range(listed + 1 if listed else 0):
            own._read_packet()
    return int(number)


def forget(connection: Connection[Any], number: int) -> None:
    """Let the server drop a statement; the server does not answer. Raises the driver's error."""
    cast(Any, connection)._execute_command(COMMAND.COM_STMT_CLOSE, struct.pack("<I", number))


def ask(connection: Connection[Any], number: int) -> tuple[WireType, ...]:
    """Run a query without parameters; return the types of its columns.

    Next, the rows must be read from the connection. Raises the driver's error.
    """
    own = cast(Any, connection)
    own._execute_command(COMMAND.COM_STMT_EXECUTE, struct.pack("<IBI", number, 0, 1))
    with READING:
        columns = int(own._read_packet().read_length_encoded_integer())
    fields = [own._read_packet(FieldDescriptorPacket) for _ in range(columns)]
    own._read_packet()
    return tuple(WireType(f.type_code, bool(f.flags & FLAG.UNSIGNED)) for f in fields)


def bulk_head(number: int, types: Sequence[WireType]) -> bytes:
    """Return the header of a bulk execution, before its rows."""
    named = b"".join(bytes((t.code, _UNSIGNED if t.unsigned else 0)) for t in types)
    return struct.pack("<BIH", _BULK_EXECUTE, number, _WITH_TYPES) + named


def send_rows(connection: Connection[Any], head: bytes, rows: memoryview) -> None:
    """Execute a statement with many rows; call `answer` next.

    Head and rows are one packet, so together they must be shorter than 16 MiB. Raises the driver's
    error.
    """
    own = cast(Any, connection)
    size = len(head) + len(rows)
    assert size < LARGEST_PACKET, f"{size} bytes of rows at once"
    own._write_bytes(size.to_bytes(3, "little") + b"\0" + head)
    own._write_bytes(rows)
    own._next_seq_id = 1


def answer(connection: Connection[Any]) -> Answer:
    """Return the server's answer to an execution. Raises the driver's error."""
    own = cast(Any, connection)
    own._read_query_result()
    result = own._result
    return Answer(int(result.affected_rows), result.warning_count, bytes(result.message or b""))
