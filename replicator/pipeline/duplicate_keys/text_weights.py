"""Finds the texts that are equal on a target, by the sort weights that its server computes.

Two texts are equal in a collation if their sort weights are equal. Collations with the same name
differ between servers and versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replicator.binlog.errors import BinlogError
from replicator.downstream.rows.literals import key_literal
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.pipeline.compare.compare_rows import Sessions
from replicator.rows.values.charsets import codec
from replicator.rows.values.fields import escape

TEXTS_AT_ONCE = 100
"""Number of texts in a statement: the longest keys and their weights must fit."""


@dataclass(frozen=True, slots=True)
class Comparing:
    """A charset to which texts are converted, and a collation of the target.

    The collation is of the same charset, except for TiDB's latin1, which stores text in UTF-8.
    """

    charset: str
    collation: str

    @property
    def by_bytes(self) -> bool:
        """Whether texts with any different byte differ, except for spaces at the end."""
        return self.collation == "binary" or self.collation.endswith("_bin")

    def literal(self, text: bytes) -> bytes:
        """Return a text as SQL; its introducer is the collation's charset."""
        column = TargetColumn("", Literal.TEXT, self.collation.partition("_")[0])
        return b"(%s COLLATE %s)" % (key_literal(column, escape(text)), self.collation.encode())


class TargetWeights:
    """Queries the sort weights of texts over a connection to the target.

    Weights are computed for the whole text. If spaces at the end do not count, they are removed
    from the texts and from their weights.
    """

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._paddings: dict[Comparing, tuple[bytes, bytes]] = {}

    def of(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        """Return for each text, in the target's charset, bytes that are the same for equal texts.

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

    def _padding(self, comparing: Comparing) -> tuple[bytes, bytes]:
        """Return a space and its part of the weights; both empty if spaces at the end count."""
        space, letter = (_encoded(text, comparing.charset) for text in " a")
        one, two = map(comparing.literal, (letter, letter + space))
        ((equal,),) = self._sessions.to("").rows(b"SELECT %s=%s" % (one, two))
        if not int(equal) or comparing.by_bytes:
            return space if int(equal) else b"", b""
        alone, first, both = self._weights(comparing, (space, letter, letter + space))
        # With several levels of weights, a space has a part in each level, and none is at the end.
        return space, alone if both == first + alone else b""

    def _weights(self, comparing: Comparing, texts: Sequence[bytes]) -> list[bytes]:
        asked = [b"HEX(WEIGHT_STRING(%s))" % comparing.literal(text) for text in texts]
        ((answer,),) = self._sessions.to("").rows(b"SELECT CONCAT_WS(',',%s)" % b",".join(asked))
        return [bytes.fromhex(part) for part in bytes(answer).decode().split(",")]


def _encoded(text: str, charset: str) -> bytes:
    """Encode an ASCII text; the charsets that Python does not know are supersets of ASCII."""
    try:
        return text.encode(codec(charset))
    except BinlogError:
        return text.encode()


def _trimmed(text: bytes, unit: bytes) -> bytes:
    end = len(text)
    while unit and end and end % len(unit) == 0 and text[end - len(unit) : end] == unit:
        end -= len(unit)
    return text[:end]
