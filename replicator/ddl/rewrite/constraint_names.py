"""The names of constraints in a statement for a target.

Servers name a constraint without a name after its table: `t1_ibfk_1`, `t1_chk_1` (MySQL's manual,
"FOREIGN KEY Constraints" and "CHECK Constraints"). On the target, the same constraint has another
name.

In `CONSTRAINT f FOREIGN KEY i (…)`, servers ignore the name `i`. MariaDB, however, uses it for the
key if an ALTER TABLE adds the key with `foreign_key_checks=0`, as the task does (seen on 10.11).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.statement import ParsedStatement, Span, StatementKind, TableRole
from replicator.ddl.parser.tokens import Token
from replicator.ddl.rewrite.retarget import splice
from replicator.mysql.names import TableName, folded, quote

Keys = Sequence[ForeignKeyDefinition]

_GIVEN = re.compile(r".*(_(?:ibfk|chk)_\d+)")
_MADE = re.compile(r"constraint_\d+|.*_chk_\d+")
"""The name of a CHECK that MariaDB or MySQL generated."""
_DEFINING = (StatementKind.ALTER_TABLE, StatementKind.CREATE_TABLE)
_FOREIGN_KEY = ["FOREIGN", "KEY"]
_DROPS = (["DROP", "FOREIGN", "KEY"], ["DROP", "CONSTRAINT"])
_CHECK_DROPS = (["DROP", "CHECK"], ["DROP", "CONSTRAINT"])


def constraint_edits(statement: ParsedStatement, target: TableName) -> list[tuple[Span, str]]:
    """Return the edits that give the constraints in a statement their names on the target."""
    ignored = _ignored_names(statement)
    spans = [span for span, _ in ignored]
    return [*ignored, *(edit for edit in _given_names(statement, target) if edit[0] not in spans)]


def foreign_key_names(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """Return the edits that remove the names of foreign keys, which are unique in a schema."""
    return [(span, "") for _, span in _named(statement, _FOREIGN_KEY)]


def without_names(
    statement: ParsedStatement, keys: Collection[str], checks: Collection[str]
) -> str:
    """Return a statement without these names of constraints; the server will generate new names.

    Args:
        keys: folded names of foreign keys.
        checks: folded names of CHECK constraints.
    """
    found = [(named, keys) for named in _named(statement, _FOREIGN_KEY)]
    found += [(named, checks) for named in _named(statement, ["CHECK"])]
    edits = [(span, "") for (name, span), names in found if folded(name) in names]
    return splice(statement.sql, sorted(edits, key=lambda edit: edit[0].start))


def _named(statement: ParsedStatement, what: Sequence[str]) -> list[tuple[str, Span]]:
    """Return the names of constraints of a kind, each with the span of `CONSTRAINT name`."""
    tokens = statement.tokens
    words = [token.keyword for token in tokens]
    return [
        (tokens[at + 1].name, Span(tokens[at].start, tokens[at + 1].end))
        for at, word in enumerate(words)
        if word == "CONSTRAINT" and words[at + 2 : at + 2 + len(what)] == what
    ]


def renamed_checks(statement: ParsedStatement, names: Mapping[str, str]) -> str:
    """Return a statement that drops CHECK constraints by other names.

    Args:
        names: the other name for each folded name in the statement.
    """
    if statement.kind is not StatementKind.ALTER_TABLE:
        return statement.sql
    found = (_dropped(action, _CHECK_DROPS) for action in alter_actions(statement))
    return splice(
        statement.sql,
        [
            (Span(token.start, token.end), quote(names[folded(token.name)]))
            for token in found
            if token is not None and folded(token.name) in names
        ],
    )


def without_check_names(statement: ParsedStatement) -> str | None:
    """Return a CREATE TABLE without the names that servers generated for its CHECK constraints.

    Returns None if a user chose one of the names: in MySQL, such a name is unique in its schema,
    and another target may already have it.
    """
    tokens = statement.tokens
    edits = []
    for at, token in enumerate(tokens):
        if token.keyword != "CHECK" or at < 2 or tokens[at - 2].keyword != "CONSTRAINT":
            continue
        if _MADE.fullmatch(folded(tokens[at - 1].name)) is None:
            return None
        edits.append((Span(tokens[at - 2].start, tokens[at - 1].end), ""))
    return splice(statement.sql, edits)


def _ignored_names(statement: ParsedStatement) -> list[tuple[Span, str]]:
    """Return the edits that remove the second name of a foreign key with two names."""
    if statement.kind not in _DEFINING:
        return []
    words = [token.keyword for token in statement.tokens]
    found = []
    for at, (token, following) in enumerate(pairwise(statement.tokens)):
        named = at > 3 and words[at - 4] == "CONSTRAINT" and words[at - 2 : at] == _FOREIGN_KEY
        if named and token.is_name and following.text == "(":
            found.append((Span(token.start, token.end), ""))
    return found


def _given_names(statement: ParsedStatement, target: TableName) -> list[tuple[Span, str]]:
    """Return the edits that replace names generated by the shard's server by the target's."""
    subject = statement.named(TableRole.SUBJECT)
    if statement.kind not in _DEFINING or not subject or subject[0].table == target.table:
        return []
    given = re.compile(re.escape(folded(subject[0].table)) + r"(_(?:ibfk|chk)_\d+)")
    tables = [table.span for table in statement.tables]
    return [
        (Span(token.start, token.end), quote(f"{target.table}{match[1]}"))
        for token in statement.tokens
        if token.is_name and (match := given.fullmatch(folded(token.name)))
        if not any(span.start <= token.start < span.end for span in tables)
    ]


def present_keys(statement: ParsedStatement, own: Keys, there: Keys) -> str:
    """Return a statement that drops foreign keys by their names on the target.

    A key that the target never had is not dropped. Returns an empty text if no action is left.

    Args:
        own: the foreign keys of the shard before the statement.
        there: the foreign keys of the target.
    """
    if statement.kind is not StatementKind.ALTER_TABLE:
        return statement.sql
    actions, left, edits = alter_actions(statement), list(there), []
    kept = []
    for action in actions:
        name = _dropped(action, _DROPS)
        key = None if name is None else _key_of(own, name.name)
        if name is None or key is None:
            kept.append(action)
        elif (found := _same(left, key, name.name)) is not None:
            left.remove(found)
            kept.append(action)
            if folded(found.name) != folded(name.name):
                edits.append((Span(name.start, name.end), quote(found.name)))
    if len(kept) == len(actions):
        return splice(statement.sql, edits)
    texts = [_text(statement.sql, action, edits) for action in kept]
    return statement.sql[: actions[0][0].start] + ", ".join(texts) if texts else ""


def _text(sql: str, action: Sequence[Token], edits: Iterable[tuple[Span, str]]) -> str:
    start, end = action[0].start, action[-1].end
    own = [(Span(s.start - start, s.end - start), t) for s, t in edits if start <= s.start < end]
    return splice(sql[start:end], own)


def _dropped(action: Sequence[Token], drops: Iterable[Sequence[str]]) -> Token | None:
    """Return the name of the constraint that an action drops in one of these forms."""
    words = [token.keyword for token in action]
    for drop in drops:
        if words[: len(drop)] == drop:
            rest = action[len(drop) :]
            if words[len(drop) : len(drop) + 2] == ["IF", "EXISTS"]:
                rest = rest[2:]
            return rest[0] if len(rest) == 1 and rest[0].is_name else None
    return None


def _key_of(keys: Keys, name: str) -> ForeignKeyDefinition | None:
    """Return the key of this name, or the key whose generated name has the same ending."""
    exact = next((key for key in keys if folded(key.name) == folded(name)), None)
    end = _GIVEN.fullmatch(folded(name))
    if exact is not None or end is None:
        return exact
    return next((key for key in keys if folded(key.name).endswith(end[1])), None)


def _same(keys: Keys, wanted: ForeignKeyDefinition, name: str) -> ForeignKeyDefinition | None:
    """Return the key over the same columns; of several, preferably the one of this name."""
    columns = [*map(folded, wanted.columns)], [*map(folded, wanted.parent_columns)]
    alike = [
        k for k in keys if ([*map(folded, k.columns)], [*map(folded, k.parent_columns)]) == columns
    ]
    named = (key for key in alike if folded(key.name) == folded(name))
    return next(named, next(iter(alike), None))
