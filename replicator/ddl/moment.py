"""Statements that fill a new column with something that differs from one execution to the next."""

from __future__ import annotations

from itertools import pairwise

_MOMENTS = frozenset(
    {"now", "current_timestamp", "localtime", "localtimestamp", "current_date", "current_time"}
    | {"curdate", "curtime", "sysdate", "utc_timestamp", "utc_date", "utc_time"}
    | {"uuid", "uuid_short", "rand", "unix_timestamp"}
)


def fills_in_moment(text: str) -> bool:
    """Whether a normalised statement adds a column whose default depends on the moment.

    The rows that are there already get that value: the target's need not be those of the shards.
    """
    words = text.split()
    defaults = (after for before, after in pairwise(words) if before in ("default", "("))
    return "add" in words and any(word in _MOMENTS for word in defaults)
