from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replicator.ddl.parser.tokens import TokenKind, tokenise

LONG_PIECES = [
    "/*",
    "*/",
    "/*!",
    "/*!50100 ",
    "/*M!100100 ",
    "--",
    "0x",
    "x'",
    "b'",
    ":=",
    "SELECT",
]
PIECES = st.sampled_from([*LONG_PIECES, *"'\"`\\#-a1e+.@é;() \n\x00"])
GAP = re.compile(
    r"(?:[ \t\n\r\v\f]+|#[^\n]*|--(?=[\x00-\x20]|\Z)[^\n]*"
    r"|/\*M?!(?:\d{5,6})?|\*/|/\*.*?(?:\*/|\Z))*",
    re.ASCII | re.DOTALL,
)


def kinds(sql: str, **mode: bool) -> list[tuple[TokenKind, str]]:
    return [(token.kind, token.text) for token in tokenise(sql, **mode)]


@given(
    st.one_of(st.lists(PIECES, max_size=25).map("".join), st.text()), st.booleans(), st.booleans()
)
@example("/*!50100 a /* b */ c */ d", False, False)
def test_tokens_and_gaps_are_the_text(sql: str, ansi_quotes: bool, no_escapes: bool) -> None:
    tokens = tokenise(sql, ansi_quotes=ansi_quotes, no_backslash_escapes=no_escapes)
    position = 0
    rebuilt = ""
    for token in tokens:
        assert token.text
        assert GAP.fullmatch(sql[position : token.start]), sql[position : token.start]
        rebuilt += sql[position : token.start] + token.text
        position = token.end
    assert GAP.fullmatch(sql[position:])
    assert rebuilt + sql[position:] == sql
    assert all(token.kind is not TokenKind.INVALID for token in tokens[:-1])


@given(st.text(min_size=1).filter(lambda name: "\x00" not in name))
def test_a_quoted_name_comes_back(name: str) -> None:
    (token,) = tokenise("`" + name.replace("`", "``") + "`")
    assert token.kind is TokenKind.QUOTED
    assert token.name == name


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("'a''b'", [(TokenKind.STRING, "'a''b'")]),
        (r"'a\'b'", [(TokenKind.STRING, r"'a\'b'")]),
        ("'a\nb'", [(TokenKind.STRING, "'a\nb'")]),
        ('"a""b"', [(TokenKind.STRING, '"a""b"')]),
        ("`a``b`", [(TokenKind.QUOTED, "`a``b`")]),
        ("0x1F", [(TokenKind.HEX, "0x1F")]),
        ("0xZZ", [(TokenKind.WORD, "0xZZ")]),
        ("X'1F'", [(TokenKind.HEX, "X'1F'")]),
        ("b'01'", [(TokenKind.HEX, "b'01'")]),
        ("0b01", [(TokenKind.HEX, "0b01")]),
        ("1.5e-3", [(TokenKind.NUMBER, "1.5e-3")]),
        ("1e5", [(TokenKind.NUMBER, "1e5")]),
        ("1e+5", [(TokenKind.NUMBER, "1e+5")]),
        (".5", [(TokenKind.NUMBER, ".5")]),
        ("1abc", [(TokenKind.WORD, "1abc")]),
        ("1ea10", [(TokenKind.WORD, "1ea10")]),
        ("@a.b", [(TokenKind.VARIABLE, "@a.b")]),
        ("@`a b`", [(TokenKind.VARIABLE, "@`a b`")]),
        ("@'%'", [(TokenKind.VARIABLE, "@'%'")]),
        ("@@global.x", [(TokenKind.VARIABLE, "@@global.x")]),
        ("été$_1", [(TokenKind.WORD, "été$_1")]),
        ("'open", [(TokenKind.INVALID, "'open")]),
        ("`a``b", [(TokenKind.INVALID, "`a``b")]),
        ("'a''b", [(TokenKind.INVALID, "'a''b")]),
    ],
)
def test_a_text_is_one_token_of_this_kind(sql: str, expected: list[tuple[TokenKind, str]]) -> None:
    assert kinds(sql) == expected


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        ("db.1t", ["db", ".", "1t"]),
        ("db.123", ["db", ".", "123"]),
        ("`db`.5e3", ["`db`", ".", "5e3"]),
        ("a :=b", ["a", ":=", "b"]),
        ("a->>'$.x'", ["a", "->>", "'$.x'"]),
        ("a<=>b", ["a", "<=>", "b"]),
        ("5--1", ["5", "-", "-", "1"]),
        ("5-- 1\n6", ["5", "6"]),
        ("a #b\nc", ["a", "c"]),
        ("a /* b */ c", ["a", "c"]),
        ("a /* b", ["a"]),
        ("/*!a*/", ["a"]),
        ("/*!50100 a*/ b", ["a", "b"]),
        ("/*M!100301 a */ b", ["a", "b"]),
        ("/*!50100 a /* no */ b */ c", ["a", "b", "c"]),
        ("a */ b", ["a", "*", "/", "b"]),
        ("/*! a */ b */", ["a", "b", "*", "/"]),
        ("a .5", ["a", ".5"]),
        ("/*+ hint */ a", ["a"]),
        ("`root`@`%`", ["`root`", "@`%`"]),
        ("_utf8mb4'a'", ["_utf8mb4", "'a'"]),
        ("--", []),
    ],
)
def test_a_text_is_cut_into_these_tokens(sql: str, texts: list[str]) -> None:
    assert [token.text for token in tokenise(sql)] == texts


def test_sql_mode_changes_quotes_and_escapes() -> None:
    assert kinds('"a"', ansi_quotes=True) == [(TokenKind.QUOTED, '"a"')]
    assert tokenise('"a""b"', ansi_quotes=True)[0].name == 'a"b'
    assert kinds(r"'\' b", no_backslash_escapes=True) == [
        (TokenKind.STRING, r"'\'"),
        (TokenKind.WORD, "b"),
    ]
    assert kinds(r"'\' b")[0][0] is TokenKind.INVALID
