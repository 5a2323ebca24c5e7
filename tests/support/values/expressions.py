"""Random rows and expressions for filters: what a server says of them is what ours must say."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

COLUMNS = {
    "i": "INT",
    "u": "BIGINT UNSIGNED",
    "b": "BIGINT",
    "d": "DECIMAL(10,2)",
    "e": "DECIMAL(20,9)",
    "f": "FLOAT",
    "g": "DOUBLE",
    "y": "YEAR",
    "bit": "BIT(10)",
    "t": "VARCHAR(20)",
    "s": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "s2": "CHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
    "w": "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    "l": "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_bin",
    "gen": "VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "uni": "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
    "r": "VARBINARY(20)",
    "n": "ENUM('red','Green','b l')",
    "day": "DATE",
    "m": "DATETIME",
    "m6": "DATETIME(6)",
    "ts": "TIMESTAMP(3) NULL",
    "clock": "TIME(2)",
}
"""Name and type of each column of the table that expressions are about, besides its key ``id``."""

_INTEGERS = ("i", "u", "b", "bit")
_EXACT = (*_INTEGERS, "d", "e")
_NUMBERS = (*_EXACT, "f", "g")
_BINARY_TEXTS = ("s", "s2", "l")
_FOLDED_TEXTS = ("t", "w", "gen", "uni", "n")
_TEXTS = (*_BINARY_TEXTS, *_FOLDED_TEXTS)
_WORDS = ("", " ", "a", "A", "ab", "AB", "Ab ", "ab  ", "a b", "red", "green", "b", "z", "a_", "a%")
_STRANGE = (
    *("\u00e9", "\u00c1", "\u00a0", "\u017f", "\ufb01", "\u00df", "\u0301", "a\u0301"),
    *("\u24b6", "\uff41", "\U0001f600", "\u200b", "\u212a", "\u044f"),
)
"""Characters that one collation or another takes for letters of ASCII, for several, or for none."""

_LATIN = ("é", "Á", "ß", "ä", "Ü", "\u00a0", "€")
_DAYS = ("2020-01-01", "2020-02-29", "1999-12-31", "2026-07-15")
_FRACTIONS = ("0", "5", "000001")
_TIMES = ("00:00:00", "23:59:59", "12:30:01")


def random_row(random: Random) -> dict[str, object]:
    """Values for `COLUMNS`, many of them NULL, at limits, or hard for a collation."""
    row: dict[str, object] = {
        "i": random.choice((0, 1, -1, 2, 5, -7, 2**31 - 1, -(2**31))),
        "u": random.choice((0, 1, 5, 2**63, 2**64 - 1, 2**53 + 1)),
        "b": random.choice((0, 1, -1, 5, 2**63 - 1, -(2**63), 2**53 + 1)),
        "d": random.choice(("0", "0.5", "-0.01", "1.25", "99999999.99", "3")),
        "e": random.choice(("0", "0.333333333", "-2.000000001", "5", "12345678901.5")),
        "f": random.choice((0, 0.5, 0.1, -1.5, 16777216, 3)),
        "g": random.choice((0, 0.5, 0.1, -1.5, 1e300, 9007199254740993, 3)),
        "y": random.choice((1901, 2000, 2020, 2155)),
        "bit": random.choice((0, 1, 5, 1023)),
        "r": random.choice(("", "a", "A", "ab", " ", "a ")),
        "n": random.choice(("red", "Green", "b l")),
        "day": random.choice((*_DAYS, "0000-00-00", "2020-00-00")),
        "ts": random.choice(
            ("2020-01-01 12:30:01.5", "2026-07-15 00:00:00", "1999-12-31 23:59:59")
        ),
        "clock": random.choice(("-838:59:59", "00:00:00", "12:30:01.25", "-00:00:01")),
        "m": f"{random.choice(_DAYS)} {random.choice(_TIMES)}",
        "m6": f"{random.choice(_DAYS)} {random.choice(_TIMES)}.{random.choice(_FRACTIONS)}",
    }
    for name in ("t", "s", "s2", "gen", "uni"):
        row[name] = _text(random, _STRANGE)
    for name in ("w", "l"):
        row[name] = _text(random, _LATIN)
    return {n: None if random.random() < 0.15 else value for n, value in row.items()}


def _text(random: Random, strange: tuple[str, ...]) -> str:
    parts = random.choices((*_WORDS, *strange), k=random.choice((1, 1, 2, 3)))
    return "".join(parts)[:20]


def random_expression(random: Random, depth: int = 3) -> str:
    """A condition on `COLUMNS`; some are refused, and must not be among those that are many."""
    return _Generator(random).condition(depth)


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random

    def condition(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            return self._pick(
                self.comparison, self.comparison, self.membership, self.like, self.is_something
            )(depth)
        left, right = self.condition(depth - 1), self.condition(depth - 1)
        sign = self._random.choice(("AND", "OR", "AND", "OR", "XOR", "&&"))
        if sign == "XOR" or self._random.random() < 0.5:
            left, right = f"({left})", f"({right})"
        negated = self._random.choice(("", "", "NOT ", "!"))
        inner = f"{left} {sign} {right}"
        return f"{negated}({inner})" if negated or self._random.random() < 0.5 else inner

    def comparison(self, depth: int) -> str:
        kind = self._random.randrange(7)
        sign = self._random.choice(("=", "<>", "!=", "<", "<=", ">", ">=", "<=>"))
        if kind < 3:
            return f"{self.number(depth)} {sign} {self.number(depth)}"
        if kind == 3:
            return f"{self.moment()} {sign} {self.moment_literal()}"
        if kind == 4:
            column = self._random.choice(_BINARY_TEXTS)
            return f"{self.text(column, depth)} {sign} {self.literal()}"
        if kind == 5:
            column = self._random.choice(_FOLDED_TEXTS)
            equal = self._random.choice(("=", "<>", "<=>"))
            return f"{self.text(column, depth)} {equal} {self.literal()}"
        return self._random.choice(
            (
                f"y {sign} {self._random.choice((1901, 2000, 2020))}",
                f"CAST(s AS BINARY) {sign} {self.literal()}",
                f"BINARY gen {sign} 'A'",
                f"r {sign} {self.literal()}",
                f"r {sign} x'6120'",
                f"gen COLLATE utf8mb4_bin {sign} {self.literal()}",
                f"i {sign} '5'",
                f"LOWER(gen) = {self.literal().lower()}",
                f"UPPER(s) {self._random.choice(('=', '<>'))} {self.literal().upper()}",
                f"YEAR(day) {sign} {self._random.choice((0, 1999, 2020))}",
                f"day {sign} DATE(m6)",
                f"m {sign} m6",
                f"day {sign} m",
                f"s {sign} s2",
                f"clock {sign} '12:30:01'",
                f"clock {sign} '-00:00:01.00'",
                f"y {sign} '2020'",
                f"bit {sign} b'101'",
            )
        )

    def membership(self, depth: int) -> str:
        negated = self._random.choice(("", "NOT "))
        kind = self._random.randrange(5)
        if kind == 0:
            numbers = [*(self.number(0) for _ in range(3)), self._random.choice(("NULL", "0"))]
            return f"{self._random.choice(_EXACT)} {negated}IN ({', '.join(numbers)})"
        if kind == 1:
            items = ", ".join(self.literal() for _ in range(3))
            return f"{self._random.choice(_TEXTS)} {negated}IN ({items})"
        if kind == 2:
            column = self._random.choice(_EXACT)
            return f"{column} {negated}BETWEEN {self.number(0)} AND {self.number(0)}"
        if kind == 3:
            low, high = self.moment_literal(), self.moment_literal()
            return f"{self.moment()} {negated}BETWEEN {low} AND {high}"
        column = self._random.choice(_BINARY_TEXTS)
        return f"{column} {negated}BETWEEN {self.literal()} AND {self.literal()}"

    def like(self, depth: int) -> str:
        pattern = "".join(
            self._random.choices(("a", "B", "%", "_", " ", "r", "|%", "\\\\_", "e"), k=3)
        )
        negated = self._random.choice(("", "NOT "))
        escape = " ESCAPE '|'" if "|" in pattern else ""
        return f"{self._random.choice(_TEXTS)} {negated}LIKE '{pattern}'{escape}"

    def is_something(self, depth: int) -> str:
        word = self._random.choice(("NULL", "TRUE", "FALSE", "UNKNOWN"))
        negated = self._random.choice(("", "NOT "))
        if word == "NULL" and self._random.random() < 0.5:
            return f"{self._random.choice(tuple(COLUMNS))} IS {negated}NULL"
        return f"({self.condition(depth - 1)}) IS {negated}{word}"

    def number(self, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.4:
            literals = (
                "0",
                "1",
                "5",
                "-1",
                "2.50",
                ".5",
                "1e0",
                "9223372036854775807",
                "3",
                "NULL",
            )
            return self._random.choice((*_NUMBERS, *_EXACT, *literals))
        one, other = self.number(depth - 1), self.number(depth - 1)
        text = self._random.choice(_TEXTS)
        return self._random.choice(
            (
                f"{one} + {other}",
                f"({one} - {other})",
                f"{one} * {other}",
                f"({one}) / ({other})",
                f"{one} DIV {other}",
                f"{one} % {other}",
                f"MOD({one}, {other})",
                f"-({one})",
                f"ABS({one})",
                f"IF({self.condition(0)}, {one}, {other})",
                f"IFNULL({one}, {other})",
                f"COALESCE({one}, {other}, 0)",
                f"NULLIF({one}, {other})",
                f"CASE WHEN {self.condition(0)} THEN {one} ELSE {other} END",
                f"CASE {one} WHEN {other} THEN 1 WHEN 5 THEN {one} END",
                f"LENGTH({text})",
                f"CHAR_LENGTH({text})",
                f"MONTH({self.moment()})",
                f"DAY({self.moment()})",
                "HOUR(m6)",
                "SECOND(m)",
            )
        )

    def text(self, column: str, depth: int) -> str:
        if depth <= 0 or self._random.random() < 0.5:
            return column
        count = self._random.choice((-2, 0, 1, 2))
        return self._random.choice(
            (
                f"LEFT({column}, {count})",
                f"RIGHT({column}, {count})",
                f"SUBSTRING({column}, {count})",
                f"SUBSTRING({column}, {count}, 2)",
                f"TRIM({column})",
                f"TRIM(LEADING 'a' FROM {column})",
                f"RTRIM({column})",
                f"CONCAT({column}, 'b')",
                f"CONCAT('a', {column}, {column})",
                f"IFNULL({column}, 'a')",
                f"IF({self.condition(0)}, {column}, 'ab')",
            )
        )

    def literal(self) -> str:
        return "'" + self._random.choice(_WORDS) + "'"

    def moment(self) -> str:
        return self._random.choice(("day", "m", "m6"))

    def moment_literal(self) -> str:
        day = self._random.choice(_DAYS)
        return self._random.choice((f"'{day}'", f"'{day} {self._random.choice(_TIMES)}'"))

    def _pick(self, *choices: Callable[[int], str]) -> Callable[[int], str]:
        return self._random.choice(choices)
