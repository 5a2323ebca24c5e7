"""Rows in the way of others take values that these free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from replicator.mysql.names import Member, TableName
from replicator.pipeline.compare.compare_plan import ComparisonPlan, plan_comparison
from replicator.pipeline.compare.compare_structures import ComparedShard
from replicator.pipeline.compare.doubts import RowDifference
from replicator.pipeline.compare.lent_values import lend_values
from replicator.routing.columns.member_columns import MemberColumns
from replicator.schema.structure.structure import Column, Table, UniqueKey

ID, N, U = Column("id", "int(11)"), Column("n", "int(11)"), Column("u", "int(11)")


def plan(*columns: Column, unique: Sequence[Sequence[str]] = (["u"],)) -> ComparisonPlan:
    keys = [UniqueKey("PRIMARY", ("id",))]
    keys += [UniqueKey(f"k{n}", tuple(names)) for n, names in enumerate(unique)]
    target = Table("db", "t", columns, tuple(keys), "")
    shard = Table("db", "t1", columns, tuple(keys), "")
    member = Member("a", TableName("db", "t1"))
    return plan_comparison(target, [ComparedShard(member, shard, MemberColumns())])


PLAN = plan(ID, U)


def different(key: int, there: int, here: int) -> RowDifference:
    return RowDifference(
        b"%d" % key, b"%d\t%d" % (key, there), b"%d\t%d" % (key, here), "a", columns=(1,)
    )


def missing(key: int, here: int) -> RowDifference:
    return RowDifference(b"%d" % key, None, b"%d\t%d" % (key, here), "a")


def test_the_row_in_the_way_takes_the_value_that_is_freed() -> None:
    lent = lend_values(PLAN, [different(1, 10, 20), different(2, 20, 30)], {b"1"})
    assert lent is not None
    assert [one.in_shard for one in lent.rows] == [b"1\t20", b"2\t10"]
    assert lent.borrowers == {b"2": b"2\t10"}


def test_a_row_that_gets_its_own_value_borrows_nothing() -> None:
    lent = lend_values(PLAN, [different(1, 10, 20), different(2, 20, 10)], {b"1"})
    assert lent is not None
    assert [one.in_shard for one in lent.rows] == [b"1\t20", b"2\t10"]
    assert not lent.borrowers


def test_a_missing_row_frees_no_value() -> None:
    assert lend_values(PLAN, [missing(1, 20), different(2, 20, 30)], {b"1"}) is None


def test_only_wrong_columns_are_changed() -> None:
    of_two = plan(ID, N, U, unique=[["n", "u"]])
    # The first row frees (7, 10), and the second one keeps its n, which is right.
    wrong = [
        RowDifference(b"1", b"1\t7\t10", b"1\t8\t20", "a", columns=(1, 2)),
        RowDifference(b"2", b"2\t8\t20", b"2\t8\t30", "a", columns=(2,)),
    ]
    assert lend_values(of_two, wrong, {b"1"}) is None
    wrong[0] = RowDifference(b"1", b"1\t8\t10", b"1\t8\t20", "a", columns=(2,))
    lent = lend_values(of_two, wrong, {b"1"})
    assert lent is not None
    assert lent.borrowers == {b"2": b"2\t8\t10"}


def test_values_of_keys_that_share_a_column_or_of_texts_are_not_lent() -> None:
    wrong = [different(1, 10, 20), different(2, 20, 30)]
    assert lend_values(plan(ID, U, unique=[["u"], ["u", "id"]]), wrong, {b"1"}) is None
    text = Column("u", "varchar(9)", charset="utf8mb4", collation="utf8mb4_general_ci")
    assert lend_values(plan(ID, text), wrong, {b"1"}) is None


@given(st.permutations(range(12)), st.permutations(range(12)), st.sets(st.integers(0, 11)))
def test_all_values_stay_unique_and_those_asked_for_are_right(
    there: list[int], here: list[int], asked: set[int]
) -> None:
    holder = {value: key for key, value in enumerate(there)}
    concerned = asked | {holder[here[key]] for key in asked}
    wrong = [different(k, there[k], here[k]) for k in sorted(concerned) if there[k] != here[k]]
    lent = lend_values(PLAN, wrong, {b"%d" % key for key in asked})
    assert lent is not None
    written: Mapping[bytes, bytes] = {one.key: one.in_shard or b"" for one in lent.rows}
    result = [
        int(written.get(b"%d" % key, b"\t%d" % value).split(b"\t")[1])
        for key, value in enumerate(there)
    ]
    assert sorted(result) == list(range(12))
    assert all(result[key] == here[key] for key in asked)
