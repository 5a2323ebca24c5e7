"""Reading a statement token by token."""

from __future__ import annotations

from collections.abc import Iterator

from replicator.ddl.parser.statement import Span, TableReference, TableRole
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.mysql.names import folded


class NotUnderstoodError(Exception):
    """The statement is not of the expected form. Caught where the statement becomes UNKNOWN."""


class Cursor:
    """A place in the tokens of one statement.

    ``folds_names``: the server takes names of tables and databases without their case.
    """

    def __init__(
        self, tokens: tuple[Token, ...], default_schema: str, *, folds_names: bool = False
    ) -> None:
        self.tokens = tokens
        self._folds_names = folds_names
        self.default_schema = self.known_as(default_schema)
        self.index = 0

    def known_as(self, name: str) -> str:
        """The name of a table or database as the task knows it."""
        return folded(name) if self._folds_names else name

    @property
    def at_end(self) -> bool:
        """Whether all tokens are read."""
        return self.index >= len(self.tokens)

    def keyword(self, ahead: int = 0) -> str:
        """Return the keyword ``ahead`` tokens further on, "" if there is none."""
        place = self.index + ahead
        return self.tokens[place].keyword if place < len(self.tokens) else ""

    def text(self, ahead: int = 0) -> str:
        """Return the text of the token ``ahead`` tokens further on, "" at the end."""
        place = self.index + ahead
        return self.tokens[place].text if place < len(self.tokens) else ""

    def take(self) -> Token:
        """Return the next token and step over it. Raises `NotUnderstoodError` at the end."""
        if self.at_end:
            raise NotUnderstoodError("the statement ends too early")
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        """Step over these keywords if they come next, all of them in this order."""
        if all(self.keyword(ahead) == word for ahead, word in enumerate(words)):
            self.index += len(words)
            return True
        return False

    def accept_any(self, *words: str) -> str:
        """Step over one of these keywords; return which, "" if none comes next."""
        if (word := self.keyword()) and word in words:
            self.index += 1
            return word
        return ""

    def accept_text(self, text: str) -> bool:
        """Step over an operator if it comes next."""
        if self.at_end or self.tokens[self.index].kind is not TokenKind.OPERATOR:
            return False
        found = self.text() == text
        self.index += found
        return found

    def expect(self, *words: str) -> None:
        """Step over these keywords. Raises `NotUnderstoodError` if they don't come next."""
        if not self.accept(*words):
            raise NotUnderstoodError(f"{' '.join(words)} expected {self._place()}")

    def name(self, what: str) -> Token:
        """Return the name that comes next. Raises `NotUnderstoodError` if there is none."""
        if self.at_end or not self.tokens[self.index].is_name:
            raise NotUnderstoodError(f"the name of a {what} expected {self._place()}")
        return self.take()

    def table(self, role: TableRole, schema: str | None = None) -> TableReference:
        """Read ``table`` or ``schema.table``; ``schema`` is in effect where none is written.

        Raises `NotUnderstoodError` if no table name comes next.
        """
        implied = self.default_schema if schema is None else schema
        start = self.tokens[self.index].start if not self.at_end else 0
        # A leading dot is allowed (an ODBC form) and means the schema in effect.
        leading_dot = self.accept_text(".")
        first = self.name("table")
        if leading_dot or not self.accept_text("."):
            return TableReference(implied, self.known_as(first.name), role, Span(start, first.end))
        second = self.name("table")
        schema, table = self.known_as(first.name), self.known_as(second.name)
        return TableReference(schema, table, role, Span(start, second.end))

    def finish(self) -> None:
        """Step over what may follow a list of tables. Raises `NotUnderstoodError` at more."""
        self.wait()
        self.accept_any("RESTRICT", "CASCADE")
        if not self.at_end:
            raise NotUnderstoodError(f"the end of the statement expected {self._place()}")

    def wait(self) -> None:
        """Step over MariaDB's ``WAIT n`` or ``NOWAIT``."""
        if not self.accept("NOWAIT") and self.keyword() == "WAIT" and self._number_ahead():
            self.index += 2

    def rest(self) -> Iterator[tuple[int, int, Token]]:
        """Yield (index, depth of parentheses, token) for the tokens that are left.

        A parenthesis counts as being outside of what it encloses.
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
