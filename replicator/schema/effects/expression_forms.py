"""Expressions of CHECKs and generated columns in a form that does not depend on the server.

Servers write the same expression in several ways: with more parentheses, texts with their charset,
other names of functions (``ucase`` for UPPER in MariaDB, ``upper`` in MySQL, the written name in
TiDB), ``0 = a`` for NOT a. Equal forms have the same meaning.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from replicator.ddl.parser.tokens import TokenKind, tokenise
from replicator.mysql.names import folded

_INTRODUCERS = frozenset({"_UTF8MB4", "_UTF8MB3", "_UTF8"})
"""Charsets that servers add to texts in the charset of the session."""
_NAMED_CHARSET = re.compile(r"(?<=[rR)]) charset utf8(?:mb[34])?(?=\))", re.IGNORECASE)
"""The charset that MySQL and MariaDB add to a CAST to a text."""
_OPPOSITE = {"eq": "neq", "lt": "gte", "gt": "lte", "and": "or"}
_OPPOSITE |= {other: one for one, other in _OPPOSITE.items()}
_TRUTH = {"eq": False, "neq": True}
"""Whether a comparison of a value with 0 returns the value itself (True) or its negation."""
_SAME = {"day": "dayofmonth"}
_CASTS = {"tsordstodate": "date", "time": "time"}
_ADDING = {"dateadd": "add", "datesub": "sub", "timestampadd": "add"}

Form = list[Any]
"""A node: its kind, and its parts in order as pairs of name and form."""


def expression_form(expression: str) -> str:
    """Return the form in which an expression is compared; its words if it can't be parsed."""
    return repr(expression_tree(expression))


@lru_cache(maxsize=4096)
def expression_tree(expression: str) -> Form:
    """Return an expression as a tree, or its words if it can't be parsed. Do not modify it."""
    # Imported late, because loading the parser is slow and many tasks have no expressions.
    import sqlglot
    from sqlglot.errors import SqlglotError

    words = list(_words(expression))
    try:
        # Parsed as a column of a query, since REPLACE (…) alone would be a statement.
        tree = sqlglot.parse_one(f"SELECT {' '.join(words)}", read="mysql")
    except SqlglotError:
        return [word for word in words if word not in "()"]
    found: Form = _form(tree.args["expressions"][0])
    return found


def _words(expression: str) -> list[str]:
    """Return the words of an expression, without the charsets of texts."""
    tokens = tokenise(_NAMED_CHARSET.sub("", expression))
    found = []
    for place, token in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else None
        if token.keyword in _INTRODUCERS and following and following.kind is TokenKind.STRING:
            continue
        named = place > 0 and tokens[place - 1].keyword == "USING"
        found.append(token.text[1:-1] if named and token.kind is TokenKind.STRING else token.text)
    return found


def _form(node: Any) -> Any:
    from sqlglot import expressions as kinds

    match node:
        case list():
            return [_form(one) for one in node]
        case kinds.Paren() | kinds.National():
            return _form(node.this)
        case kinds.Identifier():
            return folded(node.name)
        case kinds.Var():
            return node.name.upper()
        case kinds.Boolean():
            return _number("1" if node.this else "0")
        case kinds.Literal():
            return _text(node.name) if node.is_string else _number(node.name)
        case kinds.HexString():
            return _text(bytes.fromhex(_even(node.name)).decode("latin-1"))
        case kinds.BitString():
            return _text(bytes.fromhex(_even(f"{int(node.name, 2):x}")).decode("latin-1"))
        case kinds.Cast():
            return ["cast", ("this", _form(node.this)), ("to", _type(node.to))]
        case kinds.DataType():
            return _type(node)
        case kinds.Expression():
            return _one_way(_parts(node))
    return node


def _parts(node: Any) -> Form:
    parts = {name: _form(part) for name, part in node.args.items() if part not in (None, False, [])}
    negated = parts.pop("negate", False)
    found = [_SAME.get(node.key, node.key), *sorted(parts.items(), key=lambda part: part[0])]
    return ["not", ("this", found)] if negated else found


def _one_way(form: Form) -> Any:
    """Return a node in the common form of all servers."""
    kind, parts = form[0], dict(form[1:])
    this, other = parts.get("this"), parts.get("expression")
    if kind == "not":
        return _negated(this)
    if kind in _TRUTH and _number("0") in (this, other):
        value = other if this == _number("0") else this
        return value if _TRUTH[kind] else _negated(value)
    if kind in _CASTS and parts.keys() == {"this"}:
        return ["cast", ("this", this), ("to", _CASTS[kind])]
    if kind in _ADDING:
        if isinstance(other, list) and other[0] == "number":
            other = _text(other[1])
        interval = ["interval", ("this", other), ("unit", parts.get("unit", "DAY"))]
        return [_ADDING[kind], ("expression", interval), ("this", this)]
    if kind == "datediff" and "date_part_boundary" in parts:
        return ["sub", ("expression", _days(other)), ("this", _days(this))]
    if kind == "round" and parts.get("decimals") == _number("0"):
        return [kind, ("this", this)]
    if kind == "jsonvalue" and parts.get("returning") == "char(512)":
        return [part for part in form if part[0] != "returning"]
    if kind == "anonymous":
        return _function(str(this).lower(), parts.get("expressions", []))
    return form


def _function(name: str, arguments: list[Any]) -> Form:
    """Return a function that the parser knows only by another name."""
    match name, arguments:
        case "octet_length", [text]:
            return ["length", ("binary", True), ("this", text)]
        case "mid", [text, start, length]:
            return ["substring", ("length", length), ("start", start), ("this", text)]
    return ["anonymous", ("expressions", arguments), ("this", name)]


def _negated(form: Any) -> Any:
    if isinstance(form, list):
        kind, parts = form[0], form[1:]
        if kind == "not":
            return dict(parts)["this"]
        if kind in ("and", "or"):
            return [_OPPOSITE[kind], *((name, _negated(part)) for name, part in parts)]
        if kind in _OPPOSITE:
            return [_OPPOSITE[kind], *parts]
    return ["not", ("this", form)]


def _days(value: Any) -> Form:
    """Return TO_DAYS of a value in the parser's form."""
    zero = ["cast", ("this", _text("0000-01-01")), ("to", "date")]
    since = ["cast", ("this", value), ("to", "date")]
    days = ["datediff", ("expression", zero), ("this", since), ("unit", "DAY")]
    return ["add", ("expression", _number("1")), ("this", days)]


def _type(datatype: Any) -> str:
    """Return the type of a CAST, or its charset; "char" for every form of UTF-8."""
    name = str(datatype.sql("mysql")).lower()
    if str(datatype.this).endswith("CHARACTER_SET"):
        charset = name.split()[-1]
        return "char" if charset.startswith("utf8") else charset
    return name


def _number(text: str) -> Form:
    return ["number", str(float(text)) if "e" in text.lower() else text]


def _text(text: str) -> Form:
    return ["text", text]


def _even(digits: str) -> str:
    return digits.zfill(len(digits) + len(digits) % 2)
