"""How the target compares texts: their sort weights, as its own server tells them.

Two texts are equal in a collation when their weights are the same. Collations with one name differ
between servers and versions, so the target's server is asked, many texts at a time. Weights are as
long as the text that was given; where spaces at the end do not count, they are cut off here. Texts
of ASCII characters alone are put together from the weights of their characters, where the server
was seen to do no more (no letters that count as one with the next, one level of weights).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from replicator.binlog.errors import BinlogError
from replicator.downstream.columns import Literal, TargetColumn
from replicator.downstream.literals import key_predicate
from replicator.mysql.address import DatabaseAddress
from replicator.mysql.session import BlockingSession
from replicator.rows.charsets import codec
from replicator.rows.fields import escape

TIMEOUT = 60
"""Seconds to wait for an answer of the target."""

TEXTS_AT_ONCE = 500
BYTES_AT_ONCE = 200_000
"""Texts of a statement, and bytes that they have, at most."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """A charset that text is brought to, and a collation of the target.

    The collation is of the same charset, but for TiDB's latin1, which holds text in UTF-8.
    """

    charset: str
    collation: str

    @property
    def introducer(self) -> str:
        """The charset that the collation is for, by its name."""
        return self.collation.partition("_")[0]

    @property
    def by_bytes(self) -> bool:
        """Whether texts that differ in a byte differ, but for spaces at the end."""
        return self.collation == "binary" or self.collation.endswith("_bin")


_PRINTABLE = bytes(range(0x20, 0x7F))


@dataclass(frozen=True, slots=True)
class _Padding:
    """``space`` is what a space looks like, empty where spaces at the end count; ``weight`` what
    each of them adds to the weights, empty where that does not stand at their end."""

    space: bytes
    weight: bytes


class TargetWeights:
    """The sort weights of texts, asked for over one connection. Not for several threads at once."""

    def __init__(self, address: DatabaseAddress) -> None:
        """``address`` is the target's; it is connected to when it is first asked."""
        self._address = address
        self._session: BlockingSession | None = None
        self._paddings: dict[Comparing, _Padding] = {}
        self._letters: dict[Comparing, dict[int, bytes]] = {}

    def of(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        """For each text, in the target's charset, bytes that are the same for equal ones.

        Raises the driver's error.
        """
        padding = self._padding(comparing)
        if padding.space:
            texts = [_trimmed(text, padding.space) for text in texts]
        if comparing.by_bytes:
            return list(texts)
        letters = self._letter_weights(comparing) if len(texts) > TEXTS_AT_ONCE else {}
        if not letters:
            found = self._asked(comparing, texts)
        else:
            rests = [text.translate(None, _PRINTABLE) for text in texts]
            strange = [text for text, rest in zip(texts, rests, strict=True) if rest]
            asked = iter(self._asked(comparing, strange))
            found = [
                next(asked) if rest else b"".join([letters[letter] for letter in text])
                for text, rest in zip(texts, rests, strict=True)
            ]
        return [_trimmed(weights, padding.weight) for weights in found]

    def close(self) -> None:
        """Drop the connection, if there is one."""
        if self._session is not None:
            self._session.close()

    def _padding(self, comparing: Comparing) -> _Padding:
        known = self._paddings.get(comparing)
        if known is None:
            known = self._paddings[comparing] = self._asked_padding(comparing)
        return known

    def _asked_padding(self, comparing: Comparing) -> _Padding:
        space, letter = (_encoded(text, comparing.charset) for text in " a")
        one, two = (_literal(comparing, text) for text in (letter, letter + space))
        ((equal,),) = self._opened().rows(b"SELECT %s=%s" % (one, two))
        if not int(equal):
            return _Padding(b"", b"")
        if comparing.by_bytes:
            return _Padding(space, b"")
        alone, first, both = self._ask(comparing, (space, letter, letter + space))
        # With several levels of weights a space has a part in each.
        return _Padding(space, alone if both == first + alone else b"")

    def _letter_weights(self, comparing: Comparing) -> dict[int, bytes]:
        """The weights of ASCII characters; none where those of a text are not put together so."""
        known = self._letters.get(comparing)
        if known is None:
            known = self._letters[comparing] = self._asked_letters(comparing)
        return known

    def _asked_letters(self, comparing: Comparing) -> dict[int, bytes]:
        if _encoded("a", comparing.charset) != b"a":
            return {}
        singles = [bytes([letter]) for letter in _PRINTABLE]
        letters = dict(zip(_PRINTABLE, self._asked(comparing, singles), strict=True))
        pairs = [one + two for one in singles for two in singles]
        for pair, weights in zip(pairs, self._asked(comparing, pairs), strict=True):
            if weights != letters[pair[0]] + letters[pair[1]]:
                return {}
        return letters

    def _asked(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        return [weights for batch in _batches(texts) for weights in self._ask(comparing, batch)]

    def _ask(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        asked = [b"HEX(WEIGHT_STRING(%s))" % _literal(comparing, text) for text in texts]
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


def _literal(comparing: Comparing, text: bytes) -> bytes:
    column = TargetColumn("", Literal.TEXT, comparing.introducer)
    value = key_predicate(column, escape(text))
    return b"(%s COLLATE %s)" % (value, comparing.collation.encode())


def _batches(texts: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    first, size = 0, 0
    for place, text in enumerate(texts):
        if place > first and (place - first == TEXTS_AT_ONCE or size + len(text) > BYTES_AT_ONCE):
            yield texts[first:place]
            first, size = place, 0
        size += len(text)
    if first < len(texts):
        yield texts[first:]


def _trimmed(text: bytes, unit: bytes) -> bytes:
    """The text without the units at its end."""
    if not unit or not text.endswith(unit):
        return text
    end = len(text)
    while end >= len(unit) and text[end - len(unit) : end] == unit and end % len(unit) == 0:
        end -= len(unit)
    return text[:end]
