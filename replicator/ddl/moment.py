"""Statements whose effect on rows depends on when they are executed, and in which time zone."""

from __future__ import annotations

from itertools import pairwise

from replicator.ddl.tokens import tokenise

_MOMENTS = frozenset(
    {"now", "current_timestamp", "localtime", "localtimestamp", "current_date", "current_time"}
    | {"curdate", "curtime", "sysdate", "utc_timestamp", "utc_date", "utc_time"}
    | {"uuid", "uuid_short", "rand", "unix_timestamp"}
)
_TIMES = frozenset({"timestamp", "datetime", "date", "time", "year"})


def converts_times(sql: str) -> bool:
    """Whether a statement may convert times of rows, which the session's time zone decides on.

    A TIMESTAMP is kept in UTC: what becomes one, or is made from one, is converted.
    """
    words = {token.keyword.lower() for token in tokenise(sql)}
    return not words.isdisjoint(("modify", "change")) and not words.isdisjoint(_TIMES)


def fills_in_moment(text: str) -> bool:
    """Whether a normalised statement adds a column whose default depends on the moment.

    The rows that are there already get that value: the target's need not be those of the shards.
    """
    words = text.split()
    defaults = (after for before, after in pairwise(words) if before in ("default", "("))
    return "add" in words and any(word in _MOMENTS for word in defaults)
