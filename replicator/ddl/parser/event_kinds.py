"""The kinds of event that a statement is, by the names that event filters use.

Source of the names: the TiDB Data Migration page "Binlog Event Filter".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.mysql.names import folded

_DROPPED = {
    "INDEX": "drop index",
    "KEY": "drop index",
    "PRIMARY": "drop primary key",
    "FOREIGN": "modify constraint",
    "CONSTRAINT": "modify constraint",
    "CHECK": "modify constraint",
    "PARTITION": "drop table partition",
    "PERIOD": "",
    "SYSTEM": "",
}
_ADDED = {
    "CONSTRAINT": "modify constraint",
    "FOREIGN": "modify constraint",
    "CHECK": "modify constraint",
    "PARTITION": "add table partition",
}
_OF_PARTITIONS = ("TRUNCATE", "REORGANIZE", "REBUILD", "EXCHANGE", "COALESCE")
_NAMED_PARTS = {"COLUMN": "rename column", "INDEX": "rename index", "KEY": "rename index"}


def event_kinds(statement: ParsedStatement) -> frozenset[str]:
    """The names of a DDL statement: one for what it is, more for what an ALTER TABLE does.

    Only what the text tells: whether a MODIFY makes a column narrower depends on what it was.
    """
    kinds = {statement.kind.value}
    if statement.kind is StatementKind.ALTER_TABLE:
        for action in alter_actions(statement):
            kinds.update(_of_action([token.keyword for token in action], action))
    return frozenset(filter(None, kinds))


def _of_action(words: list[str], action: Sequence[Token]) -> Iterator[str]:
    verb, following = words[0], words[1] if len(words) > 1 else ""
    if verb == "DROP":
        yield _DROPPED.get(following, "drop column")
    elif verb == "ADD":
        yield _ADDED.get(following, "")
    elif verb in _OF_PARTITIONS and following == "PARTITION":
        yield f"{verb.lower()} table partition"
    elif verb == "RENAME":
        yield _NAMED_PARTS.get(following, "rename table")
    elif verb == "ALTER" and "DEFAULT" in words:
        yield "modify default value"
    elif verb in ("CHANGE", "MODIFY"):
        if verb == "CHANGE" and _renames(action):
            yield "rename column"
        if words[-1] == "FIRST" or (len(words) > 1 and words[-2] == "AFTER"):
            yield "modify columns order"
    if "ENGINE" in words:
        yield "modify storage engine"


def _renames(action: Sequence[Token]) -> bool:
    names = [token for token in action[1:] if token.keyword not in ("COLUMN", "IF", "EXISTS")]
    return len(names) > 1 and folded(names[0].name) != folded(names[1].name)
