"""The join of shapes: least, upper, and independent of the order of the members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replicator.schema.structure.structure import Column
from replicator.sharding.optimistic.column_order import joined_column, takes
from replicator.sharding.optimistic.shapes import (
    NoJoinError,
    Shape,
    ShapeColumn,
    fits,
    join,
    with_ways,
)

_PLAIN = (
    "tinyint(4)",
    "smallint",
    "int(11)",
    "int",
    "int(10) unsigned",
    "bigint(20)",
    "bigint unsigned",
    "int(5) unsigned zerofill",
    "decimal(10,2)",
    "decimal(12,2)",
    "decimal(12,4)",
    "decimal(20,0)",
    "float",
    "double",
    "bit(3)",
    "bit(9)",
    "time",
    "time(3)",
    "datetime",
    "datetime(6)",
    "timestamp(2)",
    "date",
    "year(4)",
    "json",
    "varbinary(8)",
    "binary(8)",
    "blob",
    "longblob",
)
_TEXT = ("char(5)", "varchar(5)", "varchar(300)", "tinytext", "text", "longtext", "enum('a','b')")
_LABELS = ("enum('a','b','c')", "enum('b','a')", "set('x')", "set('x','y')")
_COLLATIONS = {
    "ascii": ("ascii_general_ci", "ascii_bin"),
    "latin1": ("latin1_swedish_ci", "latin1_bin"),
    "utf8mb3": ("utf8mb3_general_ci", "utf8mb3_bin"),
    "utf8": ("utf8_general_ci",),
    "utf8mb4": ("utf8mb4_general_ci", "utf8mb4_bin"),
}


@st.composite
def columns(draw: st.DrawFn, name: str = "c") -> Column:
    """A column of any kind; mostly of the few types that meet."""
    nullable = draw(st.booleans())
    if draw(st.booleans()):
        return Column(name, draw(st.sampled_from(_PLAIN)), nullable=nullable)
    charset = draw(st.sampled_from(sorted(_COLLATIONS)))
    collation = draw(st.sampled_from(_COLLATIONS[charset]))
    kind = draw(st.sampled_from((*_TEXT, *_LABELS)))
    return Column(name, kind, charset, collation, nullable)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """A shape of up to three columns, with keys."""
    names = draw(st.sets(st.sampled_from(("a", "b", "c")), min_size=1))
    found = {name: ShapeColumn(draw(columns(name))) for name in sorted(names)}
    keys = st.frozensets(st.sampled_from(sorted(names)), min_size=1, max_size=2)
    primary = draw(st.none() | keys)
    if primary is not None:
        for name in primary:
            column = replace(found[name].column, nullable=False)
            found[name] = ShapeColumn(column)
    unique = draw(st.frozensets(keys, max_size=2)) - {primary}
    indexes = draw(st.frozensets(st.sampled_from([("k", "key k ( a )"), ("k", "key k ( b )")])))
    checks = draw(st.frozensets(st.sampled_from(["b > 0", "a < 9", "json_valid c"])))
    texts = {"a": ["`a` ( 3 )", "`a` ( 5 )"], "b": ["b"], "c": ["( lower ( `c` ) )"]}
    partial = st.sampled_from([text for name in sorted(names) for text in texts[name]])
    sets = st.frozensets(partial, min_size=1, max_size=2).filter(lambda found: found != {"b"})
    # Without a part of a column, or an expression, it would be an ordinary unique key.
    parts = draw(st.frozensets(sets, max_size=1)) if names != {"b"} else frozenset()
    return with_ways(Shape(found, primary, unique, indexes, checks, parts))


def _joined(found: Sequence[Shape]) -> Shape | None:
    try:
        return join(found)
    except NoJoinError:
        return None


@given(st.lists(columns(), min_size=1, max_size=4))
def test_a_joined_column_takes_all_and_no_other_that_does_is_narrower(found: list[Column]) -> None:
    joined = joined_column(found)
    if joined is None:
        return
    assert all(takes(joined, column) for column in found)
    assert joined.nullable == any(column.nullable for column in found)
    for other in found:
        if all(takes(other, column) for column in found):
            assert takes(other, joined)


@given(columns(), columns(), columns())
def test_the_order_is_transitive(one: Column, two: Column, three: Column) -> None:
    if takes(two, one) and takes(three, two):
        assert takes(three, one)


@given(shapes())
def test_the_join_with_itself_changes_nothing(shape: Shape) -> None:
    assert fits(shape, shape)
    assert join([shape]).sense == join([shape, shape]).sense == join([join([shape])]).sense


@given(st.lists(shapes(), min_size=1, max_size=4), st.randoms())
def test_the_order_of_the_members_does_not_matter(found: list[Shape], random: object) -> None:
    joined = _joined(found)
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    again = _joined(shuffled)
    assert (joined and joined.sense) == (again and again.sense)


@st.composite
def shapes_with_one_key(draw: st.DrawFn) -> Shape:
    """A shape with the primary key that all of these have, without a collation.

    Whether rows without a JSON column pass its CHECK, a join of some does not tell.
    """
    shape = draw(shapes())
    key = Column("a", draw(st.sampled_from(_PLAIN)), nullable=False)
    return replace(
        shape,
        columns={**shape.columns, "a": ShapeColumn(key)},
        primary=frozenset({"a"}),
        unique=frozenset(),
        checks=shape.checks - {"json_valid c"},
    )


@given(shapes_with_one_key(), shapes_with_one_key(), shapes_with_one_key())
def test_joins_of_joins_are_the_join_of_all_that_have_the_same_keys(
    one: Shape, two: Shape, three: Shape
) -> None:
    first = _joined([one, two])
    nested = _joined([first, three]) if first is not None else None
    if nested is not None:
        together = _joined([one, two, three])
        assert together is not None
        assert nested.sense == together.sense


def test_a_column_that_a_stricter_key_leaves_out_is_not_compared() -> None:
    """A member's key over a part of ``a`` decides about its rows before ``b`` does."""
    text = ShapeColumn(Column("a", "char(5)", "utf8", "utf8_general_ci"))
    keyed = {"a": text, "b": replace(text, column=replace(text.column, name="b"))}
    partial = frozenset([frozenset(["`a` ( 3 )"])])
    one = with_ways(Shape(keyed, frozenset("ab"), frozenset(), frozenset(), partial=partial))
    number = {"c": ShapeColumn(Column("c", "tinyint(4)", nullable=False))}
    two = Shape(number, frozenset("c"), frozenset(), frozenset())
    assert fits(one, join([one, two]))


@given(st.lists(shapes(), min_size=1, max_size=4))
def test_every_member_fits_into_the_join(found: list[Shape]) -> None:
    joined = _joined(found)
    if joined is not None:
        assert all(fits(shape, joined) for shape in found)


@given(st.lists(shapes(), min_size=1, max_size=3), shapes())
def test_the_join_fits_into_all_that_take_the_members(found: list[Shape], other: Shape) -> None:
    joined = _joined(found)
    if joined is not None and all(fits(shape, other) for shape in found):
        assert fits(joined, other)


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (("smallint", "mediumint", "bigint"), "bigint"),
        (("int", "int unsigned"), None),
        (("int", "decimal(12,2)"), "decimal(12,2)"),
        (("int", "decimal(10,2)"), None),
        (("int unsigned", "double"), "double"),
        (("bigint", "double"), None),
        (("int", "varchar(20)"), None),
        (("date", "datetime"), None),
        (("enum('a')", "enum('a','b')"), "enum('a','b')"),
        (("enum('a')", "enum('b','a')"), None),
        (("int(4) zerofill", "int"), None),
        (("binary(4)", "varbinary(4)"), None),
        (("time", "time(3)"), "time(3)"),
    ],
)
def test_the_types_that_join(types: tuple[str, ...], expected: str | None) -> None:
    found = joined_column([Column("c", kind) for kind in types])
    assert (found and found.type) == expected


def test_a_key_is_on_the_target_while_each_member_has_one_at_least_as_strict() -> None:
    columns_ = {name: ShapeColumn(Column(name, "int", nullable=False)) for name in "ab"}
    a, b, both = frozenset("a"), frozenset("b"), frozenset("ab")

    def keyed(*keys: frozenset[str]) -> Shape:
        return Shape(columns_, None, frozenset(keys), frozenset())

    assert join([keyed(a), keyed(both)]).unique == {both}
    assert join([keyed(a), keyed(b)]).unique == set()
    assert join([keyed(a), keyed()]).unique == set()
    primary = replace(keyed(), primary=a)
    assert join([primary, replace(keyed(), primary=b)]).primary == both
    assert join([primary, keyed()]).primary is None


def test_collations_that_do_not_meet_in_a_key_are_named() -> None:
    def keyed(collation: str) -> Shape:
        column = Column("c", "varchar(9)", "utf8mb4", collation, nullable=False)
        columns = {"c": ShapeColumn(column)}
        return with_ways(Shape(columns, frozenset("c"), frozenset(), frozenset()))

    with pytest.raises(NoJoinError, match="utf8mb4_general_ci and utf8mb4_unicode_ci"):
        join([keyed("utf8mb4_general_ci"), keyed("utf8mb4_unicode_ci")])
