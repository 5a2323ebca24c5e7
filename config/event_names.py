"""The names of events in filters.

Source: the TiDB Data Migration page "Binlog Event Filter".
"""

from __future__ import annotations

EVENT_NAMES = (
    "all",
    "all dml",
    "all ddl",
    "none",
    "none dml",
    "none ddl",
    "insert",
    "update",
    "delete",
    "create database",
    "alter database",
    "drop database",
    "create table",
    "alter table",
    "drop table",
    "truncate table",
    "rename table",
    "create index",
    "drop index",
    "drop column",
    "rename column",
    "rename index",
    "drop primary key",
    "modify default value",
    "modify constraint",
    "modify columns order",
    "modify storage engine",
    "add table partition",
    "drop table partition",
    "truncate table partition",
    "reorganize table partition",
    "rebuild table partition",
    "exchange table partition",
    "coalesce table partition",
)
"""The events that a filter can name."""

ROW_EVENT_NAMES = frozenset({"all", "all dml", "insert", "update", "delete"})
"""Those that are about rows, `all` among them."""

OTHER_NAMES = {
    "create schema": "create database",
    "drop schema": "drop database",
    "alter schema": "alter database",
    "truncate": "truncate table",
    "add index": "create index",
}
"""Second names of events."""

UNTELLABLE_NAMES = frozenset(
    {
        "incompatible ddl changes",
        "value range decrease",
        "precision decrease",
        "modify column",
        "modify charset",
        "modify collation",
        "remove auto increment",
        "drop unique key",
    }
)
"""Events of DM that the text of a statement alone does not tell."""

NO_EFFECT_NAMES = frozenset({"create view", "drop view", "split table partition"})
"""Events that are never carried over anyway: views, and what no source of ours writes."""


def event_name(text: str) -> str:
    """The name in `EVENT_NAMES` or `NO_EFFECT_NAMES` that a filter's text means.

    Raises ValueError for one that can't be used.
    """
    name = " ".join(text.lower().split())
    name = OTHER_NAMES.get(name, name)
    if name in UNTELLABLE_NAMES:
        raise ValueError(
            f"`{text}` is not supported: what the table was before decides it, and filters see the"
            " statement only. Name what the statement says (`alter table`, `drop column`, ...), or"
            " write a `sql-pattern`"
        )
    if name not in EVENT_NAMES and name not in NO_EFFECT_NAMES:
        raise ValueError(f"`{text}` is no event; there are: {', '.join(EVENT_NAMES)}")
    return name
