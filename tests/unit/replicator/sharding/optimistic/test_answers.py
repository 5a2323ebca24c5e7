"""What becomes of single statements, and of the fills and stale columns behind them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.schema.effects.touched_parts import Touched, column_part
from replicator.schema.structure.structure import UniqueKey
from replicator.sharding.optimistic.answers import JoinVerdict, StatementAnswer, answer, left_open
from replicator.sharding.optimistic.conflicts import Change
from replicator.sharding.optimistic.differences import against, differences_of
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.history import (
    EntryKind,
    HistoryEntry,
    TargetHistory,
    begin_of,
    entry_of,
)
from replicator.sharding.optimistic.shapes import (
    may_exclude_rows,
    parts_of_step,
    shape_of,
    without_parts,
)
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    RefusedStep,
    ShardState,
)
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Definition, table
from tests.support.optimistic_answers import B, bring, conflict, history_of


def test_the_first_shard_changes_the_target_and_the_fill_stays_as_it_was_added() -> None:
    found = history_of("A", "B")
    assert bring(found, "A", (B, ("c", "int", " DEFAULT 1")), added="c").own
    later = bring(found, "A", (B, ("c", "int", " DEFAULT 2")), other="c")
    assert not later.step
    assert found.state.fills["c"].sql == "1"
    assert (
        conflict(bring(found, "B", (B, ("c", "int", " DEFAULT 2")), added="c")) is ConflictKind.FILL
    )


def test_the_second_shard_finds_the_column_there() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", " DEFAULT 1")), added="c")
    second = bring(found, "B", (B, ("c", "int", " DEFAULT 1")), added="c")
    assert second.answer is StatementAnswer.TAKEN
    assert not second.step


def test_a_dropped_column_is_stale_until_the_others_drop_it() -> None:
    found = history_of("A", "B", "C")
    for member in "ABC":
        bring(found, member, (B, ("c", "int", "")), added="c")
    assert not bring(found, "A", (B,), dropped="c").step
    assert found.state.members["A"].stale == {"c"}
    added = bring(found, "A", (B, ("c", "int", "")), added="c")
    assert conflict(added) is ConflictKind.STALE
    bring(found, "B", (B,), dropped="c")
    assert found.state.members["A"].stale == {"c"}
    assert bring(found, "C", (B,), dropped="c").own
    assert found.state.members["A"].stale == frozenset()


def test_a_column_stays_nullable_while_rows_without_it_are_null() -> None:
    found = history_of("A", "B", "C")
    for member in "ABC":
        bring(found, member, (B, ("c", "int", " DEFAULT NULL")), added="c")
    bring(found, "A", (B,), dropped="c")
    for member in "BC":
        full = (B, ("c", "int", " NOT NULL"))
        assert not bring(found, member, full, converted="c").step
    joined = found.state.joined()
    assert joined is not None
    assert joined.columns["c"].column.nullable
    assert not bring(found, "B", (B,), dropped="c").step
    assert bring(found, "C", (B,), dropped="c").step


def test_the_target_is_never_narrower_than_a_shard() -> None:
    found = history_of("A", "B")
    wide = bring(found, "B", (("b", "bigint", ""),), converted="b")
    assert wide.own
    narrower = bring(found, "A", (("b", "mediumint", ""),), converted="b")
    assert not narrower.step
    assert narrower.after is not None
    assert narrower.after.columns["b"].column.type == "bigint"


def test_a_name_is_given_when_all_shards_have_it() -> None:
    found = history_of("A", "B")
    behind = (("c", "smallint", ""),)
    first = bring(found, "A", behind, renamed="b", named="c", added="c")
    assert conflict(first) is ConflictKind.NAME
    last = bring(found, "B", behind, renamed="b", named="c", added="c")
    assert last.own
    assert last.granted == ("A",)
    opened = found.state.members["A"].open
    assert opened is not None
    assert opened.granted


def test_the_operator_settles_two_types() -> None:
    for action, kind in ((Action.EXEC, "varchar(9)"), (Action.SKIP, "int")):
        found = history_of("A", "B")
        bring(found, "A", (B, ("c", "int", "")), added="c")
        text = (B, ("c", "varchar(9)", ""))
        assert conflict(bring(found, "B", text, added="c")) is ConflictKind.TYPE
        settled = bring(found, "B", text, action, added="c")
        assert settled.after is not None
        assert settled.after.columns["c"].column.type == kind
        assert settled.converted == ({"c"} if action is Action.EXEC else frozenset())


def test_a_release_carries_over_what_the_former_had_not_reached() -> None:
    found = history_of("A1", "A2", "A3")
    first = found.next_release("A", {"A1": Place(5, 0)}, (0, Place(9, 1)))
    assert (first.number, first.at, first.members) == (1, Place(9, 1), (("A1", Place(5, 0)),))
    found.take(HistoryEntry(EntryKind.RELEASED, "A1", source="A", release=first))
    # Nothing of version 1 is applied yet: rows of A1 still begin at its statement.
    second = found.next_release("A", {"A2": Place(7, 0)}, (0, Place(9, 1)))
    assert dict(second.members) == {"A1": Place(5, 0), "A2": Place(7, 0)}
    assert second.at == Place(9, 1)


def test_the_fill_of_a_column_stays_when_the_shard_that_brought_it_leaves() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", " DEFAULT 0")), added="c")
    found.take(HistoryEntry(EntryKind.LEFT, "A", gone=("A",)))
    bring(found, "B", (B, ("d", "int", "")), added="d")
    other = bring(found, "B", (B, ("d", "int", ""), ("c", "int", " DEFAULT -1")), added="c")
    assert conflict(other) is ConflictKind.FILL


def test_a_target_that_goes_with_its_last_shard_keeps_nothing() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", " DEFAULT 0")), added="c")
    found.take(HistoryEntry(EntryKind.LEFT, "A", gone=("A",)))
    assert found.state.left.keys() == {"A"}
    drop = HistoryEntry(EntryKind.LEFT, "B", gone=("B",), run=("DROP TABLE t",), dropped=True)
    found.take(drop)
    assert (found.state.members, found.state.left, found.state.fills) == ({}, {}, {})


def test_a_shard_leaves_and_another_one_takes_its_name_by_one_statement() -> None:
    found = history_of("A1", "A2", "B")
    bring(found, "A2", (B, ("c", "int", "")), added="c")
    taken = found.state.members["A2"].taken
    names = (("A1", "away"), ("A2", "A1"))
    found.take(HistoryEntry(EntryKind.RENAMED, "A1", renamed=names, gone=("away",)))
    assert found.state.members.keys() == {"A1", "B"}
    assert found.state.members["A1"].taken == taken
    assert found.state.left.keys() == {"away"}


def test_a_narrower_structure_that_the_target_refuses() -> None:
    """It is told until the operator leaves it so, it is made, or nobody wants it any more."""
    found = history_of("A", "B")
    wide, narrow = ("c", "varchar(9)", ""), ("c", "varchar(3)", "")
    for member in "AB":
        bring(found, member, (B, wide, ("d", "int", "")), added="c", reconciles=True)
    bring(found, "A", (B, narrow), converted="c", dropped="d", reconciles=True)
    before, at = found.state.joined(), Place(7, 0)
    change = (B, narrow)
    verdict = bring(found, "B", change, converted="c", dropped="d", reconciles=True)
    assert before is not None
    assert verdict.after is not None
    parts = parts_of_step(before, verdict.after)
    step = RefusedStep("B", at, "x", "Data too long", parts)
    refused = replace(entry_of("B", verdict, ()), refusal=step)
    found.take(refused)
    present = without_parts(verdict.after, parts, before)
    assert present.sense == before.sense
    found.take(HistoryEntry(EntryKind.SAID, "B", action=Action.EXEC, at=at))
    assert found.refused_steps == (replace(step, action=Action.EXEC),)
    found.take(HistoryEntry(EntryKind.REFUSED, "B", refusal=step, at=at))
    assert found.refused_steps == (step,)
    for last in (EntryKind.STEPPED, EntryKind.TAKEN):
        if last is EntryKind.STEPPED:
            found.take(HistoryEntry(last, "B", at=at))
        else:
            found.take(refused)
            bring(
                found, "A", (B, wide, ("d", "int", "")), added="d", converted="c", reconciles=True
            )
        assert not found.refused_steps


def test_what_the_target_has_refused_is_put_to_the_rule_again_when_the_target_has_changed() -> None:
    found = history_of("A", "B")
    shard_state = found.state.members["A"]
    assert shard_state.taken is not None
    after = table((B, ("c", "int", "")))
    change = Change("A", Place(1, 0), "x", "x", shard_state.taken, after, Touched())
    refused = left_open(found.state, change, ConflictKind.REFUSED, "the target refuses it")
    found.take(entry_of("A", refused, ()))
    assert found.due(["A"], {"A": change}) == {}
    bring(found, "B", (B, ("d", "int", "")), added="d")
    assert found.due(["A"], {"A": change}) == {}
    found.take(HistoryEntry(EntryKind.LEFT, "B", gone=("B",)))
    assert found.due(["A"], {"A": change}) == {"A": Place(1, 0)}


def test_rows_that_were_held_begin_at_the_open_statement_by_a_new_name_too() -> None:
    found = history_of("A1", "A2")
    release = found.next_release("A", {"A1": Place(5, 0)}, (0, Place(9, 1)))
    found.take(HistoryEntry(EntryKind.RELEASED, "A1", source="A", release=release))
    found.take(HistoryEntry(EntryKind.RENAMED, "A1", renamed=(("A1", "A9"),)))
    assert begin_of(found.release("A"), "A9") == Place(5, 0)
    assert begin_of(found.release("A"), "A2") == Place(9, 1)


def test_what_a_column_is_that_its_holder_drops_while_others_have_ceded_it() -> None:
    found = history_of("A", "B", "C")
    bring(found, "B", (B, ("e", "int", "")), added="e")
    bring(found, "A", (B, ("e", "varchar(9)", "")), Action.EXEC, added="e")
    assert found.state.members["B"].ceded == {"e"}
    assert found.state.members["C"].ceded == frozenset()
    dropped = bring(found, "A", (B,), dropped="e")
    assert dropped.after is not None
    assert dropped.after.columns["e"].column.type == "int"
    assert found.state.members["B"].ceded == frozenset()


def test_what_members_lack_and_where_they_disagree() -> None:
    found = history_of("A", "B")
    bring(found, "A", (("b", "int", " DEFAULT 1"), ("c", "int", " DEFAULT 2")), added="c")
    told = differences_of(found.state)
    assert told.members == {
        "B": ("column b smallint on the target is int", "lacks column c (its new rows get 2)")
    }
    assert told.notices == ("the default of column b is 1 in A, and NULL in B",)
    bring(found, "B", (("b", "int", " DEFAULT 1"), ("c", "int", " DEFAULT 2")), added="c")
    assert not differences_of(found.state)


def test_because_of_which_members_a_statement_is_open() -> None:
    found = history_of("A", "B", "C")

    def concerned(member: str) -> list[str]:
        opened = found.state.open_of(member)
        assert opened is not None
        return [*against(found.state, member, opened)]

    for member in "AB":
        bring(found, member, (("d", "smallint", ""),), renamed="b", named="d")
    assert concerned("A") == concerned("B") == ["C"]

    found = history_of("A", "B", "C")
    bring(found, "A", (B, ("c", "int", "")), added="c")
    bring(found, "B", (B, ("c", "varchar(9)", "")), added="c")
    assert concerned("B") == ["A"]

    found = history_of("A", "B", "C")
    for member in "AB":
        bring(found, member, (B, ("c", "int", "")), added="c")
    bring(found, "A", (B,), dropped="c")
    bring(found, "A", (B, ("c", "int", "")), added="c")
    assert concerned("A") == ["B"]


def test_a_member_that_has_ceded_a_column_becomes_like_the_others() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", "")), added="c")
    bring(found, "B", (B, ("c", "varchar(9)", "")), Action.EXEC, added="c")
    other = bring(found, "A", (B, ("c", "datetime", "")), converted="c")
    assert conflict(other) is ConflictKind.TYPE
    alike = bring(found, "A", (B, ("c", "varchar(9)", "")), converted="c")
    assert alike.answer is StatementAnswer.TAKEN
    assert not alike.step
    assert found.state.members["A"].ceded == frozenset()


def test_two_types_are_named_before_two_fills_and_no_answer_converts_in_silence() -> None:
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", "int", " DEFAULT 0")), added="c")
    text = bring(found, "B", (B, ("c", "varchar(9)", " DEFAULT 'x'")), added="c")
    assert conflict(text) is ConflictKind.TYPE
    assert text.shard_state.open is not None
    assert "varchar(9)" in text.shard_state.open.reason
    assert "DEFAULT 0" in text.shard_state.open.reason
    assert text.shard_state.open.unfit.keys() == {Action.SKIP}


def test_no_answer_to_an_exchange_of_names_converts_in_silence() -> None:
    found = history_of("A", "B")
    two = (("c", "int", ""), ("d", "varchar(9)", ""))
    for member in "AB":
        bring(found, member, two, added="d")
    shard_state = found.state.members["A"]
    after = table((("c", "varchar(9)", ""), ("d", "int", "")))
    names = {column_part("c"), column_part("d")}
    touched = Touched(renamed=names, named=names)
    put = Change("A", Place(1, 0), "x", "x", shard_state.taken, after, touched)
    verdict = answer(found.state, put)
    assert conflict(verdict) is ConflictKind.NAME
    assert verdict.shard_state.open is not None
    assert verdict.shard_state.open.unfit.keys() == {Action.EXEC}


RANGES = "\nPARTITION BY RANGE (`b`) (PARTITION `p0` VALUES LESS THAN (10){})"
MORE = ", PARTITION `p1` VALUES LESS THAN (20)"
HASH = "\nPARTITION BY HASH (`b`) PARTITIONS 3"


def partition(
    found: TargetHistory[str], member: str, tail: str, more: tuple[Definition, ...] = ()
) -> JoinVerdict[str]:
    """A member's statement that gives it these partitions."""
    before = found.state.members[member].taken
    assert before is not None
    after = table((B, *more))
    after = replace(after, create_sql=after.create_sql + tail)
    touched = Touched(added={column_part(name) for name, *_ in more})
    change = Change(member, Place(1, 0), tail, tail, before, after, touched)
    verdict = answer(found.state, change)
    found.take(entry_of(member, verdict, ()))
    return verdict


@pytest.mark.parametrize("tail", [RANGES.format(""), HASH])
def test_the_target_gets_partitions_when_all_shards_have_them(tail: str) -> None:
    found = history_of("A", "B", "C")
    for member in "AB":
        verdict = partition(found, member, tail)
        assert (verdict.answer, verdict.step) == (StatementAnswer.TAKEN, False)
    assert partition(found, "C", tail).own


def test_one_more_range_comes_with_the_first_shard_that_has_it_if_the_target_has_ranges() -> None:
    found = history_of("A", "B", "C")
    partition(found, "A", RANGES.format(""))
    assert not partition(found, "A", RANGES.format(MORE)).step
    assert not partition(found, "B", RANGES.format("")).step
    assert not partition(found, "C", RANGES.format("")).step
    found = history_of("A", "B")
    for member in "AB":
        partition(found, member, RANGES.format(""))
    assert partition(found, "A", RANGES.format(MORE)).own
    assert not partition(found, "B", RANGES.format(MORE)).step


def test_a_column_that_comes_with_partitions_does_not_bring_these_to_the_target() -> None:
    found = history_of("A", "B")
    verdict = partition(found, "A", HASH, (("c", "int", ""),))
    assert verdict.step
    assert not verdict.own


@pytest.mark.parametrize(("there", "objects"), [("7", True), ("5", False)])
def test_a_column_that_the_target_has_and_no_shard(there: str, *, objects: bool) -> None:
    """Rows of all shards have the target's default in it."""
    found = history_of("A", "B")
    for member in "AB":
        after = table((B, ("c", "int", " DEFAULT 5")))
        change = Change(
            member, Place(1, 0), "", "", table((B,)), after, Touched(added={"column c"})
        )
        fills = {} if "c" in found.state.fills else {"c": Fill(there, there)}
        verdict = answer(found.state, replace(change, there=fills))
        assert verdict.answer is (StatementAnswer.OPEN if objects else StatementAnswer.TAKEN)
        if objects:
            assert conflict(verdict) is ConflictKind.FILL
            verdict = answer(found.state, replace(change, there=fills, action=Action.SKIP))
            assert verdict.fills["c"].sql == there
        found.take(entry_of(member, verdict, ()))


@pytest.mark.parametrize(
    ("tail", "primary", "told"),
    [("", ("b", "c"), False), ("", ("c",), True), (HASH, ("b",), True), ("", ("b",), False)],
)
def test_rows_that_a_new_structure_may_exclude(
    tail: str, primary: tuple[str, ...], *, told: bool
) -> None:
    before = table((B, ("c", "int", "")))
    before = replace(before, keys=(UniqueKey("PRIMARY", ("b",)),))
    after = replace(before, keys=(UniqueKey("PRIMARY", primary),))
    after = replace(after, create_sql=after.create_sql + tail)
    assert may_exclude_rows(before, after) is told
    shorter = replace(before, columns=(replace(before.columns[0], type="tinyint"),))
    assert may_exclude_rows(before, shorter)
    assert not may_exclude_rows(None, after)


@pytest.mark.parametrize(
    ("wide", "default", "narrow"),
    [
        ("decimal(12,1)", "1.5", "int"),
        ("datetime(3)", "'2020-01-01 00:00:00.75'", "datetime"),
        ("double", "0.1", "float"),
        ("varchar(9)", "'a  '", "char(9)"),
        ("text", f"'{'x' * 256}'", "tinytext"),
        ("int", "300", "tinyint"),
        ("bit(9)", "b'100000000'", "bit(3)"),
    ],
)
def test_the_target_stays_wider_for_the_fill_of_shards_without_the_column(
    wide: str, default: str, narrow: str
) -> None:
    """A server would change the values that these shards still add as they were."""
    found = history_of("A", "B")
    bring(found, "A", (B, ("c", wide, f" NOT NULL DEFAULT {default}")), added="c")
    narrower = bring(found, "A", (B, ("c", narrow, " NOT NULL")), converted="c")
    assert narrower.before is not None
    assert narrower.after is not None
    assert narrower.step
    assert "store unchanged" in found.state.unfit_fill(narrower.before, narrower.after)
    fits = history_of("A", "B")
    bring(fits, "A", (B, ("c", wide, " NOT NULL DEFAULT " + FITTING[narrow])), added="c")
    narrower = bring(fits, "A", (B, ("c", narrow, " NOT NULL")), converted="c")
    assert narrower.before is not None
    assert narrower.after is not None
    assert not fits.state.unfit_fill(narrower.before, narrower.after)


FITTING = {
    "int": "2.0",
    "datetime": "'2020-01-01 00:00:00.000'",
    "float": "0.5",
    "char(9)": "'a'",
    "tinytext": f"'{'x' * 255}'",
    "tinyint": "100",
    "bit(3)": "b'111'",
}


@pytest.mark.parametrize("default", ["float NOT NULL DEFAULT 1.1", "int DEFAULT (1 + 2)"])
def test_rows_without_a_column_must_be_found_in_a_target_without_a_key(default: str) -> None:
    keyless = replace(table((B,)), keys=())
    found = TargetHistory(
        HistoryEntry(EntryKind.MEMBER, m, ShardState(keyless), {}) for m in ("A", "B")
    )
    kind, _, rest = default.partition(" ")

    def added(name: str, text: str) -> JoinVerdict[str]:
        after = replace(table((B, (name, text.split()[0], f" {text.partition(' ')[2]}"))), keys=())
        touched = Touched(added={column_part(name)})
        put = Change("A", Place(1, 0), "x", "x", keyless, after, touched, found_by=frozenset())
        return answer(found.state, put)

    assert conflict(added("c", f"{kind} {rest}")) is ConflictKind.ROWS
    assert added("c", "int NOT NULL DEFAULT 3").answer is StatementAnswer.TAKEN


@pytest.mark.parametrize(
    ("former", "default", "kind", "unfit"),
    [
        ("int", "5", "varchar(9)", False),
        ("varchar(9)", "'5'", "int", False),
        ("varchar(9)", "'x'", "int", True),
        ("datetime", "'2020-01-01 00:00:00'", "varchar(30)", False),
        ("int", "12345", "varchar(3)", True),
    ],
)
def test_the_fill_of_shards_without_a_column_whose_type_becomes_another(
    former: str, default: str, kind: str, unfit: bool
) -> None:
    found = history_of("A", "B")
    before = table((B, ("c", former, f" DEFAULT {default}")))
    after = table((B, ("c", kind, f" DEFAULT {default}")))
    bring(found, "A", (B, ("c", former, f" DEFAULT {default}")), added="c")
    assert bool(found.state.unfit_fill(shape_of(before), shape_of(after))) is unfit
