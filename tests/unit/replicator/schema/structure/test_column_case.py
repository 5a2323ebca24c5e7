"""Names of columns and keys in another case: every server takes them for the same ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.checks.schema.agreement import member_disagreements
from replicator.checks.schema.table_fit import colliding_keys, member_differences
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.normalise import normalise
from replicator.mysql.names import folded
from replicator.pipeline.copy.copy_plan import plan_copy
from replicator.pipeline.plans.planning import match_columns
from replicator.schema.effects.carried_change import MemberChange, lacking
from replicator.schema.structure.structure import Column, Table, UniqueKey, differences

SIGMA = "\N{GREEK SMALL LETTER SIGMA}"
# The last letter of the first is one that `str.lower` writes in two ways.
PAIRS = [("ΛΌΓΟΣ", f"λόγο{SIGMA}"), ("İd", "id"), ("ÉTÉ", "été"), ("Id", "iD")]


def table(name: str, key: str = "PRIMARY") -> Table:
    return Table(
        "s",
        "t",
        (Column(name, "int", nullable=False, auto_increment=True), Column("v", "int")),
        (UniqueKey(key, (name,)),),
        f"CREATE TABLE `t` (\n  `{name}` int NOT NULL DEFAULT 1,\n  `v` int\n)",
    )


pairs = pytest.mark.parametrize(("one", "other"), PAIRS)


@pairs
def test_a_shards_column_goes_into_the_targets_of_that_name(one: str, other: str) -> None:
    shard, target = table(one), table(other)
    found = match_columns("m", shard, target)
    assert [column.name for column in found.values()] == [other, "v"]
    copy = plan_copy("a", shard, "", target, 0)
    assert (copy.exact, [column.name for column in copy.key]) == (False, [one])


@pairs
def test_shards_that_differ_in_the_case_of_a_column_agree(one: str, other: str) -> None:
    assert differences(table(one), table(other)) == []
    assert member_disagreements(table(one), table(other)) == []
    assert member_differences(table(one), table(other)) == []
    assert colliding_keys([table(one)], table(other)) == (one, [frozenset({folded(one)})])


@pairs
def test_a_target_has_what_a_statement_brought_in_another_case(one: str, other: str) -> None:
    before = replace(table(one), columns=table(one).columns[1:], keys=())
    change = MemberChange(before, table(one, key=one))
    assert lacking(change, table(other, key=other)) == ()
    assert lacking(change, before) != ()


@pairs
def test_statements_in_another_case_are_the_same(one: str, other: str) -> None:
    for sql in (
        "ALTER TABLE t ADD {} INT, ADD KEY {} (v)",
        "ALTER TABLE t CHANGE `{}` n INT",
        "ALTER TABLE t DROP PARTITION {}",
    ):
        texts = {
            normalise(classify(sql.format(name, name), default_schema="s")) for name in (one, other)
        }
        assert len(texts) == 1, texts


def test_columns_that_differ_in_an_accent_are_two() -> None:
    shard = table("e")
    target = table("é")
    assert target.column("e") is None
    assert differences(shard, target) != []
    texts = (f"ALTER TABLE t ADD {name} INT" for name in ("e", "é"))
    assert len({normalise(classify(text, default_schema="s")) for text in texts}) == 2
