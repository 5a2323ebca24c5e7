"""How large the answer to one statement may be: neither client library has a bound.

Rows become Python objects, so each packet counts for more than its bytes. A full copy reads its
rows by itself, block by block (`replicator.pipeline.result_bytes`), and is not counted.
"""

from __future__ import annotations

from typing import Final

import pymysql.err

from replicator.memory import largest_event, too_large
from replicator.mysql.errors import ErrorCode

LONGEST_MESSAGE: Final = 2048
"""Characters that are kept of a server's error message: its own limit is 512 bytes."""
_OVERHEAD: Final = 64
"""Bytes that each of a packet's two parts counts for beside its own."""


class AnswerSize:
    """Counts the answer that a connection is reading."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def begin(self) -> None:
        """Another statement is sent."""
        self._taken = 0

    def take(self, count: int) -> None:
        """So many bytes more are to be read. Raises the driver's error where these are too many.

        The connection is then of no use any more.
        """
        self._taken += count + _OVERHEAD
        if self._taken > largest_event():
            raise pymysql.err.OperationalError(
                ErrorCode.CR_NET_PACKET_TOO_LARGE.value,
                too_large("the server's answer to a look-up", self._taken),
            )


def shortened(error: pymysql.err.MySQLError) -> pymysql.err.MySQLError:
    """The error with as much of the server's message as is kept."""
    if len(error.args) < 2 or len(str(error.args[1])) <= LONGEST_MESSAGE:
        return error
    code, message, *_ = error.args
    return type(error)(code, f"{str(message)[:LONGEST_MESSAGE]} [...]")
