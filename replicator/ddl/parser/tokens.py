"""The tokens of a MySQL or MariaDB statement, each with its offset in the text.

Sources: the lexical rules in the MySQL manual ("Language Structure": string, number, hex and bit
literals, schema object names, user variables, comments) and MariaDB's page on comments. The
tokeniser finds where names, strings and comments start and end; it ignores grammar. The SQL modes
ANSI_QUOTES and NO_BACKSLASH_ESCAPES change these boundaries. So does MariaDB's MSSQL, whose names
in square brackets are not supported. IGNORE_SPACE only makes names of functions reserved words.

Comments and white space are not tokens. The content of an *executable* comment (``/*! … */``,
``/*!50100 … */``, ``/*M! … */``) is tokens: in the binlog, a server writes a comment that it did
not execute as an ordinary one, so every comment that is still executable took effect.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto


class TokenKind(Enum):
    """The kind of a token."""

    WORD = auto()
    """A keyword or an unquoted name."""
    QUOTED = auto()
    """A quoted name: backticks, or double quotes under ANSI_QUOTES."""
    STRING = auto()
    """A string literal with its quotes."""
    NUMBER = auto()
    """A decimal number, without its sign."""
    HEX = auto()
    """A hexadecimal or bit literal: ``0x1F``, ``x'1F'``, ``0b01``, ``b'01'``."""
    VARIABLE = auto()
    """``@name``, ``@'name'``, ``@@name``; also the host part of an account name."""
    OPERATOR = auto()
    """An operator or a punctuation mark."""
    INVALID = auto()
    """The rest of a text from a string or quoted name that is not closed."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token: its kind, its text as written, and the offset of its start in characters."""

    kind: TokenKind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after the last character."""
        return self.start + len(self.text)

    @property
    def is_name(self) -> bool:
        """Whether the token can be a name."""
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED)

    @property
    def name(self) -> str:
        """The name without quotes; doubled quotes in it become single ones."""
        if self.kind is not TokenKind.QUOTED:
            return self.text
        quote = self.text[0]
        return self.text[1:-1].replace(quote * 2, quote)

    @property
    def keyword(self) -> str:
        """The word in upper case; empty for a token that cannot be a keyword."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""


_NAME = r"[0-9A-Za-z_$\x80-\U0010ffff]"
_GAP = re.compile(
    r"[ \t\n\r\v\f]+"
    r"|\#[^\n]*"
    r"|--(?=[\x00-\x20]|\Z)[^\n]*"
    r"|/\*M?!(?:\d{5,6})?"
    r"|/\*(?!M?!).*?(?:\*/|\Z)",
    re.ASCII | re.DOTALL,
)
_TIDB_GAP = re.compile(rf"/\*T!(?:\[[^\]*]*\])?|{_GAP.pattern}", _GAP.flags)
_WORD = re.compile(_NAME + "+")
_NUMBER = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_HEX = re.compile(r"[xX]'[0-9A-Fa-f]*'|[bB]'[01]*'")
_HEX_WORD = re.compile(r"0x[0-9A-Fa-f]+|0b[01]+")
_VARIABLE = re.compile(rf"@@?(?:(?:{_NAME}|\.)+|(?=['\"`]))")
_OPERATOR = re.compile(r"<=>|->>|:=|<=|>=|<>|!=|\|\||&&|<<|>>|->|.", re.DOTALL)
# Possessive, so that a second attempt never takes a doubled quote for the end of the literal.
_QUOTED = {quote: re.compile(f"{quote}(?:[^{quote}]|{quote}{quote})*+{quote}") for quote in "`'\""}
_ESCAPED = {
    quote: re.compile(rf"{quote}(?:[^{quote}\\]|{quote}{quote}|\\.)*+{quote}", re.DOTALL)
    for quote in "'\""
}


def tokenise(
    sql: str,
    *,
    ansi_quotes: bool = False,
    no_backslash_escapes: bool = False,
    tidb_comments: bool = False,
) -> tuple[Token, ...]:
    """Split a statement into tokens, in the order of the text. Never raises.

    A string or name that is not closed becomes one `TokenKind.INVALID` token that extends to the
    end of the text.

    Args:
        ansi_quotes: the flag of ``sql_mode``, which changes where a token ends.
        no_backslash_escapes: the flag of ``sql_mode``, which changes where a token ends.
        tidb_comments: whether ``/*T![…] … */`` is an executable comment, as TiDB writes it in SHOW
            CREATE TABLE.
    """
    gap = _TIDB_GAP if tidb_comments else _GAP
    return _Scanner(sql, ansi_quotes, no_backslash_escapes, gap).run()


class _Scanner:
    """A single pass over one text."""

    def __init__(
        self, sql: str, ansi_quotes: bool, no_backslash_escapes: bool, gap: re.Pattern[str]
    ) -> None:
        self._sql = sql
        self._gaps = gap
        self._ansi_quotes = ansi_quotes
        self._strings = _QUOTED if no_backslash_escapes else _ESCAPED
        self._tokens: list[Token] = []
        self._open_comments = 0

    def run(self) -> tuple[Token, ...]:
        """Return the tokens."""
        position = 0
        while position < len(self._sql):
            gap_end = self._gap(position)
            if gap_end is not None:
                position = gap_end
                continue
            kind, end = self._token(position)
            self._tokens.append(Token(kind, self._sql[position:end], position))
            position = end
        return tuple(self._tokens)

    def _gap(self, position: int) -> int | None:
        """Return the end of the white space or comment at ``position``; None if there is none."""
        if self._open_comments and self._sql.startswith("*/", position):
            self._open_comments -= 1
            return position + 2
        match = self._gaps.match(self._sql, position)
        if match is None:
            return None
        if match.group().startswith(("/*!", "/*M!")) or self._opens_tidb(match.group()):
            self._open_comments += 1
        return match.end()

    def _opens_tidb(self, gap: str) -> bool:
        return self._gaps is _TIDB_GAP and gap.startswith("/*T!")

    def _token(self, position: int) -> tuple[TokenKind, int]:
        first = self._sql[position]
        if first in "'\"`":
            return self._quoted(position)
        if first == "@" and (match := _VARIABLE.match(self._sql, position)):
            if match.group().strip("@"):
                return TokenKind.VARIABLE, match.end()
            kind, end = self._quoted(match.end())
            return (kind if kind is TokenKind.INVALID else TokenKind.VARIABLE), end
        if match := _HEX.match(self._sql, position):
            return TokenKind.HEX, match.end()
        if match := _WORD.match(self._sql, position):
            return self._word(position, match)
        number = _NUMBER.match(self._sql, position) if first == "." else None
        if number and not self._follows_name(position):
            return TokenKind.NUMBER, number.end()
        operator = _OPERATOR.match(self._sql, position)
        return TokenKind.OPERATOR, operator.end() if operator else position + 1

    def _quoted(self, position: int) -> tuple[TokenKind, int]:
        quote = self._sql[position]
        is_name = quote == "`" or (quote == '"' and self._ansi_quotes)
        match = (_QUOTED if is_name else self._strings)[quote].match(self._sql, position)
        if match is None:
            return TokenKind.INVALID, len(self._sql)
        return (TokenKind.QUOTED if is_name else TokenKind.STRING), match.end()

    def _word(self, position: int, match: re.Match[str]) -> tuple[TokenKind, int]:
        """Read a word or a number.

        A name may start with a digit, and after a dot it may consist of digits only.
        """
        text = match.group()
        if self._sql[position - 1 : position] == "." and self._follows_name(position - 1):
            return TokenKind.WORD, match.end()
        if _HEX_WORD.fullmatch(text):
            return TokenKind.HEX, match.end()
        number = _NUMBER.match(self._sql, position)
        if number and number.end() >= match.end():
            return TokenKind.NUMBER, number.end()
        return TokenKind.WORD, match.end()

    def _follows_name(self, dot: int) -> bool:
        """Whether the dot at ``dot`` directly follows a name, so that a name comes next."""
        before = [t for t in self._tokens[-2:] if t.start < dot]
        return bool(before) and before[-1].is_name and before[-1].end == dot
