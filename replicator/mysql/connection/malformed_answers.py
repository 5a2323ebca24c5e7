"""Errors for answers of servers that are malformed or too large.

Both client libraries parse the server's bytes without checking them first, so a broken or hostile
server decides which of Python's errors they raise. Only calls that read, and our own code that
parses answers, convert these errors, so that errors in other code stay visible.

Neither client library limits the size of an answer. Rows become Python objects, so each packet
counts for more than its bytes. A full copy reads its rows itself, block by block
(`replicator.pipeline.copy.result_bytes`), and its rows are not counted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymysql.err
from pymysql.constants import CR

from replicator.memory import largest_event, too_large
from replicator.mysql.errors import OddAnswerError

LONGEST_MESSAGE: Final = 2048
"""Maximum number of characters of a server's error message; its own limit is 512 bytes."""
_OVERHEAD: Final = 64
"""Bytes that are added to the size of each of a packet's two parts."""


class AnswerSize:
    """Counts the answer that a connection is reading."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def begin(self) -> None:
        """Begin the answer to another statement."""
        self._taken = 0

    def take(self, count: int) -> None:
        """Count more bytes to read. Raises the driver's error if the answer is too large.

        The connection can't be used after this error.
        """
        self._taken += count + _OVERHEAD
        if self._taken > largest_event():
            raise pymysql.err.OperationalError(
                CR.CR_NET_PACKET_TOO_LARGE,
                too_large("the server's answer to a look-up", self._taken),
            )


def shortened(error: pymysql.err.MySQLError) -> pymysql.err.MySQLError:
    """Return the error with the server's message cut to the maximum length."""
    if len(error.args) < 2 or len(str(error.args[1])) <= LONGEST_MESSAGE:
        return error
    code, message, *_ = error.args
    return type(error)(code, f"{str(message)[:LONGEST_MESSAGE]} [...]")


_SHOWN = 200

_NOT_AS_EXPECTED = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    struct.error,
)


class _Reading:
    """Context for a library's call that reads a server's answer.

    Raises OddAnswerError if the library can't parse the answer. Errors that the server reports, a
    lost connection and a socket's errors are raised unchanged.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, Exception) and not _is_expected(error):
            reason = f"{type(error).__name__}: {error}"[:_SHOWN]
            raise OddAnswerError.of(
                f"the server gives an answer that can't be understood ({reason!r}): either"
                " something on the way damages it, or no MySQL, MariaDB or TiDB answers there"
            ) from error


READING = _Reading()

_OPTIONAL = "Slave_UUID"
"""The last column of SHOW SLAVE HOSTS, which MySQL 5.6 leaves out of the row of a replica that has
not reported one."""


def _is_expected(error: Exception) -> bool:
    if isinstance(error, OSError | EOFError | MemoryError | pymysql.err.InterfaceError):
        return True
    # Errors of the libraries about an answer have no number.
    answered = isinstance(error, pymysql.err.MySQLError) and bool(error.args)
    return answered and isinstance(error.args[0], int)


def check_row_widths(result: Any) -> None:
    """Raise ValueError if a row of a library's result set does not have all columns."""
    names = [column[0] for column in result.description or ()]
    fewest = len(names) - (names[-1:] == [_OPTIONAL])
    for row in result.rows or ():
        if not fewest <= len(row) <= len(names):
            raise ValueError(f"a row of {len(row)} values in {len(names)} columns")


def asks_for_file() -> pymysql.err.OperationalError:
    """Return the error to raise if a server requests a file instead of answering."""
    return pymysql.err.OperationalError(
        CR.CR_MALFORMED_PACKET,
        "the server asks for a file in place of an answer, as none does that is what it seems; it"
        " gets none. Look who answers there, and let security.ssl-ca make sure",
    )


@contextmanager
def parsing_answer(what: str) -> Iterator[None]:
    """Context for code that parses an answer: raise OddAnswerError if the answer has another form.

    ``what``: the name of the answer.
    """
    try:
        yield
    except _NOT_AS_EXPECTED as error:
        reason = f"{type(error).__name__}: {error}"[:_SHOWN]
        raise OddAnswerError.of(
            f"the server gives an answer that can't be understood, for {what} ({reason!r})"
        ) from error
