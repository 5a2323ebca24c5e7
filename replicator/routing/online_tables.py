"""Tables that tools for online schema changes make beside a real one, recognized by their names.

gh-ost and pt-online-schema-change build the new structure in a *ghost table*, copy the rows into it
and give it the real table's name; the old table becomes a *trash table* (their manuals; the default
rules are those of the TiDB Data Migration page "Migrate from Databases that Use GH-ost/PT-osc").
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class OnlineUse(StrEnum):
    """The purpose of a table."""

    GHOST = "ghost"
    TRASH = "trash"


@dataclass(frozen=True, slots=True)
class OnlineTable:
    """A table that a tool made, by its name: its purpose, and the real table in its schema."""

    use: OnlineUse
    real: str


class OnlineNames:
    """The rules for names: regular expressions with one group, the real table's name.

    Raises ValueError for a rule that can't be used.
    """

    def __init__(self, ghosts: Iterable[str], trash: Iterable[str]) -> None:
        self._rules = [
            *((OnlineUse.GHOST, _compiled(rule)) for rule in ghosts),
            *((OnlineUse.TRASH, _compiled(rule)) for rule in trash),
        ]

    def read(self, table: str) -> OnlineTable | None:
        """Return the purpose of a table by its name; None if no rule matches it."""
        for use, rule in self._rules:
            found = rule.match(table)
            if found is not None and found[1]:
                return OnlineTable(use, found[1])
        return None


NO_ONLINE_NAMES = OnlineNames((), ())
"""Rules by which no table counts as made by a tool."""


def _compiled(rule: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(rule)
    except re.error as error:
        raise ValueError(f"the rule {rule!r} is not valid: {error}") from error
    if compiled.groups != 1:
        raise ValueError(f"the rule {rule!r} needs exactly one group: the real table's name")
    return compiled
