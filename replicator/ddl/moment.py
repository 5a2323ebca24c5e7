"""Statements whose effect on rows depends on when they are executed, and in which time zone."""

from __future__ import annotations

from itertools import pairwise

from replicator.ddl.tokens import tokenise

_MOMENTS = frozenset(
    {"now", "current_timestamp", "localtime", "localtimestamp", "current_date", "current_time"}
    | {"curdate", "curtime", "sysdate", "utc_timestamp", "utc_date", "utc_time"}
    | {"uuid", "uuid_short", "rand", "unix_timestamp"}
)
_ZONED = (_MOMENTS | {"timestamp", "datetime", "date", "time", "year", "from_unixtime"}) - {
    "uuid",
    "uuid_short",
    "rand",
    "utc_timestamp",
    "utc_date",
    "utc_time",
}
"""Types and functions whose values are converted between a time zone and UTC, or cut from one."""


def depends_on_zone(sql: str) -> bool:
    """Whether the session's time zone can decide on values that a statement writes.

    A TIMESTAMP is kept in UTC: any other type that becomes one, or is made from one, is converted.
    """
    return any(token.keyword.lower() in _ZONED for token in tokenise(sql))


def fills_in_moment(text: str) -> bool:
    """Whether a normalised statement adds a column whose default depends on the moment.

    The rows that are there already get that value: the target's need not be those of the shards.
    """
    words = text.split()
    defaults = (after for before, after in pairwise(words) if before in ("default", "("))
    return "add" in words and any(word in _MOMENTS for word in defaults)
