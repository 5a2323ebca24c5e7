"""Values of a key that a target takes for equal have one form."""

from __future__ import annotations

import pytest

from replicator.pipeline.compare.value_forms import key_form
from replicator.schema.structure.structure import Column


@pytest.mark.parametrize(
    ("target", "equal", "other"),
    [
        ("bigint(20)", [b"7", b"007", b"7.00", b"+7"], [b"70", b"-7", b"7.01", b"0.7"]),
        ("decimal(20,3)", [b"0", b"-0", b"0.00", b"000", b"-0.0"], [b"1", b"0.01"]),
        ("decimal(20,3)", [b"-12.5", b"-12.50", b"-012.5"], [b"12.5", b"-12.05"]),
        ("decimal(65,0)", [b"1" + b"0" * 63 + b"1"], [b"1" + b"0" * 64, b"1" + b"0" * 63 + b"2"]),
        ("decimal(65,0)", [b"1" + b"0" * 64, b"1" + b"0" * 64 + b".0"], [b"1e64x"]),
        ("year(4)", [b"2020"], [b"2021"]),
        ("float", [b"0.1", b"0.10000000149011612", b"1e-1"], [b"0.2"]),
        ("double", [b"0.1", b"1e-1"], [b"0.10000000149011612"]),
        ("double", [b"0", b"-0"], [b"5e-324"]),
        (
            "datetime(6)",
            [b"2020-01-10", b"2020-01-10 00:00:00", b"2020-01-10 00:00:00.000"],
            [b"2020-01-10 00:00:00.001", b"2020-01-10 00:00:10", b"2020-01-1"],
        ),
        ("time(3)", [b"-10:00:00", b"-10:00:00.0"], [b"10:00:00", b"-10:00:01"]),
        (
            "datetime(2)",
            [b"2020-01-01 10:00:00", b"2020-01-01 10:00:00.00"],
            [b"2020-01-01"],
        ),
        ("varbinary(4)", [b"a\\0", b"a\\0"], [b"a", b"a0"]),
        ("binary(4)", [b"a\\0", b"a", b"a\\0\\0"], [b"a0", b"\\0a"]),
        ("uuid", [b"0A-1b", b"0a1B"], [b"0a2b"]),
        ("inet6", [b"fe80::1", b"FE80::1"], [b"fe80::2"]),
        ("varchar(5)", [b"a\\tb"], [b"a\\\\tb", b"A\\tb"]),
        ("enum('a','b')", [b"a"], [b"A"]),
        ("bit(16)", [b"\\0\x01", b"\x01"], [b"\x01\\0", b"\x02"]),
        ("set('b','a')", [b"b,a", b"a,b"], [b"a", b"ab"]),
    ],
)
def test_equal_values_have_one_form(target: str, equal: list[bytes], other: list[bytes]) -> None:
    form = key_form(Column("c", target))
    (common,) = {form(field) for field in equal}
    assert common not in {form(field) for field in other}
