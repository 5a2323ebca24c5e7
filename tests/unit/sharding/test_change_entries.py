"""Without coordination: what a shard's statement is to a target that other shards have changed."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replicator.mysql.names import Member
from replicator.sharding.uncoordinated.change_history import ChangeHistory, Entry, Reading
from tests.support.tasks.followed_changes import Columns, Followed, altered

FIRST = "a int, b int, c int"


def walk(followed: Followed, member: Member, *actions: str) -> list[Reading | None]:
    return [followed.alter(member, action) for action in actions]


@pytest.mark.parametrize(
    "changes",
    [
        ("DROP c", "ADD c int"),
        ("DROP c, ADD c int",),
        ("CHANGE a b int, CHANGE b a int",),
        ("CHANGE a b int, CHANGE b a int", "CHANGE a b int, CHANGE b a int"),
        ("ADD d int", "DROP d", "ADD d int"),
        ("MODIFY a bigint", "MODIFY a varchar(9)"),
        ("MODIFY a bigint", "MODIFY a int", "MODIFY a bigint"),
        ("CHANGE a d int", "ADD a int"),
        ("ADD INDEX i (a)", "DROP INDEX i", "ADD INDEX i (b)"),
        ("ALTER a SET DEFAULT 1", "ALTER a SET DEFAULT 2"),
        ("ADD PARTITION (PARTITION p VALUES LESS THAN (9))", "ENGINE=InnoDB"),
    ],
    ids=" | ".join,
)
def test_a_change_is_made_once(changes: tuple[str, ...]) -> None:
    followed = Followed(FIRST)
    one, two = followed.member("x.t1"), followed.member("y.t1")
    assert walk(followed, one, *changes) == [Reading.NEW] * len(changes)
    after = followed.target
    assert walk(followed, two, *changes) == [Reading.APPLIED] * len(changes)
    assert followed.target == after


def test_what_has_become_of_a_column() -> None:
    changes: dict[int, Entry[str]] = {
        1: Entry("a", changed=True, touches=frozenset({"c"})),
        2: Entry("a", changed=True, exchanged=frozenset({"c", "d"})),
        3: Entry("a", changed=True, exchanged=frozenset({"c", "e"})),
        4: Entry("a", changed=True, dropped=frozenset({"d"})),
        5: Entry("a", changed=True, exchanged=frozenset({"a", "b", "f"})),
    }
    history = ChangeHistory((number, changes[number]) for number in (1, 2, 3))
    assert [history.followed("c", number) for number in (1, 2, 3)] == ["d", "e", "c"]
    history = ChangeHistory(changes.items())
    assert [history.followed(part, 1) for part in "cdeaz"] == [None, "e", "c", None, "z"]


def test_changes_of_different_columns_commute() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    walk(followed, one, "ADD d int", "ADD e int")
    assert walk(followed, two, "ADD e int", "ADD d int") == [Reading.APPLIED] * 2


def test_one_that_never_brings_a_change_keeps_nobody_from_the_next() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    walk(followed, one, "DROP c", "ADD c int", "ADD d int")
    assert walk(followed, two, "ADD d int") == [Reading.APPLIED]
    assert walk(followed, one, "DROP d") == [Reading.NEW]


def test_the_same_in_other_words_does_no_harm_where_it_takes_nothing_away() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    walk(followed, one, "ADD d int, ADD e int", "MODIFY a bigint")
    assert walk(followed, two, "ADD d int", "ADD e int") == [Reading.TAKEN_OVER] * 2
    assert walk(followed, two, "CHANGE a a bigint") == [Reading.TAKEN_OVER]
    # From here on both have the same: what either does is new.
    assert walk(followed, one, "DROP d") == [Reading.NEW]
    assert walk(followed, two, "MODIFY a text") == [Reading.NEW]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("DROP c", "ADD c int"), "DROP c, ADD c int"),
        (("DROP c, ADD c int",), "DROP c"),
        (("MODIFY a bigint", "MODIFY a varchar(9)"), "CHANGE a a bigint"),
        (("CHANGE a d int", "ADD a int"), "CHANGE a d int, ADD a int"),
    ],
)
def test_what_cannot_be_told_is_a_fault(first: tuple[str, ...], then: str) -> None:
    for answer, runs in (("", False), (then, True)):
        followed = Followed(FIRST)
        one, two = followed.member("t1"), followed.member("t2")
        walk(followed, one, *first)
        before = followed.target
        assert followed.alter(two, then) is Reading.UNCLEAR
        assert followed.target == before
        # The operator's word settles it.
        assert followed.alter(two, then, instead=answer) is None
        assert (followed.target != before) is runs or altered(before, then) is None
        assert followed.alter(two, "DROP b") is Reading.NEW


def test_of_one_text_each_member_has_its_first_its_second() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    cycle = ("DROP c", "ADD c int")
    walk(followed, one, *cycle)
    assert walk(followed, two, *cycle, *cycle) == [Reading.APPLIED] * 2 + [Reading.NEW] * 2
    assert walk(followed, one, *cycle) == [Reading.APPLIED] * 2


def test_a_new_member_has_brought_what_its_structure_shows() -> None:
    followed = Followed(FIRST)
    one = followed.member("t1")
    walk(followed, one, "DROP c", "ADD c int", "ADD d int")
    alike, behind = followed.create("t2"), followed.create("t3", FIRST)
    assert walk(followed, behind, "ADD d int") == [Reading.APPLIED]
    assert walk(followed, alike, "DROP d") == [Reading.NEW]
    assert walk(followed, behind, "DROP d") == [Reading.APPLIED]
    # Made anew, it is a new one.
    again = followed.create("t1", FIRST)
    assert walk(followed, again, "DROP c") == [Reading.NEW]


def test_a_renamed_member_has_what_it_had() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    walk(followed, one, "DROP c")
    walk(followed, two, "DROP c")
    two = followed.rename(two, "t9")
    walk(followed, one, "ADD c int")
    assert walk(followed, two, "ADD c int") == [Reading.APPLIED]
    assert walk(followed, two, "DROP c") == [Reading.NEW]


@pytest.mark.parametrize("behind", ["a int, b int", "a int, b int, c smallint"])
def test_what_a_member_lacked_from_the_start(behind: str) -> None:
    """It is late with what was done before anybody followed."""
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2", behind)
    if "c" in followed.members[two]:
        assert walk(followed, two, "DROP c") == [Reading.UNCLEAR]
        assert walk(followed, two, "MODIFY c int") == [Reading.TAKEN_OVER]
    else:
        assert walk(followed, two, "ADD c int") == [Reading.TAKEN_OVER]
    assert walk(followed, one, "DROP c", "ADD c int") == [Reading.NEW] * 2
    assert walk(followed, two, "DROP c", "ADD c int") == [Reading.APPLIED] * 2


def test_what_a_member_lacked_from_the_start_is_not_what_others_do_later() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2", "a int, b int")
    walk(followed, one, "DROP c", "ADD c int")
    # It comes to be as the target was at first, then follows.
    assert walk(followed, two, "ADD c int", "DROP c", "ADD c int") == [Reading.APPLIED] * 3
    assert walk(followed, two, "DROP c") == [Reading.NEW]


def test_what_the_target_should_have_and_has_not_is_executed_again() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    walk(followed, one, "DROP c")
    # By hand, so that rows of the other shard can still be written.
    followed.target = {**followed.target, "c": followed.members[two]["c"]}
    assert walk(followed, two, "DROP c") == [Reading.REPEATED]
    assert "c" not in followed.target


def test_a_target_that_is_wider_than_all_its_shards_is_changed_with_them() -> None:
    followed = Followed("a bigint, b int")
    one, two = followed.member("t1", "a int, b int"), followed.member("t2", "a int, b int")
    assert walk(followed, one, "DROP a") == [Reading.NEW]
    assert walk(followed, two, "DROP a") == [Reading.APPLIED]


def test_rows_of_a_member_that_lags_are_not_written_into_other_columns() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    walk(followed, one, "DROP c, ADD c int", "CHANGE a b int, CHANGE b a int", "MODIFY b bigint")
    assert followed.former(one) == {}
    assert followed.former(two) == {"a": True, "b": True, "c": False}
    walk(followed, two, "DROP c, ADD c int")
    assert followed.former(two) == {"a": True, "b": True}
    walk(followed, two, "CHANGE a b int, CHANGE b a int")
    assert followed.former(two) == {}, "a narrower type is no other column"


def test_a_skipped_statement_is_no_change_of_the_target() -> None:
    followed = Followed(FIRST)
    one, two = followed.member("t1"), followed.member("t2")
    followed.alter(one, "ADD d int", instead="")
    assert walk(followed, two, "ADD d int") == [Reading.NEW]


NAMES = "abcde"
TYPES = ("int", "bigint", "varchar(9)")


def sequence(random: Random, first: Columns) -> Iterator[str]:
    """Statements that can follow each other on a table with these columns."""
    found = first
    while True:
        name, other = random.sample(NAMES, 2)
        kind = random.choice(TYPES)
        present = {n: v.type for n, v in found.items()}
        possible = [f"ADD INDEX i_{name} ({name})", f"ALTER {name} SET DEFAULT {random.random()}"]
        if name not in present:
            possible = [f"ADD {name} {kind}"]
        elif other in present:
            possible += [f"CHANGE {name} {other} {present[other]}, CHANGE {other} {name} {kind}"]
        else:
            possible += [f"CHANGE {name} {other} {kind}", f"DROP {name}, ADD {other} {kind}"]
        if name in present and len(present) > 1:
            possible += [f"DROP {name}", f"DROP {name}, ADD {name} {kind}", f"MODIFY {name} {kind}"]
        action = random.choice(possible)
        after = altered(found, action)
        if after is None:
            continue
        found = after
        yield action


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_in_any_interleaving_the_target_has_each_change_once(seed: int, members: int) -> None:
    random = Random(seed)
    followed = Followed("a int, b int, c varchar(9)")
    source = sequence(random, followed.target)
    changes = [next(source) for _ in range(random.randint(1, 12))]
    done = {followed.member(f"{random.choice('xy')}.t{n}"): 0 for n in range(members)}
    while min(done.values()) < len(changes):
        member = random.choice([m for m, at in done.items() if at < len(changes)])
        if random.random() < 0.1:
            done[followed.rename(member, f"r{random.getrandbits(64)}")] = done.pop(member)
            continue
        if random.random() < 0.1:
            new = followed.create(f"x.n{random.getrandbits(64)}")
            done[new] = max(done.values())
            continue
        reading = followed.alter(member, changes[done[member]], at=done[member])
        ahead = done[member] == max(done.values())
        assert reading is (Reading.NEW if ahead else Reading.APPLIED), (
            changes,
            done,
            member,
        )
        done[member] += 1
        assert followed.executed == changes[: max(done.values())]
        assert_rows_find_their_columns(followed)


def assert_rows_find_their_columns(followed: Followed) -> None:
    """Whoever writes a column of another making is found, and nothing that lives on is left out."""
    there = {values.made for values in followed.target.values()}
    for member, found in followed.members.items():
        former = followed.former(member)
        for name in found.keys() & followed.target.keys():
            if name not in former:
                assert found[name].made == followed.target[name].made, (member, name)
            elif not former[name]:
                assert found[name].made not in there, (member, name)
