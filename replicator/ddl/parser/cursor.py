"""A cursor that reads the tokens of a statement."""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.parser.statement import Span, TableReference, TableRole
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.mysql.names import folded


class NotUnderstoodError(Exception):
    """The statement does not have the expected form; it becomes `StatementKind.UNKNOWN`."""


class Cursor:
    """A position among the tokens of one statement.

    Attributes:
        index: index of the next token.
        default_schema: schema of a table that is written without one.
    """

    def __init__(
        self, tokens: tuple[Token, ...], default_schema: str, *, folds_names: bool = False
    ) -> None:
        self.tokens = tokens
        self._folds_names = folds_names
        self.default_schema = self.known_as(default_schema)
        self.index = 0

    def known_as(self, name: str) -> str:
        """Return the name of a table or database, folded if the server ignores case."""
        return folded(name) if self._folds_names else name

    @property
    def at_end(self) -> bool:
        """Whether all tokens are read."""
        return self.index >= len(self.tokens)

    def keyword(self, ahead: int = 0) -> str:
        """Return the keyword ``ahead`` tokens after the next one; empty if there is none."""
        place = self.index + ahead
        return self.tokens[place].keyword if place < len(self.tokens) else ""

    def text(self, ahead: int = 0) -> str:
        """Return the text of the token ``ahead`` tokens after the next one; empty at the end."""
        place = self.index + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def take(self) -> Token:
        """Return the next token and move past it. Raises `NotUnderstoodError` at the end."""
        if self.at_end:
            raise NotUnderstoodError("the statement ends too early")
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        """Move past these keywords if all of them come next, in this order."""
        if all(self.keyword(ahead) == word for ahead, word in enumerate(words)):
            self.index += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str:
        """Move past one of these keywords and return it; return "" if none comes next."""
        if (word := self.keyword()) and word in words:
            self.index += 1
            return word
        return ""

    def accept_text(self, text: str) -> bool:
        """Move past an operator if it comes next."""
        if self.at_end or self.tokens[self.index].kind is not TokenKind.OPERATOR:
            return False
        found = self.text() == text
        self.index += found
        return found

    def expect(self, *words: str) -> None:
        """Move past these keywords. Raises `NotUnderstoodError` if they do not come next."""
        if not self.accept(*words):
            raise NotUnderstoodError(f"{' '.join(words)} expected {self._place()}")

    def name(self, what: str) -> Token:
        """Return the name that comes next. Raises `NotUnderstoodError` if there is none."""
        if self.at_end or not self.tokens[self.index].is_name:
            raise NotUnderstoodError(f"the name of a {what} expected {self._place()}")
        return self.take()

    def table(self, role: TableRole, schema: str | None = None) -> TableReference:
        """Read ``table`` or ``schema.table``. Raises `NotUnderstoodError` if no name comes next.

        Args:
            schema: schema of a table that is written without one; None for the default schema.
        """
        implied = self.default_schema if schema is None else schema
        start = self.tokens[self.index].start if not self.at_end else 0
        # A leading dot is allowed (an ODBC form) and means the default schema.
        leading_dot = self.accept_text(".")
        first = self.name("table")
        if leading_dot or not self.accept_text("."):
            return TableReference(implied, self.known_as(first.name), role, Span(start, first.end))
        second = self.name("table")
        schema, table = self.known_as(first.name), self.known_as(second.name)
        return TableReference(schema, table, role, Span(start, second.end))

    def finish(self) -> None:
        """Move past the end of a list of tables. Raises `NotUnderstoodError` if more follows."""
        self.wait()
        self.accept_any("RESTRICT", "CASCADE")
        if not self.at_end:
            raise NotUnderstoodError(f"the end of the statement expected {self._place()}")

    def wait(self) -> None:
        """Move past MariaDB's ``WAIT n`` or ``NOWAIT``."""
        if not self.accept("NOWAIT") and self.keyword() == "WAIT" and self._number_ahead():
            self.index += 2

    def rest(self) -> Iterator[tuple[int, int, Token]]:
        """Yield (index, depth of parentheses, token) for each of the remaining tokens.

        Parentheses have the depth of the text around them.
        """
        depth = 0
        for index in range(self.index, len(self.tokens)):
            token = self.tokens[index]
            if token.text == ")":
                depth -= 1
            yield index, depth, token
            if token.text == "(":
                depth += 1

    def _number_ahead(self) -> bool:
        place = self.index + 1
        return place < len(self.tokens) and self.tokens[place].kind is TokenKind.NUMBER

    def _place(self) -> str:
        if self.at_end:
            return "at the end of the statement"
        token = self.tokens[self.index]
        return f"at character {token.start}, found {token.text[:40]!r}"
