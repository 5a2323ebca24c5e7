"""Foreign keys that are written in a column's definition.

MariaDB since 10.5 and MySQL since 9.0 create a foreign key for `p INT REFERENCES parent (id)`;
older versions and TiDB accept the clause and ignore it (MySQL's manual, "FOREIGN KEY Constraints";
MariaDB's page "Foreign Keys"). In CREATE TABLE and ADD COLUMN it is the last part of the
definition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replicator.ddl.parser.alter_actions import alter_actions, in_brackets, of_action
from replicator.ddl.parser.definitions import text_of
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.retarget import splice
from replicator.mysql.names import quote

_NO_COLUMN = frozenset({"CONSTRAINT", "FOREIGN", "PRIMARY", "UNIQUE", "KEY", "INDEX", "CHECK"})
_PLACES = frozenset({"AFTER", "FIRST"})


def references_apart(statement: ParsedStatement, *, heeded: bool | None) -> str:
    """Return a statement whose foreign keys are all written as FOREIGN KEY … REFERENCES.

    A key that does not name the columns of its parent is not changed.

    Args:
        heeded: whether the server creates keys for clauses in columns; if not, the clauses are
            removed. None if unknown: the clauses are not changed.
    """
    edits: list[tuple[Span, str]] = []
    if heeded is not None and statement.named(TableRole.REFERENCED):
        for column, definition, word in _columns(statement):
            edits += _edits(statement.sql, column, definition, word if heeded else None)
    return splice(statement.sql, edits)


def _columns(statement: ParsedStatement) -> Iterator[tuple[Token, Sequence[Token], str]]:
    """Yield the columns that a statement adds: name, definition, and the word before a key."""
    if statement.kind is StatementKind.CREATE_TABLE:
        subject = statement.named(TableRole.SUBJECT)[0]
        behind = [token for token in statement.tokens if token.start >= subject.span.end]
        if behind and behind[0].text == "(":
            for column, definition in in_brackets(behind):
                yield column, definition, ""
    elif statement.kind is StatementKind.ALTER_TABLE:
        for action in alter_actions(statement):
            if action[0].keyword != "ADD":
                continue
            for column, definition in of_action(action):
                # The last token of an ADD (…) is the closing bracket.
                inside = not definition or definition[-1] != action[-1]
                yield column, definition, "" if inside else "ADD "


def _edits(
    sql: str, column: Token, definition: Sequence[Token], word: str | None
) -> Iterator[tuple[Span, str]]:
    """Yield the edits of a column's key; ``word`` comes before the key, None removes the key."""
    words = [token.keyword for token in definition]
    if column.keyword in _NO_COLUMN or "REFERENCES" not in words:
        return
    clause = words.index("REFERENCES")
    named = next((n for n in (1, 2) if words[max(clause - n, 0)] == "CONSTRAINT"), 0)
    start, end = clause - named, len(words)
    end = next((n for n in range(clause, end) if words[n] in _PLACES), end)
    own = definition[start:end]
    gone = Span(([column, *definition][start]).end, own[-1].end)
    unclear = word is not None and not any(token.text == "(" for token in own)
    if unclear or any(mark in sql[gone.start : gone.end] for mark in ("/*", "*/")):
        return
    yield gone, ""
    if word is not None:
        name = text_of(sql, definition[start:clause])
        key = f"FOREIGN KEY ({quote(column.name)}) {text_of(sql, definition[clause:end])}"
        place = definition[-1].end
        yield Span(place, place), f", {word}{f'{name} ' if name else ''}{key}"
