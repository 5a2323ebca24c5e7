"""Fields of a key in the form in which those that a target takes for equal are alike."""

from __future__ import annotations

import pytest

from replicator.pipeline.key_fields import KeyRule, form_of, key_rule
from replicator.schema.structure import Column


@pytest.mark.parametrize(
    ("rule", "equal", "other"),
    [
        (KeyRule.NUMBER, [b"7", b"007", b"7.00", b"+7"], [b"70", b"-7", b"7.01", b"0.7"]),
        (KeyRule.NUMBER, [b"0", b"-0", b"0.00", b"000", b"-0.0"], [b"1", b"0.01"]),
        (KeyRule.NUMBER, [b"-12.5", b"-12.50", b"-012.5"], [b"12.5", b"-12.05"]),
        (KeyRule.BITS, [b"\\0\x01", b"\x01"], [b"\x01\\0"]),
        (KeyRule.FLOAT, [b"0.1", b"0.10000000149011612", b"1e-1"], [b"0.2"]),
        (KeyRule.DOUBLE, [b"0.1", b"1e-1"], [b"0.10000000149011612"]),
        (KeyRule.DOUBLE, [b"0", b"-0"], [b"5e-324"]),
        (
            KeyRule.MOMENT,
            [b"2020-01-10", b"2020-01-10 00:00:00", b"2020-01-10 00:00:00.000"],
            [b"2020-01-10 00:00:00.001", b"2020-01-10 00:00:10", b"2020-01-1"],
        ),
        (KeyRule.MOMENT, [b"-10:00:00", b"-10:00:00.0"], [b"10:00:00", b"-10:00:01"]),
        (KeyRule.MOMENT, [b"2020-01-01 10:00:00", b"2020-01-01 10:00:00.00"], [b"2020-01-01"]),
        (KeyRule.BYTES, [b"a\\0", b"a\\0"], [b"a", b"a0"]),
        (KeyRule.PADDED, [b"a\\0", b"a", b"a\\0\\0"], [b"a0", b"\\0a"]),
        (KeyRule.PARSED, [b"0A-1b", b"0a1B"], [b"0a2b"]),
        (KeyRule.TEXT, [b"a\\tb"], [b"a\\\\tb", b"A\\tb"]),
        (KeyRule.LABELS, [b"b,a", b"a,b"], [b"a", b"ab"]),
    ],
)
def test_equal_values_have_one_form(rule: KeyRule, equal: list[bytes], other: list[bytes]) -> None:
    form = form_of(rule)
    (common,) = {form(field) for field in equal}
    assert common not in {form(field) for field in other}


@pytest.mark.parametrize(
    ("shard", "target", "rule"),
    [
        ("int(10) unsigned", "bigint(20)", KeyRule.NUMBER),
        ("bit(8)", "bit(16)", KeyRule.BITS),
        ("bit(8)", "int(11)", KeyRule.BITS),
        ("year(4)", "year(4)", KeyRule.NUMBER),
        ("date", "datetime(6)", KeyRule.MOMENT),
        ("float", "double", KeyRule.DOUBLE),
        ("binary(4)", "varbinary(4)", KeyRule.BYTES),
        ("binary(2)", "binary(4)", KeyRule.PADDED),
        ("enum('a')", "varchar(5)", KeyRule.TEXT),
        ("set('a','b')", "set('b','a')", KeyRule.LABELS),
        ("inet6", "inet6", KeyRule.PARSED),
    ],
)
def test_the_target_decides(shard: str, target: str, rule: KeyRule) -> None:
    assert key_rule(Column("c", shard), Column("c", target)) is rule
