"""Comparison of open statements of several members: whether they make the same change.

Their texts are compared without the positions of columns. Statements that rename columns may also
differ in their words: CHANGE and RENAME COLUMN are equal if no row shows a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind
from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.normalise import normalise
from replicator.mysql.names import folded
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.session_settings import settings_of
from replicator.schema.effects.touched_parts import touched_parts
from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.shapes import shape_of


def without_positions(statement: ParsedStatement) -> ParsedStatement:
    """Return a statement without the positions of its columns, for comparison."""
    return _without(statement, _positions(statement))


def renaming_form(
    statement: ParsedStatement, change: MemberChange, context: StatementContext
) -> str:
    """Return a form of a statement that renames columns, for comparison.

    It contains the columns before and after the statement instead of the words for them. The result
    is empty for other statements or unknown structures. Defaults and comments are omitted, since no
    row depends on them.
    """
    before, after = change.before, change.after
    if statement.kind is not StatementKind.ALTER_TABLE or before is None or after is None:
        return ""
    definitions, senses = [*_positions(statement)], set[str]()
    for action in alter_actions(statement):
        names = _names(action)
        if names is None:
            continue
        pair = [_sense(before, names[0]), _sense(after, names[1])]
        if not all(pair):
            return ""
        senses.add(f"{names} {pair}")
        definitions.append(_span(action))
    if not touched_parts(statement, MemberChange(None, None)).renamed:
        return ""
    settings = settings_of(statement, before, context)
    return "\n".join([normalise(_without(statement, definitions)), settings, *sorted(senses)])


def _names(action: Sequence[Token]) -> tuple[str, str] | None:
    """Return the folded names, before and after, of a column that is renamed or redefined."""
    word = action[0].keyword
    names = [folded(token.name) for token in action[1:] if token.keyword not in _WORDS]
    if word == "CHANGE" or (word == "RENAME" and action[1].keyword == "COLUMN"):
        return names[0], names[1]
    return (names[0], names[0]) if word == "MODIFY" else None


_WORDS = frozenset({"COLUMN", "IF", "EXISTS", "TO"})


def _sense(table: Table, name: str) -> str:
    found = shape_of(table).columns.get(name)
    return "" if found is None else repr(found.sense)


def _positions(statement: ParsedStatement) -> Iterator[Span]:
    """Yield the FIRST or AFTER of each column that is added or redefined."""
    if statement.kind is not StatementKind.ALTER_TABLE:
        return
    for action in alter_actions(statement):
        if action[0].keyword in ("ADD", "CHANGE", "MODIFY"):
            if len(action) > 3 and action[-1].keyword == "FIRST":
                yield _span(action[-1:])
            elif len(action) > 4 and action[-2].keyword == "AFTER":
                yield _span(action[-2:])


def _span(tokens: Sequence[Token]) -> Span:
    return Span(tokens[0].start, tokens[-1].start + len(tokens[-1].text))


def _without(statement: ParsedStatement, spans: Iterable[Span]) -> ParsedStatement:
    return replace(statement, omitted=(*statement.omitted, *spans))
