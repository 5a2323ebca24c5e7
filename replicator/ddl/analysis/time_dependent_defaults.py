"""Statements whose effect on rows depends on when they are executed, and in which time zone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.parser.tokens import tokenise

_MOMENTS = frozenset(
    {"now", "current_timestamp", "localtime", "localtimestamp", "current_date", "current_time"}
    | {"curdate", "curtime", "sysdate", "utc_timestamp", "utc_date", "utc_time"}
    | {"unix_timestamp"}
)
_TIMES = frozenset({"timestamp", "datetime", "date", "time", "year"})


def converts_times(sql: str) -> bool:
    """Whether a statement may convert times of rows, which the session's time zone decides on.

    A TIMESTAMP is kept in UTC: what becomes one, or is made from one, is converted.
    """
    words = {token.keyword.lower() for token in tokenise(sql)}
    return not words.isdisjoint(("modify", "change")) and not words.isdisjoint(_TIMES)


def fixes_the_time(text: str) -> bool:
    """Whether a normalised statement adds a column whose default depends on the moment.

    The rows that are there already get that value: the target's need not be those of the shards.
    What is another value at each execution is not meant
    (`replicator.ddl.analysis.nondeterministic_defaults`).
    """
    words = text.split()
    return "add" in words and any(not _MOMENTS.isdisjoint(found) for found in _defaults(words))


def _defaults(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """What stands behind DEFAULT: a word, and what is in parentheses behind it or around it."""
    for first in (place + 1 for place, word in enumerate(words) if word == "default"):
        depth, last = 0, first
        for last in range(first, len(words)):
            depth += (words[last] == "(") - (words[last] == ")")
            opens = last == first and words[last + 1 : last + 2] == ["("]
            if depth <= 0 and not opens:
                break
        yield words[first : last + 1]
