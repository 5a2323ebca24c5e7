"""One spelling for statements that servers treat as the same change of a table.

According to the manuals ("ALTER TABLE", "CREATE INDEX") these are equal: INDEX and KEY, an action
with and without COLUMN, CREATE INDEX and ADD INDEX, DROP INDEX and its action, CHANGE to the same
name and MODIFY. Definitions of columns are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.retarget import splice
from replicator.mysql.names import folded

_KINDS = ("UNIQUE", "FULLTEXT", "SPATIAL")
_KEYS = ("INDEX", "KEY")
_COLUMNS = ("ADD", "DROP", "MODIFY", "CHANGE", "ALTER")


def plain_spelling(statement: ParsedStatement) -> str:
    """Return a statement in its plain spelling, or unchanged if it has no other spelling."""
    match statement.kind:
        case StatementKind.ALTER_TABLE:
            edits = [edit for action in alter_actions(statement) for edit in _edits(action)]
            return splice(statement.sql, edits)
        case StatementKind.CREATE_INDEX | StatementKind.DROP_INDEX:
            return _as_alter(statement) or statement.sql
    return statement.sql


def _as_alter(statement: ParsedStatement) -> str:
    """Return the ALTER TABLE of a CREATE or DROP INDEX without further clauses, or ""."""
    (table, *_) = statement.named(TableRole.SUBJECT)
    outside = [s for s in statement.tokens if not _within(s, statement.omitted)]
    head = _without_guard([token for token in outside if token.end <= table.span.start])
    rest = [token for token in outside if token.start >= table.span.end]
    words = [token.keyword for token in head]
    sql = statement.sql
    name, target = sql[table.span.start : table.span.end], head[-2].text if len(head) > 2 else ""
    if words[:2] == ["DROP", "INDEX"] and len(words) == 4 and not rest:
        return f"ALTER TABLE {name} DROP KEY {target}"
    kinds = words[1:-3]
    if words[-3:-2] != ["INDEX"] or words[:1] != ["CREATE"] or len(kinds) > 1 or not rest:
        return ""
    if any(kind not in _KINDS for kind in kinds) or rest[0].text != "(" or rest[-1].text != ")":
        return ""
    parts = sql[rest[0].start : rest[-1].end]
    return f"ALTER TABLE {name} ADD {kinds[0] if kinds else 'KEY'} {target} {parts}"


def _without_guard(tokens: list[Token]) -> list[Token]:
    words = [token.keyword for token in tokens]
    if "IF" not in words or "EXISTS" not in words:
        return tokens
    return tokens[: words.index("IF")] + tokens[words.index("EXISTS") + 1 :]


def _within(token: Token, spans: Sequence[Span]) -> bool:
    return any(span.start <= token.start < span.end for span in spans)


def _edits(action: Sequence[Token]) -> Iterator[tuple[Span, str]]:
    words = [token.keyword for token in action]
    first, left = words[0], list(action)
    if first in _COLUMNS and words[1:2] == ["COLUMN"] and len(action) > 2:
        yield _span(action[1]), ""
        del left[1]
    words = [token.keyword for token in left]
    named = len(left) > 3 and left[1].is_name and left[2].is_name
    if first == "CHANGE" and named and folded(left[1].name) == folded(left[2].name):
        yield _span(left[0]), "MODIFY"
        yield _span(left[1]), ""
    elif first in ("ADD", "DROP") and words[1:2] == ["INDEX"]:
        yield _span(left[1]), "KEY"
    elif first == "ADD" and len(left) > 3 and words[1] in _KINDS and words[2] in _KEYS:
        yield _span(left[2]), ""


def _span(token: Token) -> Span:
    return Span(token.start, token.end)
