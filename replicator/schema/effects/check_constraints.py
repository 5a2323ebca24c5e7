"""Enforced CHECK constraints of tables, compared by their expressions.

A CHECK refuses rows, as a unique key does. So the target has one only while the rows of all shards
satisfy it. Servers write the same expression in several ways: with more parentheses, texts with
their charset, ``!=`` for ``<>``. MariaDB stores a CHECK in the definition of its column; MySQL and
TiDB turn it into a CHECK of the table.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.mysql.names import folded
from replicator.schema.effects.column_values import items_of, text_of, with_items
from replicator.schema.effects.expression_forms import expression_form, expression_tree
from replicator.schema.structure.structure import Table

_JSON = "json_valid "


@dataclass(frozen=True, slots=True)
class CheckConstraint:
    """An enforced CHECK.

    Attributes:
        name: empty for a CHECK in the definition of a column.
        column: folded name of the column with the CHECK in its definition; otherwise empty.
        expression: its text, with parentheses; compared by `form`.
    """

    name: str
    column: str
    expression: str
    form: str


@lru_cache(maxsize=4096)
def check_constraints(table: Table) -> Sequence[CheckConstraint]:
    """Return the enforced CHECK constraints of a table."""
    definition = table.definition
    found = [
        (folded(column.name), column.check) for column in definition.columns if column.check
    ] + [("", check) for check in definition.checks]
    return [
        CheckConstraint(check.name, column, check.text, form_of(check.text))
        for column, check in found
        if check.enforced
    ]


def check_clause(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens CHECK ( … ) of a definition; none if it has no CHECK."""
    depth, begin = 0, None
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if begin is None and depth == 0 and token.keyword == "CHECK":
            begin = place
        elif begin is not None and depth == 0:
            return tokens[begin : place + 1]
    return ()


def check_text(create_sql: str, tokens: Sequence[Token]) -> str:
    """Return the CHECK of a definition with a leading space; empty if it has none."""
    clause = check_clause(tokens)
    return f" {create_sql[clause[0].start : clause[-1].end]}" if clause else ""


def _is_idle(item: Sequence[Token], clause: Sequence[Token]) -> bool:
    words = [token.keyword for token in item if token.start > clause[-1].start]
    return words[:2] == ["NOT", "ENFORCED"]


def without_check(create_sql: str, tokens: Sequence[Token]) -> str:
    """Return the text of these tokens of a definition, without its CHECK."""
    clause = check_clause(tokens)
    if not clause:
        return text_of(create_sql, tokens)
    pieces = [
        [token for token in tokens if token.start < clause[0].start],
        [token for token in tokens if token.start > clause[-1].start],
    ]
    return " ".join(text_of(create_sql, some) for some in pieces if some)


def without_checks_of(create_sql: str, columns: Collection[str]) -> str:
    """Return a CREATE statement without the CHECKs in the definitions of these folded columns."""
    for item in reversed(items_of(create_sql)):
        if _column_of(item) in columns and (clause := check_clause(item)):
            create_sql = create_sql[: clause[0].start].rstrip() + create_sql[clause[-1].end :]
    return create_sql


def with_column_checks(create_sql: str, before: str) -> str:
    """Return a CREATE statement with CHECKs in the definitions of the same columns as in `before`.

    Servers other than MariaDB turn them into CHECKs of the table, which remain when the column
    changes.
    """
    items = items_of(create_sql)
    wanted = {
        form_of(before[clause[1].start : clause[-1].end]): name
        for item in items_of(before)
        if (name := _column_of(item)) and (clause := check_clause(item))
    }
    if not wanted:
        return create_sql
    unchecked = {_column_of(item) for item in items if not check_clause(item)} - {""}
    moved: dict[str, str] = {}
    kept = []
    for item in items:
        clause = check_clause(item) if item[0].keyword == "CONSTRAINT" else ()
        text = create_sql[clause[1].start : clause[-1].end] if clause else ""
        name = wanted.get(form_of(text), "") if text and not _is_idle(item, clause) else ""
        if name in unchecked and name not in moved:
            moved[name] = text
        else:
            kept.append(item)
    return with_items(
        create_sql,
        [
            text_of(create_sql, item)
            + (f" CHECK {moved[name]}" if (name := _column_of(item)) in moved else "")
            for item in kept
        ],
    )


def _column_of(item: Sequence[Token]) -> str:
    return folded(item[0].name) if item[0].kind is TokenKind.QUOTED else ""


def json_column(form: str) -> str:
    """Return the column that a CHECK declares as MariaDB's type JSON; empty for other CHECKs."""
    return form.removeprefix(_JSON) if form.startswith(_JSON) else ""


def form_of(expression: str) -> str:
    """Return the form in which a CHECK's expression is compared."""
    match expression_tree(expression):
        case ["anonymous", ("expressions", [["column", ("this", str(column))]]), ("this", name)]:
            if name == _JSON.strip():
                return f"{_JSON}{column}"
    return expression_form(expression)
