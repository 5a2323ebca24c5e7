"""Parses the text of an expression with sqlglot, and finds the line and column of its parts.

Only the driver imports the parser, and only if a task has such filters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from replicator.routing.expression.types import ExpressionError

if TYPE_CHECKING:
    from sqlglot.expressions.core import Expr as Expression

_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_SHOWN = 60
_NOT_AN_EXPRESSION = {
    "||": "it is OR or CONCAT, by the server's sql_mode: write the one you mean",
    ":=": "nothing is assigned in a filter",
    ";": "it is one expression, without a semicolon",
}


class ExpressionText:
    """An expression's text and its tree. Raises ExpressionError if it can't be read."""

    def __init__(self, text: str) -> None:
        # Imported late: without filters, the command line must not wait for the parser.
        import sqlglot
        from sqlglot.errors import ParseError, TokenError

        self.text = text
        try:
            tokens = sqlglot.tokenize(text, read="mysql")
            for token in tokens:
                if token.comments:
                    raise self._error("leave comments out of the expression", token.start)
                if (why := _NOT_AN_EXPRESSION.get(token.text)) and token.token_type.name not in (
                    "STRING",
                    "IDENTIFIER",
                ):
                    raise self._error(f"`{token.text}`: {why}", token.start)
            if not tokens:
                raise ExpressionError("the expression is empty")
            parsed = sqlglot.parse(text, read="mysql")
        except ParseError as error:
            detail = error.errors[0] if error.errors else {}
            place = f"line {detail.get('line', 1)}, column {detail.get('col', 1)}"
            what = str(detail.get("description", error)).rstrip(".")
            if what.startswith("Required keyword"):
                what = "an operand is missing"
            raise ExpressionError(f"it can't be read as an expression: {what} ({place})") from error
        except TokenError as error:
            what = str(error).partition("\n")[0]
            raise ExpressionError(
                f"it can't be read as an expression: {what} (line 1, column 1)"
            ) from error
        if len(parsed) != 1 or parsed[0] is None:
            raise ExpressionError("it must be one expression")
        self.tree: Expression = parsed[0]

    def refusal(self, node: Expression, message: str) -> ExpressionError:
        """Return the error for a part of the expression, with its place in the text."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        shown = node.sql(dialect="mysql")
        cut = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
        return self._error(f"`{cut}`: {message}", min(starts, default=0))

    def literal(self, node: Expression) -> str:
        """Return the value of a quoted text, in which a backslash is an escape character."""
        raw = self.text[node.meta["start"] : node.meta["end"] + 1]
        quotation = raw[0]

        def plain(match: re.Match[str]) -> str:
            escaped = match[1]
            if escaped is None:
                return quotation if match[0][0] == quotation else match[0]
            if escaped in "%_":
                # Kept for LIKE (MySQL's manual, "String Literals").
                return match[0]
            return _ESCAPED.get(escaped, escaped)

        return _ESCAPE.sub(plain, raw[1:-1])

    def _error(self, message: str, start: int) -> ExpressionError:
        line = self.text.count("\n", 0, start) + 1
        column = start - self.text.rfind("\n", 0, start)
        return ExpressionError(f"{message} (line {line}, column {column})")
