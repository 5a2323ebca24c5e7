from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.routing.wildcards import NamePattern, PatternError, example_of, is_plain


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("t", ["t"], ["", "tt", "at"]),
        ("t_*", ["t_", "t_1", "t_\n"], ["t", "at_1"]),
        ("*", ["", "x"], []),
        ("a*c", ["ac", "abbc"], ["ab", "acd"]),
        ("t_?", ["t_1", "t_x"], ["t_", "t_12"]),
        ("t[1-3]", ["t1", "t3"], ["t4", "t", "t12"]),
        ("t[!1-3]", ["t4", "tx"], ["t1", "t"]),
        ("t[abx-z]", ["ta", "ty"], ["tc"]),
        ("t[^a]", ["t^", "ta"], ["tb"]),
        ("t.1", ["t.1"], ["tx1"]),
        ("a+b$", ["a+b$"], ["aab"]),
        ("~^t_[0-9]+$", ["t_1", "t_12"], ["t_", "at_1"]),
        ("~t", ["t", "xtx"], ["x"]),
        ("été*", ["été1"], ["ete1"]),
    ],
)
def test_whole_names_match(pattern: str, matching: list[str], others: list[str]) -> None:
    compiled = NamePattern(pattern, case_sensitive=True)
    assert [name for name in [*matching, *others] if compiled.matches(name)] == matching


@pytest.mark.parametrize("pattern", ["Shard_*", "~^Shard", "[R-T]hard_?", "SHARD_1"])
def test_patterns_match_without_case_unless_told_otherwise(pattern: str) -> None:
    assert NamePattern(pattern, case_sensitive=False).matches("sHARD_1")
    assert not NamePattern(pattern, case_sensitive=True).matches("sHARD_1")


@pytest.mark.parametrize("pattern", ["", "~", "t[", "t[]", "t[!]", "t[abc", "[c-a]", "~("])
def test_broken_patterns_name_themselves(pattern: str) -> None:
    with pytest.raises(PatternError) as caught:
        NamePattern(pattern, case_sensitive=True)
    assert repr(pattern) in str(caught.value)


@given(st.text(st.characters(exclude_characters="*?[]~"), min_size=1))
def test_a_name_without_wildcards_matches_itself_only(name: str) -> None:
    pattern = NamePattern(name, case_sensitive=True)
    assert pattern.matches(name)
    assert not pattern.matches(name + "x")
    assert not pattern.matches("x" + name)
    assert not pattern.matches(name + "\n")


@given(st.text(st.characters(exclude_characters="*?[]~"), min_size=1), st.text())
def test_a_star_at_the_end_matches_any_continuation(prefix: str, rest: str) -> None:
    assert NamePattern(prefix + "*", case_sensitive=True).matches(prefix + rest)


@pytest.mark.parametrize("text", ["t", "t*", "*", "t_?", "a[1-4]b", "[!abc]x*", "[!z]", "a.b"])
def test_an_example_of_a_pattern_matches_it(text: str) -> None:
    example = example_of(text)
    assert example is not None
    assert NamePattern(text, case_sensitive=True).matches(example)
    assert is_plain(text) == (example == text)


def test_a_regular_expression_has_no_example() -> None:
    assert example_of("~^t[0-9]+$") is None
    assert not is_plain("~t")
