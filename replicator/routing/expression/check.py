"""Checks which expressions can be evaluated exactly, and refuses all others.

There is a check for each operator, function and pair of types that can be evaluated exactly. A
refusal names the place in the text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from replicator.routing.expression import functions
from replicator.routing.expression.comparison import (
    bound_to_literal,
    check_signs,
    comparable,
    compared,
)
from replicator.routing.expression.numbers import (
    absolute,
    calculated,
    negative,
    number,
    whole_number,
)
from replicator.routing.expression.text import ExpressionText
from replicator.routing.expression.types import (
    BOOLEAN,
    Call,
    Checked,
    Collation,
    FilterColumn,
    Kind,
    UnsupportedExpressionError,
    ValueType,
)

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expr as Expression

SUPPORTED = (
    "columns, numbers, texts, TRUE, FALSE, NULL; AND OR XOR NOT; = <=> <> < <= > >=, BETWEEN, IN,"
    " LIKE … ESCAPE, IS [NOT] NULL / TRUE / FALSE; + - * / DIV %; CASE, IF, IFNULL, COALESCE,"
    " NULLIF; LENGTH, CHAR_LENGTH, LOWER, UPPER, LEFT, RIGHT, SUBSTRING, CONCAT, TRIM, LTRIM,"
    " RTRIM; ABS, MOD; DATE, YEAR, MONTH, DAY, HOUR, MINUTE, SECOND; COLLATE, CAST(… AS BINARY)"
)
"""The possible parts of an expression, for messages and the reference page."""

Find = Callable[[str], FilterColumn | None]
FindCollation = Callable[[str], Collation | None]

_NULL = Checked(ValueType(Kind.NULL), Call("null"), "NULL")
_SIGNS = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_CALCULATIONS = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "IntDiv": "DIV", "Mod": "%"}
_LOGIC = ("And", "Or", "Xor")
_PARTS = {
    **{name.title(): name for name in ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")},
    "DayOfMonth": "DAY",
}

_ARGUMENTS = frozenset({"this", "expression", "expressions"})
_MORE_ARGUMENTS: dict[str, frozenset[str]] = {
    "Column": frozenset({"table", "db"}),
    "Literal": frozenset({"is_string"}),
    "Like": frozenset({"negate"}),
    "Between": frozenset({"low", "high"}),
    "In": frozenset({"query"}),
    "Case": frozenset({"ifs", "default"}),
    "If": frozenset({"true", "false"}),
    "Cast": frozenset({"to"}),
    "Substring": frozenset({"start", "length"}),
    "Trim": frozenset({"position"}),
    "Length": frozenset({"binary"}),
    "Concat": frozenset({"safe"}),
    "Div": frozenset({"typed", "safe"}),
}
"""By parser node, the attributes that this module handles: none may be ignored."""


class ExpressionCheck:
    """Checks one expression against the columns of a table.

    Args:
        find: returns a column by its name.
        collation_of: returns a collation by its name; None for an unknown one.
        columns: receives the columns of the expression, by name, in the order of their values in a
            row.
    """

    def __init__(
        self,
        text: ExpressionText,
        find: Find,
        collation_of: FindCollation,
        columns: dict[str, FilterColumn],
    ) -> None:
        self._text = text
        self._find = find
        self._collation_of = collation_of
        self._columns = columns

    def condition(self) -> Checked:
        """Check the whole expression, which must be a condition. Raises ExpressionError."""
        return self._condition(self._text.tree)

    def _value(self, node: Expression) -> Checked:
        """Check any part of an expression. Raises ExpressionError."""
        name = type(node).__name__
        handler = _HANDLERS.get(name)
        try:
            if handler is None:
                raise UnsupportedExpressionError(
                    f"not supported. An expression can have: {SUPPORTED}"
                )
            given = {key for key, value in node.args.items() if value}
            if strange := given - _ARGUMENTS - _MORE_ARGUMENTS.get(name, frozenset()):
                raise UnsupportedExpressionError(
                    f"not supported in this form ({', '.join(sorted(strange))})"
                )
            return handler(self, node)
        except UnsupportedExpressionError as error:
            raise self._text.refusal(node, str(error)) from error

    def _condition(self, node: Expression) -> Checked:
        found = self._value(node)
        if found.type.number or found.type.kind is Kind.NULL:
            return found
        what = "a text" if found.text is not None else f"a {found.type.kind}"
        why = f" ({found.type.why})" if found.type.why else ""
        raise self._text.refusal(node, f"{what} is no condition: compare it with something{why}")

    def _paren(self, node: Any) -> Checked:
        return self._value(node.this)

    def _column(self, node: Any) -> Checked:
        if node.table:
            raise UnsupportedExpressionError("name the column alone, without its table")
        column = self._find(node.name)
        if column is None:
            raise UnsupportedExpressionError("the table has no such column")
        self._columns[column.name] = column
        place = list(self._columns).index(column.name)
        return Checked(column.type, Call("column", (), (place,)), column.sql)

    def _literal(self, node: Any) -> Checked:
        if not node.is_string:
            return number(node.this)
        text = self._text.literal(node)
        return Checked(ValueType(Kind.TEXT), Call("text", (), (text,)), "", text=text)

    def _hex(self, node: Any) -> Checked:
        digits = str(node.this)
        digits = digits.zfill(len(digits) + len(digits) % 2)
        call = Call("bytes", (), (digits.lower(),))
        return Checked(ValueType(Kind.BINARY), call, f"x'{digits.lower()}'")

    def _bits(self, node: Any) -> Checked:
        return whole_number(int(str(node.this), 2))

    def _boolean(self, node: Any) -> Checked:
        value = int(bool(node.this))
        return Checked(BOOLEAN, Call("number", (), (value,)), str(value), number=value)

    def _null(self, node: Any) -> Checked:
        return _NULL

    def _logic(self, node: Any) -> Checked:
        name = type(node).__name__
        for side in (node.this, node.expression):
            other = type(side).__name__
            if other in _LOGIC and other != name and "Xor" in (name, other):
                raise UnsupportedExpressionError("put parentheses around the operands of XOR")
        left, right = self._condition(node.this), self._condition(node.expression)
        call = Call(name.lower(), (left.call, right.call))
        return Checked(BOOLEAN, call, f"({left.sql} {name.upper()} {right.sql})")

    def _not(self, node: Any) -> Checked:
        value = self._condition(node.this)
        return Checked(BOOLEAN, Call("not", (value.call,)), f"(NOT {value.sql})")

    def _comparison(self, node: Any) -> Checked:
        sign = _SIGNS[type(node).__name__]
        return compared(sign, self._value(node.this), self._value(node.expression))

    def _null_safe(self, node: Any) -> Checked:
        return compared("<=>", self._value(node.this), self._value(node.expression))

    def _between(self, node: Any) -> Checked:
        nodes = (node.this, node.args["low"], node.args["high"])
        found = comparable([self._value(part) for part in nodes], ordered=True)
        value, low, high = found.values
        prefix = "padded " if found.padded else ""
        above = Call(f"{prefix}>=", (value.call, low.call))
        below = Call(f"{prefix}<=", (value.call, high.call))
        # In MySQL 5.6, it is false if a bound is NULL.
        sql = f"({value.sql} >= {low.sql} AND {value.sql} <= {high.sql})"
        return Checked(BOOLEAN, Call("and", (above, below)), sql)

    def _in(self, node: Any) -> Checked:
        items = node.expressions
        if not items or node.args.get("query"):
            raise UnsupportedExpressionError("IN takes a list of values")
        found = comparable([self._value(part) for part in (node.this, *items)], ordered=False)
        value, *others = found.values
        listed = ", ".join(other.sql for other in others)
        call = Call("in", tuple(one.call for one in found.values))
        return Checked(BOOLEAN, call, f"({value.sql} IN ({listed}))")

    def _is(self, node: Any) -> Checked:
        kind = type(node.expression).__name__
        if kind == "Null":
            value = self._value(node.this)
            sql = "''" if value.text is not None else value.sql
            return Checked(BOOLEAN, Call("is-null", (value.call,)), f"({sql} IS NULL)")
        if kind != "Boolean":
            raise UnsupportedExpressionError("IS takes NULL, TRUE, FALSE or UNKNOWN")
        value = self._condition(node.this)
        word = "true" if node.expression.this else "false"
        sql = f"({value.sql} IS {word.upper()})"
        return Checked(BOOLEAN, Call(f"is-{word}", (value.call,)), sql)

    def _escape(self, node: Any) -> Checked:
        if type(node.this).__name__ != "Like":
            raise UnsupportedExpressionError("ESCAPE belongs to LIKE")
        escape = self._value(node.expression).text
        if escape is None or len(escape) != 1 or not " " <= escape <= "~":
            raise UnsupportedExpressionError("ESCAPE takes one character of plain ASCII, in quotes")
        return self._matched(node.this, escape)

    def _like(self, node: Any) -> Checked:
        return self._matched(node, "\\")

    def _matched(self, node: Any, escape: str) -> Checked:
        value, pattern = self._value(node.this), self._value(node.expression)
        collation = value.type.collation
        if collation is None or pattern.text is None:
            raise UnsupportedExpressionError(
                "LIKE takes a text column, and a pattern that is written out"
            )
        if value.type.why:
            raise UnsupportedExpressionError(value.type.why)
        if value.type.cased and not pattern.text.isascii():
            raise UnsupportedExpressionError(
                "LOWER and UPPER are supported only for plain ASCII letters"
            )
        given = bound_to_literal(pattern, collation)
        call = Call("like", (value.call,), (pattern.text, escape, collation.kind))
        shown = bound_to_literal(
            Checked(ValueType(Kind.TEXT), Call("null"), "", text=escape), collation
        )
        sql = f"({value.sql} LIKE {given.sql} ESCAPE {shown.sql})"
        if node.args.get("negate"):
            return Checked(BOOLEAN, Call("not", (call,)), f"(NOT {sql})")
        return Checked(BOOLEAN, call, sql)

    def _collate(self, node: Any) -> Checked:
        value = self._value(node.this)
        own = value.type.collation
        wanted = self._collation_of(node.expression.name.lower())
        if own is None or value.type.cased:
            raise UnsupportedExpressionError("COLLATE takes a text column")
        if wanted is None or wanted.charset != own.charset:
            raise UnsupportedExpressionError(
                f"{node.expression.name} is not a collation of {own.charset} that the task knows;"
                f" {own.charset}_bin is"
            )
        kind = ValueType(Kind.TEXT, collation=wanted)
        return Checked(kind, value.call, f"({value.sql} COLLATE {wanted.name})")

    def _cast(self, node: Any) -> Checked:
        if node.to.sql() != "BINARY":
            raise UnsupportedExpressionError("CAST takes AS BINARY, and nothing else")
        return functions.in_bytes(self._value(node.this))

    def _calculated(self, node: Any) -> Checked:
        sign = _CALCULATIONS[type(node).__name__]
        return calculated(sign, self._value(node.this), self._value(node.expression))

    def _negative(self, node: Any) -> Checked:
        return negative(self._value(node.this))

    def _abs(self, node: Any) -> Checked:
        return absolute(self._value(node.this))

    def _case(self, node: Any) -> Checked:
        default = node.args.get("default")
        otherwise = _NULL if default is None else self._value(default)
        values = [self._value(one.args["true"]) for one in node.args["ifs"]]
        if node.this is None:
            conditions = [self._condition(one.this) for one in node.args["ifs"]]
        else:
            value = self._value(node.this)
            wanted = [self._value(one.this) for one in node.args["ifs"]]
            conditions = [compared("=", value, one) for one in wanted]
            check_signs([value, *wanted], "CASE … WHEN")
        return functions.chosen(conditions, [*values, otherwise])

    def _if(self, node: Any) -> Checked:
        if node.args.get("false") is None:
            raise UnsupportedExpressionError("IF takes a condition and two values")
        values = [self._value(node.args["true"]), self._value(node.args["false"])]
        return functions.chosen([self._condition(node.this)], values)

    def _coalesce(self, node: Any) -> Checked:
        return functions.coalesced([self._value(n) for n in (node.this, *node.expressions)])

    def _null_if(self, node: Any) -> Checked:
        return functions.null_if(self._value(node.this), self._value(node.expression))

    def _length(self, node: Any) -> Checked:
        return functions.length(self._value(node.this), characters=not node.args.get("binary"))

    def _lower(self, node: Any) -> Checked:
        return functions.cased(type(node).__name__.upper(), self._value(node.this))

    def _side(self, node: Any) -> Checked:
        name = type(node).__name__.upper()
        return functions.part(name, self._value(node.this), self._value(node.expression))

    def _substring(self, node: Any) -> Checked:
        counts = [node.args[key] for key in ("start", "length") if node.args.get(key) is not None]
        if node.args.get("start") is None:
            raise UnsupportedExpressionError("SUBSTRING takes a text, a position and a length")
        return functions.part("SUBSTRING", self._value(node.this), *map(self._value, counts))

    def _concat(self, node: Any) -> Checked:
        values = [self._value(part) for part in node.expressions]
        if all(value.text is not None for value in values):
            # Consecutive texts are one text.
            text = "".join(value.text or "" for value in values)
            return Checked(ValueType(Kind.TEXT), Call("text", (), (text,)), "", text=text)
        return functions.concatenated(values)

    def _trim(self, node: Any) -> Checked:
        removed = None if node.expression is None else self._value(node.expression)
        side = str(node.args.get("position") or "")
        return functions.trimmed(self._value(node.this), side, removed)

    def _moment_part(self, node: Any) -> Checked:
        name = _PARTS[type(node).__name__]
        return functions.moment_part(name, self._value(_unwrapped(node.this)))

    def _day(self, node: Any) -> Checked:
        return functions.day(self._value(node.this))


def _unwrapped(node: Any) -> Any:
    """Return the argument of YEAR and similar functions, which the parser wraps as a date."""
    return node.this if type(node).__name__ == "TsOrDsToDate" else node


_HANDLERS: dict[str, Callable[[ExpressionCheck, Any], Checked]] = {
    "Paren": ExpressionCheck._paren,
    "Column": ExpressionCheck._column,
    "Literal": ExpressionCheck._literal,
    "HexString": ExpressionCheck._hex,
    "BitString": ExpressionCheck._bits,
    "Boolean": ExpressionCheck._boolean,
    "Null": ExpressionCheck._null,
    **dict.fromkeys(_LOGIC, ExpressionCheck._logic),
    "Not": ExpressionCheck._not,
    **dict.fromkeys(_SIGNS, ExpressionCheck._comparison),
    "NullSafeEQ": ExpressionCheck._null_safe,
    "Between": ExpressionCheck._between,
    "In": ExpressionCheck._in,
    "Is": ExpressionCheck._is,
    "Like": ExpressionCheck._like,
    "Escape": ExpressionCheck._escape,
    "Collate": ExpressionCheck._collate,
    "Cast": ExpressionCheck._cast,
    **dict.fromkeys(_CALCULATIONS, ExpressionCheck._calculated),
    "Neg": ExpressionCheck._negative,
    "Abs": ExpressionCheck._abs,
    "Case": ExpressionCheck._case,
    "If": ExpressionCheck._if,
    "Coalesce": ExpressionCheck._coalesce,
    "Nullif": ExpressionCheck._null_if,
    "Length": ExpressionCheck._length,
    "Lower": ExpressionCheck._lower,
    "Upper": ExpressionCheck._lower,
    "Left": ExpressionCheck._side,
    "Right": ExpressionCheck._side,
    "Substring": ExpressionCheck._substring,
    "Concat": ExpressionCheck._concat,
    "Trim": ExpressionCheck._trim,
    **dict.fromkeys(_PARTS, ExpressionCheck._moment_part),
    "TsOrDsToDate": ExpressionCheck._day,
}
"""By the parser's name for a part of an expression, its check."""
