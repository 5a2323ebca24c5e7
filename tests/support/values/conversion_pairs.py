"""Pairs of column types that may be converted, with values of the first one as SQL literals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime

from hypothesis import strategies as st

Literals = st.SearchStrategy[str]


@dataclass(frozen=True)
class Pair:
    """A column type of the shard and one of the target; ``values`` are the shard's."""

    shard: str
    target: str
    values: Literals
    every: bool = True
    """Whether every value must arrive; else some are refused."""
    own_to_mariadb: bool = False

    def __str__(self) -> str:
        return f"{self.shard} to {self.target}"


def integers(bits: int, *, unsigned: bool = False) -> Literals:
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    edges = st.sampled_from([low, high, 0, 1, high // 2, high // 2 + 1])
    return st.one_of(edges, st.integers(low, high)).map(str)


def decimals(digits: int, scale: int, *, negative: bool = True) -> Literals:
    highest = 10**digits - 1
    numbers = st.integers(-highest if negative else 0, highest)
    edges = st.sampled_from([highest, 0, 1, -highest if negative else 5])

    def text(number: int) -> str:
        shown = str(abs(number)).rjust(scale + 1, "0")
        sign = "-" if number < 0 else ""
        return f"{sign}{shown[:-scale]}.{shown[-scale:]}" if scale else f"{sign}{shown}"

    return st.one_of(edges, numbers).map(text)


SINGLES = st.one_of(
    st.sampled_from([0.0, -0.0, 16777217.0, 3.4e38, 1.1754943508222875e-38, 1e-45, 0.1]),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
).map(lambda number: f"{number!r}" if "e" in repr(number) else f"{number!r}e0")
DOUBLES = st.one_of(
    st.sampled_from([0.1, -0.0, 2.0**53 + 1, 1.7976931348623157e308, 2.2250738585072014e-308]),
    st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False),
).map(lambda number: f"{number!r}" if "e" in repr(number) else f"{number!r}e0")


def bits(width: int) -> Literals:
    return st.one_of(st.sampled_from([0, 2**width - 1]), st.integers(0, 2**width - 1)).map(
        lambda number: f"b'{number:b}'"
    )


def texts(longest: int, alphabet: str = "aAéß€ \\\t\n'Z0漢😀") -> Literals:
    """As UTF-8; with the spaces at their ends."""
    return st.text(alphabet, max_size=longest).map(
        lambda t: f"_utf8mb4 0x{t.encode().hex()}" if t else "''"
    )


def binaries(longest: int) -> Literals:
    return st.binary(max_size=longest).map(lambda value: f"0x{value.hex()}" if value else "''")


def fractions(digits: int) -> st.SearchStrategy[str]:
    if not digits:
        return st.just("")
    return st.integers(0, 10**digits - 1).map(lambda number: f".{number:0{digits}d}")


DAYS = st.one_of(
    st.sampled_from(["0000-00-00", "2021-00-00", "2021-02-00", "9999-12-31", "1000-01-01"]),
    st.dates(date(1000, 1, 1)).map(str),
)
MOMENTS = st.one_of(
    DAYS.map(lambda day: f"{day} 00:00:00"),
    st.datetimes(datetime(1000, 1, 1)).map(lambda moment: str(moment.replace(microsecond=0))),
)
STAMPS = st.one_of(
    st.sampled_from(["0000-00-00 00:00:00", "1970-01-01 00:00:01", "2038-01-19 03:14:07"]),
    st.datetimes(datetime(1970, 1, 2), datetime(2038, 1, 18)).map(
        lambda moment: str(moment.replace(microsecond=0))
    ),
)


def _clock(seconds: int) -> str:
    minutes, second = divmod(abs(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{'-' if seconds < 0 else ''}{hour:02d}:{minute:02d}:{second:02d}"


CLOCKS = st.integers(-838 * 3600, 838 * 3600).map(_clock)


def quoted(values: Literals, digits: int) -> Literals:
    return st.tuples(values, fractions(digits)).map(lambda parts: f"'{parts[0]}{parts[1]}'")


def from_values(values: list[str]) -> Literals:
    return st.sampled_from(values)


def labels(*names: str) -> Literals:
    return st.sampled_from([f"'{name}'" for name in names])


DOCUMENTS = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text('aé"\\\\/\n\t漢😀', max_size=6),
    ),
    lambda some: st.one_of(
        st.lists(some, max_size=4), st.dictionaries(st.text("abé", max_size=3), some, max_size=4)
    ),
    max_leaves=8,
).map(lambda document: f"CAST(_utf8mb4 0x{json.dumps(document).encode().hex()} AS JSON)")

UTF8 = " CHARACTER SET utf8mb4"
LATIN1 = " CHARACTER SET latin1"
WESTERN = "aAéß€ \\\t\n'Z0"

PAIRS = [
    Pair("TINYINT", "SMALLINT", integers(8)),
    Pair("TINYINT UNSIGNED", "SMALLINT", integers(8, unsigned=True)),
    Pair("SMALLINT", "MEDIUMINT", integers(16)),
    Pair("MEDIUMINT", "INT", integers(24)),
    Pair("INT", "BIGINT", integers(32)),
    Pair("INT UNSIGNED", "BIGINT", integers(32, unsigned=True)),
    Pair("INT(7) ZEROFILL", "BIGINT", integers(32, unsigned=True)),
    Pair("INT UNSIGNED", "BIGINT UNSIGNED", integers(32, unsigned=True)),
    Pair("BIGINT", "INT", integers(64), every=False),
    Pair("BIGINT UNSIGNED", "BIGINT", integers(64, unsigned=True), every=False),
    Pair("INT", "INT UNSIGNED", integers(32), every=False),
    Pair("SMALLINT", "TINYINT", integers(16), every=False),
    Pair("INT", "DECIMAL(10,0)", integers(32)),
    Pair("BIGINT UNSIGNED", "DECIMAL(30,5)", integers(64, unsigned=True)),
    Pair("BIGINT", "DECIMAL(12,2)", integers(64), every=False),
    Pair("INT", "DOUBLE", integers(32)),
    Pair("MEDIUMINT UNSIGNED", "DOUBLE", integers(24, unsigned=True)),
    Pair("BIGINT", "VARCHAR(20)" + LATIN1, integers(64)),
    Pair("INT UNSIGNED", "CHAR(10)" + UTF8, integers(32, unsigned=True)),
    Pair("BIGINT", "VARCHAR(10)" + UTF8, integers(64), every=False),
    Pair("DECIMAL(10,2)", "DECIMAL(12,2)", decimals(10, 2)),
    Pair("DECIMAL(10,2)", "DECIMAL(20,7)", decimals(10, 2)),
    Pair("DECIMAL(5,0)", "DECIMAL(9,3)", decimals(5, 0)),
    Pair("DECIMAL(10,4) UNSIGNED", "DECIMAL(10,4)", decimals(10, 4, negative=False)),
    Pair("DECIMAL(10,2)", "DECIMAL(8,2)", decimals(10, 2), every=False),
    Pair("DECIMAL(10,4)", "DECIMAL(10,2)", decimals(10, 4), every=False),
    Pair("DECIMAL(10,2)", "DECIMAL(10,4)", decimals(10, 2), every=False),
    Pair("DECIMAL(10,2)", "DECIMAL(10,2) UNSIGNED", decimals(10, 2), every=False),
    Pair("FLOAT", "DOUBLE", SINGLES),
    Pair("FLOAT(7,3)", "FLOAT", st.sampled_from(["1234.567", "-0.001", "0", "0.1"])),
    Pair("FLOAT", "DOUBLE UNSIGNED", SINGLES, every=False),
    Pair("DOUBLE(20,5)", "DOUBLE", st.sampled_from(["123456789.12345", "-1.5", "0.00001"])),
    Pair("DOUBLE", "DOUBLE UNSIGNED", DOUBLES, every=False),
    Pair("BIT(1)", "BIT(2)", bits(1)),
    Pair("BIT(3)", "BIT(12)", bits(3)),
    Pair("BIT(12)", "BIT(64)", bits(12)),
    Pair("BIT(12)", "BIT(9)", bits(12), every=False),
    Pair("BIT(8)", "BIT(1)", bits(8), every=False),
    Pair("DATE", "DATETIME", DAYS.map(lambda day: f"'{day}'")),
    Pair("DATE", "DATETIME(6)", DAYS.map(lambda day: f"'{day}'")),
    Pair("DATETIME", "DATETIME(3)", quoted(MOMENTS, 0)),
    Pair("DATETIME(3)", "DATETIME(6)", quoted(MOMENTS, 3)),
    Pair("TIMESTAMP NULL", "TIMESTAMP(4) NULL", quoted(STAMPS, 0)),
    Pair("TIMESTAMP(1) NULL", "TIMESTAMP(6) NULL", quoted(STAMPS, 1)),
    Pair("TIME", "TIME(2)", quoted(CLOCKS, 0)),
    Pair("TIME(4)", "TIME(6)", quoted(CLOCKS, 4)),
    Pair("CHAR(5)" + UTF8, "CHAR(8)" + UTF8, texts(5)),
    Pair("CHAR(5)" + UTF8, "VARCHAR(5)" + UTF8, texts(5)),
    Pair("CHAR(5)" + LATIN1, "TEXT" + UTF8, texts(5, WESTERN)),
    Pair("VARCHAR(5)" + UTF8, "VARCHAR(9)" + UTF8, texts(5)),
    Pair("VARCHAR(5)" + LATIN1, "VARCHAR(5)" + UTF8, texts(5, WESTERN)),
    Pair("VARCHAR(5)" + LATIN1, "VARCHAR(5) CHARACTER SET utf8", texts(5, WESTERN)),
    Pair("VARCHAR(5) CHARACTER SET utf16", "VARCHAR(5)" + UTF8, texts(5)),
    Pair("VARCHAR(5)" + UTF8, "VARCHAR(5) CHARACTER SET utf32", texts(5)),
    Pair("VARCHAR(5) CHARACTER SET gbk", "VARCHAR(5)" + UTF8, texts(5, "aA漢字 \\")),
    Pair("VARCHAR(5) CHARACTER SET utf8", "VARCHAR(5)" + UTF8, texts(5, WESTERN + "漢")),
    Pair("VARCHAR(60)" + UTF8, "TINYTEXT" + UTF8, texts(60)),
    Pair("TINYTEXT" + UTF8, "TEXT" + UTF8, texts(60)),
    Pair("TEXT" + UTF8, "LONGTEXT" + UTF8, texts(60)),
    Pair("VARCHAR(9)" + UTF8, "VARCHAR(3)" + UTF8, texts(9), every=False),
    Pair("VARCHAR(9)" + UTF8, "VARCHAR(3)" + LATIN1, texts(9), every=False),
    Pair("TEXT" + UTF8, "VARCHAR(3)" + UTF8, texts(9), every=False),
    Pair("CHAR(9)" + UTF8, "VARCHAR(3)" + UTF8, texts(9), every=False),
    Pair("VARCHAR(5)" + UTF8, "VARCHAR(5) CHARACTER SET utf8", texts(5), every=False),
    Pair("TEXT" + UTF8, "TINYTEXT" + UTF8, st.integers(240, 270).flatmap(
        lambda n: st.sampled_from([f"REPEAT('a', {n})", f"CONCAT(REPEAT('a', {n - 9}), REPEAT(' ', 9))"])  # noqa: E501
    ), every=False),
    Pair("BINARY(4)", "VARBINARY(4)", binaries(4)),
    Pair("BINARY(4)", "BLOB", binaries(4)),
    Pair("VARBINARY(4)", "VARBINARY(9)", binaries(4)),
    Pair("VARBINARY(9)", "TINYBLOB", binaries(9)),
    Pair("TINYBLOB", "LONGBLOB", binaries(9)),
    Pair("VARBINARY(9)", "VARBINARY(3)", binaries(9), every=False),
    Pair("BLOB", "VARBINARY(3)", binaries(9), every=False),
    Pair("ENUM('a','é','x y')" + UTF8, "ENUM('x y','b','é','a')" + UTF8, labels("a", "é", "x y")),
    Pair("ENUM('a','é')" + LATIN1, "ENUM('é','a')" + UTF8, labels("a", "é", "none")),
    Pair("ENUM('a','é')" + LATIN1, "VARCHAR(1)" + UTF8, labels("a", "é", "none")),
    Pair("ENUM('a','éé')" + LATIN1, "CHAR(2)" + UTF8, labels("a", "éé")),
    Pair("ENUM('a','éé')" + UTF8, "VARCHAR(1)" + UTF8, labels("a", "éé"), every=False),
    Pair("SET('a','é')" + UTF8, "SET('z','a','y','é')" + UTF8, labels("", "a", "é", "a,é")),
    Pair("SET('a','é')" + LATIN1, "SET('a','é','z')" + UTF8, labels("", "a", "é", "a,é")),
    Pair("POINT", "GEOMETRY", st.sampled_from(["ST_GeomFromText('POINT(1 -2.5)')"])),
    Pair("UUID", "CHAR(36)" + LATIN1, st.uuids().map(lambda u: f"'{u}'"), own_to_mariadb=True),
    Pair("UUID", "VARCHAR(36)" + UTF8, st.uuids().map(lambda u: f"'{u}'"), own_to_mariadb=True),
    Pair("INET6", "VARCHAR(39)" + UTF8, st.one_of(
        st.ip_addresses(v=6).map(lambda a: f"'{a}'"),
        st.sampled_from(["'::'", "'::1.2.3.4'", "'::ffff:1.2.3.4'", "'1::'", "'2001:db8:0:1:1:1:1:1'"]),  # noqa: E501
    ), own_to_mariadb=True),
    Pair("INET4", "VARCHAR(15)" + UTF8, st.ip_addresses(v=4).map(lambda a: f"'{a}'"),
         own_to_mariadb=True),
]  # fmt: skip
