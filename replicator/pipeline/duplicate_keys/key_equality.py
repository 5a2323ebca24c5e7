"""What a target takes for equal values of a column.

Shards hold a value in different types: 7 and 7.00, a date and its midnight, a text in two charsets.
What the target stores is the same, so that is what counts: `key_form` gives equal values the same
bytes. How the target compares texts only its server knows, so it is asked for their sort weights:
two texts are equal in a collation when their weights are. Collations with one name differ between
servers and versions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import field_value, key_predicate
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.blocking_connection import BlockingSession
from replicator.rows.values.charsets import codec
from replicator.rows.values.fields import escape
from replicator.schema.structure.structure import Column

TIMEOUT = 60
"""Seconds to wait for an answer of the target."""

TEXTS_AT_ONCE = 100
"""Texts of a statement: it has room for as many of the longest keys, and for their weights."""

_EXACT = Context(prec=200)
"""More digits than a DECIMAL has."""


def is_number(target: Column) -> bool:
    """Whether a target's column holds exact numbers, whatever their digits look like."""
    return target.sql_type.literal in (Literal.NUMBER, Literal.BIT) or target.base_type == "year"


def key_form(target: Column) -> Callable[[bytes], bytes]:
    """Gives fields of row lines that are equal in a target's column the same bytes; not for NULL.

    Text loses only its escaping, and stays in its charset.
    """
    if is_number(target):
        return _number
    if target.base_type == "binary":
        return _padded
    if target.base_type == "set":
        return _labels
    return _FORMS.get(target.sql_type.literal, _value)


def _value(field: bytes) -> bytes:
    return field_value(field) or b""


def _number(field: bytes) -> bytes:
    if field.isdigit() and field[:1] != b"0":
        return field
    try:
        number = Decimal(field.decode())
    except InvalidOperation:
        return field
    # Adding zero makes one zero of both.
    return format(_EXACT.normalize(_EXACT.add(number, Decimal())), "f").encode()


def _float(field: bytes) -> bytes:
    return struct.pack(">f", float(field) + 0.0)


def _double(field: bytes) -> bytes:
    return struct.pack(">d", float(field) + 0.0)


def _moment(field: bytes) -> bytes:
    if b"." in field:
        field = field.rstrip(b"0").rstrip(b".")
    return field.removesuffix(b" 00:00:00")


def _parsed(field: bytes) -> bytes:
    return _value(field).lower().replace(b"-", b"")


def _padded(field: bytes) -> bytes:
    return _value(field).rstrip(b"\0")


def _labels(field: bytes) -> bytes:
    return b",".join(sorted(_value(field).split(b",")))


_FORMS: dict[Literal, Callable[[bytes], bytes]] = {
    Literal.FLOAT: _float,
    Literal.DOUBLE: _double,
    Literal.QUOTED: _moment,
    Literal.PARSED: _parsed,
}


@dataclass(frozen=True, slots=True)
class Comparing:
    """A charset that text is brought to, and a collation of the target.

    The collation is of the same charset, but for TiDB's latin1, which holds text in UTF-8.
    """

    charset: str
    collation: str

    @property
    def by_bytes(self) -> bool:
        """Whether texts that differ in a byte differ, but for spaces at the end."""
        return self.collation == "binary" or self.collation.endswith("_bin")

    def literal(self, text: bytes) -> bytes:
        """A text as SQL; the introducer is that of the collation's charset."""
        column = TargetColumn("", Literal.TEXT, self.collation.partition("_")[0])
        return b"(%s COLLATE %s)" % (key_predicate(column, escape(text)), self.collation.encode())


class TargetWeights:
    """The sort weights of texts, asked for over one connection. Not for several threads at once.

    Weights are as long as the text that was given. Where spaces at the end do not count, they are
    cut off, of the texts and of their weights.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        """``address`` is the target's; it is connected to when it is first asked."""
        self._address = address
        self._session: BlockingSession | None = None
        self._paddings: dict[Comparing, tuple[bytes, bytes]] = {}

    def of(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        """For each text, in the target's charset, bytes that are the same for equal ones.

        Raises the driver's error.
        """
        if comparing not in self._paddings:
            self._paddings[comparing] = self._padding(comparing)
        space, weight = self._paddings[comparing]
        texts = [_trimmed(text, space) for text in texts]
        if comparing.by_bytes:
            return texts
        starts = range(0, len(texts), TEXTS_AT_ONCE)
        found = (self._weights(comparing, texts[at : at + TEXTS_AT_ONCE]) for at in starts)
        return [_trimmed(weights, weight) for some in found for weights in some]

    def close(self) -> None:
        """Drop the connection, if there is one."""
        if self._session is not None:
            self._session.close()

    def _padding(self, comparing: Comparing) -> tuple[bytes, bytes]:
        """A space and what it adds to the weights; both empty where spaces at the end count."""
        space, letter = (_encoded(text, comparing.charset) for text in " a")
        one, two = map(comparing.literal, (letter, letter + space))
        ((equal,),) = self._opened().rows(b"SELECT %s=%s" % (one, two))
        if not int(equal) or comparing.by_bytes:
            return space if int(equal) else b"", b""
        alone, first, both = self._weights(comparing, (space, letter, letter + space))
        # With several levels of weights a space has a part in each, and none stands at the end.
        return space, alone if both == first + alone else b""

    def _weights(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        asked = [b"HEX(WEIGHT_STRING(%s))" % comparing.literal(text) for text in texts]
        ((answer,),) = self._opened().rows(b"SELECT CONCAT_WS(',',%s)" % b",".join(asked))
        return [bytes.fromhex(part) for part in bytes(answer).decode().split(",")]

    def _opened(self) -> BlockingSession:
        if self._session is None:
            settings = "SET SESSION sql_mode=''"
            self._session = BlockingSession(self._address, settings=settings, timeout=TIMEOUT)
        return self._session


def _encoded(text: str, charset: str) -> bytes:
    """A text of ASCII in a charset; those that Python does not know are supersets of ASCII."""
    try:
        return text.encode(codec(charset))
    except BinlogError:
        return text.encode()


def _trimmed(text: bytes, unit: bytes) -> bytes:
    """The text without the units at its end."""
    end = len(text)
    while unit and end and end % len(unit) == 0 and text[end - len(unit) : end] == unit:
        end -= len(unit)
    return text[:end]
