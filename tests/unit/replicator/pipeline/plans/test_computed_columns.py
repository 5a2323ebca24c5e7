"""What the target computes, and whether it comes to what the shards have."""

from __future__ import annotations

import re

import pytest

from replicator.checks.schema.table_fit import member_differences
from replicator.ddl.analysis.computed_values import computed_columns
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.rows.target_columns import Restated, restated_columns
from replicator.pipeline.plans.computed_columns import OWN_VALUE, computed_misfits
from replicator.routing.columns.column_mapping import MappedColumn
from replicator.routing.columns.member_columns import AS_THEY_ARE, MemberColumns
from replicator.schema.effects.column_values import other_formula
from replicator.schema.structure.structure import Column, Table

MAPPED = MemberColumns(mapped=MappedColumn("ID", 1 << 51))


def table(*lines: str) -> Table:
    """A table with these columns, as SHOW CREATE TABLE writes them."""
    columns = []
    for line in lines:
        _, name, rest = line.split("`", 2)
        collation = re.search(r" COLLATE (\w+)", rest)
        columns.append(
            Column(
                name,
                rest.split(" GENERATED")[0].split(" COLLATE")[0].strip(),
                charset=collation[1].split("_")[0] if collation else "",
                collation=collation[1] if collation else "",
                generated="GENERATED ALWAYS" in rest,
            )
        )
    text = "CREATE TABLE `t` (\n  " + ",\n  ".join(lines) + "\n) ENGINE=InnoDB"
    return Table("s", "t", tuple(columns), (), text)


def computed(formula: str) -> str:
    return f"`c` int GENERATED ALWAYS AS ({formula}) STORED"


@pytest.mark.parametrize(
    ("ours", "theirs", "fits"),
    [
        ("int(11)", "bigint(20)", True),
        ("varchar(9)", "varchar(20)", True),
        ("int(10)", "varchar(20)", False),
        ("decimal(8,2)", "decimal(10,4)", False),
        ("float", "double", False),
        ("date", "datetime", False),
    ],
)
def test_both_compute_from_values_that_are_the_same(ours: str, theirs: str, fits: bool) -> None:
    shard, target = (table(f"`a` {kind}", computed("concat(`a`,'x')")) for kind in (ours, theirs))
    assert (not list(computed_misfits(shard, target, AS_THEY_ARE))) is fits


@pytest.mark.parametrize(
    ("ours", "theirs", "formula", "fits"),
    [
        ("text COLLATE latin1_bin", "text COLLATE utf8mb4_bin", "concat(`a`,'x')", True),
        ("text COLLATE latin1_bin", "text COLLATE utf8mb4_bin", "octet_length(`a`)", False),
        ("text COLLATE utf8mb3_bin", "text COLLATE utf8mb4_bin", "hex(`a`)", True),
        ("text COLLATE utf8mb4_bin", "text COLLATE utf8mb4_general_ci", "`a` = 'x'", False),
        ("text COLLATE utf8mb4_bin", "text COLLATE utf8mb4_general_ci", "concat(`a`)", True),
        ("text COLLATE utf8_bin", "text COLLATE utf8mb4_bin", "`a` = 'x'", True),
        ("datetime", "datetime(3)", "concat(`a`)", False),
        ("datetime", "datetime(3)", "to_days(`a`) - year(`a`)", True),
        ("datetime", "datetime(3)", "cast(`a` as date)", True),
        ("time", "time(6)", "`a` + 0", False),
        ("int(4) unsigned zerofill", "int(7) unsigned zerofill", "concat(`a`)", False),
    ],
)
def test_the_same_values_in_other_columns_may_give_other_results(
    ours: str, theirs: str, formula: str, fits: bool
) -> None:
    shard, target = (table(f"`a` {kind}", computed(formula)) for kind in (ours, theirs))
    assert (not list(computed_misfits(shard, target, AS_THEY_ARE))) is fits


@pytest.mark.parametrize(
    ("formula", "what"),
    [
        ("hour(`t`)", "the time zone"),
        ("concat(`t`,'x')", "the time zone"),
        ("(`t` + interval 1 hour)", "the time zone"),
        ("unix_timestamp(`t`)", ""),
        ("unix_timestamp(`d`)", "the time zone"),
        ("from_unixtime(`a`)", "the time zone"),
        ("(`t` is null)", ""),
        ("hour(`d`)", ""),
        ("monthname(`d`)", "lc_time_names"),
        ("date_format(`d`,_utf8mb4'%Y %b')", "lc_time_names"),
        ("date_format(`d`,_utf8mb4'%Y-%m')", ""),
        ("week(`d`)", "default_week_format"),
        ("week(`d`,3)", ""),
    ],
)
def test_what_the_writers_session_decides_is_taken_from_the_shard(formula: str, what: str) -> None:
    lines = "`a` int", "`t` timestamp", "`d` datetime"
    stored = table(*lines, computed(formula))
    found = " ".join(misfit.text for misfit in computed_misfits(stored, stored, AS_THEY_ARE))
    assert (what in found) if what else not found
    virtual = table(*lines, computed(formula).replace("STORED", "VIRTUAL"))
    assert not list(computed_misfits(virtual, virtual, AS_THEY_ARE))


def test_what_is_made_of_a_mapped_column_is_refused_but_of_its_own_bits() -> None:
    lines = "`id` bigint", "`d` int GENERATED ALWAYS AS ((`id` % 100)) STORED", computed("`d` + 1")
    found = [misfit.text for misfit in computed_misfits(table(*lines), table(*lines), MAPPED)]
    assert [text.split("which")[0] for text in found] == [
        "the target computes `d` from `id`, ",
        "the target computes `c` from `id`, ",
    ]
    own = table("`id` bigint", computed(f"(`id` & {OWN_VALUE}) % 100"))
    assert not list(computed_misfits(table("`id` int", computed("`id` % 100")), own, MAPPED))
    assert not list(computed_misfits(table("`id` int"), table(*lines), MAPPED))


def test_a_column_that_the_shard_stores_fails_the_check() -> None:
    [found] = member_differences(table("`a` int", "`c` int"), table("`a` int", computed("`a` * 2")))
    assert (found.state, "the shard stores values of its own" in found.text) == ("failed", True)
    assert found.way_out.startswith("ALTER TABLE `s`.`t` MODIFY COLUMN `c` int;")


@pytest.mark.parametrize(
    ("ours", "theirs", "differs"),
    [
        ("(`a` % 100)", "`a` MOD 100", False),
        ("concat(_utf8mb4'x',`a`)", "concat('x',`a`)", False),
        ("(0 = `a`)", "!`a`", False),
        ("(`a` - `b`)", "`b` - `a`", True),
        ("upper(`a`)", "ucase(`a`)", False),
        ("upper(`a`)", "lcase(`a`)", True),
        ("(`a` + 1)", "`a` + 0", True),
        ("(`a` * 2)", "`a` * 3", True),
        ("(`a` + `b`)", "`a` - `b`", True),
        ("(`a` + `b`)", "`a` + `a`", True),
        ("concat(_utf8mb4'x',`a`)", "concat('y',`a`)", True),
    ],
)
def test_formulas_that_differ_by_more_than_how_they_are_written(
    ours: str, theirs: str, differs: bool
) -> None:
    shard, target = (table("`a` int", "`b` int", computed(f)) for f in (ours, theirs))
    assert (other_formula(shard, target, "c") is not None) is differs
    assert bool(member_differences(shard, target)) is differs


def test_what_an_update_writes_into_columns_that_a_row_comes_without() -> None:
    target = table(
        "`id` int",
        "`a` timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP",
        "`b` int DEFAULT ((`id` + 1))",
        "`d` int DEFAULT '7' COMMENT 'ON UPDATE'",
        "`e` varchar(9) DEFAULT uuid()",
        computed("`id`"),
    )
    assert restated_columns(target, ["ID"]) == (("a", Restated.KEPT), ("b", Restated.DEFAULT))
    assert restated_columns(target, ["id", "A", "B"]) == ()


@pytest.mark.parametrize(
    ("action", "names"),
    [
        ("MODIFY v INT AS (a * 2) STORED", ("v",)),
        ("MODIFY COLUMN v INT GENERATED ALWAYS AS (a) VIRTUAL, ADD KEY (v)", ("v",)),
        ("CHANGE COLUMN v w INT AS (a)", ("w", "v")),
        ("ADD v INT AS (a)", ()),
        ("MODIFY v INT DEFAULT (CAST(a AS SIGNED))", ()),
    ],
)
def test_columns_that_a_statement_makes_computed_ones(action: str, names: tuple[str, ...]) -> None:
    statement = classify(f"ALTER TABLE s.t {action}", default_schema="s")
    assert computed_columns(statement) == names
