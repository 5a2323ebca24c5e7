"""Values that all rows of a shard have on the target: in extracted and mapped columns."""

from __future__ import annotations

import json
from dataclasses import dataclass

from replicator.routing.columns.member_columns import MemberColumns


@dataclass(frozen=True, slots=True)
class RowMarks:
    """Values that all rows of a shard have on the target.

    Attributes:
        extracted: names of extracted columns, with the value in each.
        mapped: name of the mapped column, and the bits that are added to its values.
    """

    extracted: tuple[tuple[str, str], ...] = ()
    mapped: tuple[str, int] | None = None

    def text(self) -> str:
        """The marks as text; empty if there are none."""
        if not self.extracted and self.mapped is None:
            return ""
        return json.dumps({"extracted": self.extracted, "mapped": self.mapped})


NO_MARKS = RowMarks()
"""Nothing is known that all rows have in common."""


def load_marks(text: str) -> RowMarks:
    """Return the marks from their text."""
    if not text:
        return NO_MARKS
    found = json.loads(text)
    mapped = found["mapped"]
    return RowMarks(
        tuple((name, value) for name, value in found["extracted"]),
        None if mapped is None else (str(mapped[0]), int(mapped[1])),
    )


def marks_of_rules(rules: MemberColumns) -> RowMarks:
    """Return the values that all rows of a shard with these rules have."""
    mapped = rules.mapped
    return RowMarks(
        tuple((column.name, column.value) for column in rules.extracted),
        (mapped.name, mapped.upper) if mapped is not None else None,
    )
