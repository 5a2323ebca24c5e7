"""Plans: columns matched by name, keys, buckets, and structures that do not fit."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from replicator.binlog.events.table_map import OptionalMetadata, TableMap
from replicator.mysql.column_types import ColumnType, Literal
from replicator.mysql.names import Member, TableName
from replicator.pipeline.plans.plan import (
    PlanCollector,
    TablePlan,
    TargetColumn,
    TargetTable,
)
from replicator.pipeline.plans.planning import (
    MisfitError,
    PlanCache,
    PlanError,
    UnfitTargetError,
    fill_field,
    plan_table,
)
from replicator.routing.columns.member_columns import AS_THEY_ARE, ExtractedColumn, MemberColumns
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.schema.structure.structure import Column, Table, UniqueKey, labels_of
from tests.support.streams.row_columns import plan_list

CODES = {
    "int": ColumnType.LONG,
    "bigint": ColumnType.LONGLONG,
    "varchar": ColumnType.VARCHAR,
    "binary": ColumnType.STRING,
    "char": ColumnType.STRING,
    "enum": ColumnType.ENUM,
    "set": ColumnType.SET,
    "double": ColumnType.DOUBLE,
    "uuid": ColumnType.STRING,
    "json": ColumnType.JSON,
    "time": ColumnType.TIME,
    "datetime": ColumnType.DATETIME_2,
}
MEMBER = Member("A", TableName("s", "t"))
PRIMARY = UniqueKey("PRIMARY", ("id",))


def table(*columns: Column, keys: tuple[UniqueKey, ...] = (PRIMARY,)) -> Table:
    return Table("s", "t", columns, keys, "")


def text(name: str, kind: str = "varchar(20)", charset: str = "utf8mb4") -> Column:
    return Column(name, kind, charset)


def map_of(structure: Table, optional: OptionalMetadata | None = None) -> TableMap:
    types = tuple(CODES[column.base_type] for column in structure.columns)
    size = len(types)
    return TableMap("s", "t", types, (0,) * size, (True,) * size, optional or OptionalMetadata())


def plan(source: Table, target: Table, optional: OptionalMetadata | None = None) -> TablePlan:
    return plan_table(MEMBER, source, map_of(source, optional), target, 3, 8)


ID = Column("id", "int(11)", nullable=False)


def test_neighbouring_numbers_share_a_bucket_whatever_type_a_shard_has() -> None:
    wide = replace(ID, type="bigint(20)")
    made = plan(table(ID), table(wide))
    assert (made.rows.hash_cut, plan(table(wide), table(wide)).rows.hash_cut) == (2, 2)
    keys = (UniqueKey("PRIMARY", ("id", "b")),)
    both = table(ID, text("b", "binary(4)"), keys=keys)
    assert (plan(both, both).rows.hashed, plan(both, both).rows.hash_cut) == ((0, 1), 0)


def test_columns_are_matched_by_name_without_case() -> None:
    made = plan(table(ID, text("Name")), table(text("NAME"), ID))
    assert [column.name for column in made.target_columns] == ["id", "NAME"]
    assert made.rows.written == (0, 1)
    assert made.rows.key == (0,)
    assert made.key_columns[0].name == "id"
    assert made.covers


def test_a_column_that_the_target_lacks_is_named() -> None:
    with pytest.raises(PlanError, match=r"A: s\.t: column extra does not exist in s\.t"):
        plan(table(ID, text("extra")), table(ID))


def test_a_target_with_further_columns_is_not_covered() -> None:
    assert not plan(table(ID), table(ID, text("x"))).covers
    assert plan(table(ID), table(ID, replace(text("x"), generated=True))).covers


def test_generated_columns_are_written_only_where_the_target_does_not_compute_them() -> None:
    computed = replace(text("g"), generated=True)
    both = plan(table(ID, computed), table(ID, computed))
    assert (both.rows.written, both.rows.generated) == ((0,), frozenset({1}))
    ordinary = plan(table(ID, computed), table(ID, text("g")))
    assert (ordinary.rows.written, ordinary.rows.generated) == ((0, 1), frozenset())
    missing = plan(table(ID, computed), table(ID))
    assert (missing.rows.written, missing.rows.generated) == ((0,), frozenset({1}))
    with pytest.raises(UnfitTargetError, match="the target computes `g`, and the shard stores"):
        plan(table(ID, text("g")), table(ID, computed))


def test_one_exact_key_is_cut_into_buckets_and_overwritten_in_place() -> None:
    made = plan(table(ID), table(ID))
    assert (made.target.buckets, made.target.replace, made.rows.hashed) == (8, True, (0,))


@pytest.mark.parametrize(
    "further",
    [
        UniqueKey("u", ("v",)),
        UniqueKey("u", ("v",), nullable=True),
        UniqueKey("u", ("v",), prefix=True),
    ],
)
def test_a_further_unique_key_makes_one_bucket(further: UniqueKey) -> None:
    columns = (ID, text("v"))
    made = plan(table(*columns), table(*columns, keys=(PRIMARY, further)))
    assert (made.target.buckets, made.target.replace, made.rows.key) == (1, False, (0,))


def test_text_in_a_key_does_not_choose_the_bucket() -> None:
    name = text("id")
    made = plan(table(name), table(name))
    assert (made.rows.key, made.rows.hashed, made.target.buckets) == ((0,), (), 1)
    keys = (UniqueKey("PRIMARY", ("id", "n")),)
    mixed = table(name, Column("n", "bigint(20)"), keys=keys)
    made = plan(mixed, mixed)
    assert (made.rows.key, made.rows.hashed, made.target.buckets) == ((0, 1), (1,), 8)


def test_a_table_without_a_usable_key_is_known_by_whole_rows() -> None:
    keyless = table(ID, text("v"), Column("d", "double"), keys=())
    made = plan(keyless, keyless)
    assert (made.rows.key, made.rows.hashed) == ((), (0,))
    assert (made.target.buckets, made.target.replace) == (8, False)
    nullable = replace(keyless, keys=(UniqueKey("u", ("id",), nullable=True),))
    made = plan(nullable, nullable)
    assert (made.rows.key, made.target.buckets, made.target.replace) == ((), 1, False)


def test_a_key_that_the_shard_does_not_fill_is_no_row_key() -> None:
    keys = (UniqueKey("PRIMARY", ("auto",)),)
    made = plan(table(ID, keys=()), table(Column("auto", "int"), ID, keys=keys))
    assert (made.rows.key, made.target.buckets, made.target.replace) == ((), 1, False)


def test_the_order_of_the_key_is_the_targets() -> None:
    keys = (UniqueKey("PRIMARY", ("b", "a")),)
    columns = (Column("a", "int"), Column("b", "bigint"))
    made = plan(table(*columns), table(*columns, keys=keys))
    assert made.rows.key == (1, 0)
    assert [column.name for column in made.key_columns] == ["b", "a"]


def test_formats_hold_what_the_event_leaves_out() -> None:
    columns = (
        Column("n", "int(10) unsigned zerofill"),
        Column("b", "binary(4)"),
        text("e", "enum('a','it''s','ü,')", "latin1"),
        text("s", "set('a','b')", "utf16"),
        Column("u", "uuid"),
        Column("j", "json"),
        Column("t", "time(3)"),
    )
    number, binary, enum, several, uuid, json, time = plan(
        table(*columns, keys=()), table(*columns, keys=())
    ).rows.columns
    assert number.unsigned
    assert binary.length == 4
    assert enum.labels == (b"a", b"it's", "ü,".encode("latin1"))
    assert (several.labels, several.separator) == ((b"\0a", b"\0b"), b"\0,")
    assert (uuid.text, json.text) == ("uuid", "json")
    assert time.metadata == 3


def test_labels_are_written_in_the_targets_charset() -> None:
    made = plan(
        table(text("e", "enum('ü')", "latin1"), keys=()), table(text("e", "enum('ü')"), keys=())
    )
    assert made.rows.columns[0].labels == ("ü".encode(),)
    assert made.rows.columns[0].transcode is None


def test_text_is_converted_only_where_its_bytes_differ() -> None:
    def transcode(ours: str, theirs: str) -> tuple[str, str] | None:
        source, target = text("v", charset=ours), text("v", charset=theirs)
        return plan(table(source, keys=()), table(target, keys=())).rows.columns[0].transcode

    assert transcode("utf8mb3", "utf8mb4") is None
    assert transcode("latin1", "latin1") is None
    assert transcode("latin1", "") is None
    assert transcode("latin1", "utf8mb4") == ("mysql_latin1", "utf_8")


def test_an_unknown_charset_is_an_error_only_where_it_is_converted() -> None:
    odd = table(text("v", charset="dec8"), keys=())
    assert plan(odd, odd).rows.columns[0].transcode is None
    with pytest.raises(PlanError, match="column v"):
        plan(odd, table(text("v"), keys=()))


@pytest.mark.parametrize(
    ("optional", "message"),
    [
        (OptionalMetadata(names=("id", "w")), "column 2 is e, the events call it w"),
        (OptionalMetadata(unsigned=(True, None)), r"column id is int\(11\), the events' is unsig"),
        (OptionalMetadata(labels=(None, (b"x",))), "column e has other labels"),
    ],
)
def test_what_the_event_tells_must_fit(optional: OptionalMetadata, message: str) -> None:
    known = table(ID, text("e", "enum('y')"))
    with pytest.raises(PlanError, match=message):
        plan(known, known, optional)


def test_a_structure_of_another_time_is_found() -> None:
    old, new = table(ID), table(ID, text("v"))
    with pytest.raises(PlanError, match="the events have 1 columns, the structure 2"):
        plan_table(MEMBER, new, map_of(old), new, 1, 8)
    other = table(Column("id", "bigint"))
    with pytest.raises(PlanError, match="column id is bigint, the events have type code 3"):
        plan_table(MEMBER, other, map_of(old), other, 1, 8)


def test_what_full_metadata_says_and_fits_is_taken() -> None:
    known = table(ID, text("e", "enum('y')"))
    full = OptionalMetadata(("ID", "e"), (False, None), (None, 45), (None, (b"y",)), (0,))
    assert plan(known, known, full) == plan(known, known)


def test_literals_follow_the_targets_type() -> None:
    made = plan(
        table(ID, text("v"), Column("d", "double")), table(ID, text("v"), Column("d", "double"))
    )
    assert [column.literal for column in made.target_columns] == [
        Literal.NUMBER,
        Literal.TEXT,
        Literal.DOUBLE,
    ]


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("enum('a','b')", ("a", "b")),
        ("enum('')", ("",)),
        ("set('it''s','a,b','back\\\\slash')", ("it's", "a,b", "back\\slash")),
        ("ENUM('(x)','\n')", ("(x)", "\n")),
        ("int", ()),
    ],
)
def test_labels_of_a_column_type(kind: str, labels: tuple[str, ...]) -> None:
    assert labels_of(Column("e", kind)) == labels


ONE = TablePlan(
    TargetTable(3, "s", "t", 4, replace=True),
    Member("a", TableName("x", "t1")),
    RowFormat(
        tuple(ColumnFormat(f"c{number}", 3, 0) for number in range(30)),
        tuple(range(30)),
        (0,),
        (0,),
    ),
    tuple(TargetColumn(f"c{number}", Literal.NUMBER) for number in range(30)),
)
TWO = replace(ONE, target=replace(ONE.target, number=9, table="u"))


def member(number: int) -> Member:
    return Member("b", TableName("x", f"t{number}"))


def test_plans_are_numbered_by_what_they_are_and_by_their_shard() -> None:
    collector = PlanCollector()
    steps = [(ONE, 1), (TWO, 2), (ONE, 3), (ONE, 1), (TWO, 2), (TWO, 1)]
    assert [collector.number(plan, member(m), 5) for plan, m in steps] == [0, 1, 2, 0, 1, 3]
    # Rows of another version of the target.
    assert collector.number(ONE, member(1), 6) == 4
    plans = collector.collected()
    assert plans.kinds == (ONE, TWO)
    assert len(plans) == 5
    assert plans.version.tolist() == [5, 5, 5, 5, 6]
    assert plans.sources == ("b",)
    assert [plans.plan(number) for number in range(4)] == [
        replace(plan, member=member(m)) for plan, m in ((ONE, 1), (TWO, 2), (ONE, 3), (TWO, 1))
    ]
    assert plans.targets.tolist() == [3, 9, 3, 9, 3]


def test_plans_that_are_equal_and_no_one_object_stay_apart() -> None:
    plans = plan_list([ONE, replace(ONE), replace(ONE, member=member(2))])
    assert len(plans.kinds) == len(plans) == 3
    assert [plans.member(number) for number in range(3)] == [ONE.member, ONE.member, member(2)]


def test_shards_of_one_target_share_its_buckets() -> None:
    """Rows in buckets that the target does not have in this batch would be left out."""
    apart = replace(ONE, target=replace(ONE.target, buckets=16, replace=True))
    in_order = replace(ONE, target=replace(ONE.target, buckets=1, replace=False))
    other = replace(TWO, target=replace(TWO.target, buckets=16, replace=True))
    for plans in ([apart, in_order, other], [in_order, apart, other]):
        found = [p.target for p in plan_list(plans).kinds]
        shared = {(t.number, t.buckets, t.replace) for t in found}
        assert shared == {(3, 1, False), (9, 16, True)}


def test_another_shard_makes_hardly_more_to_send() -> None:
    def size(shards: int) -> int:
        collector = PlanCollector()
        for number in range(shards):
            collector.number(ONE, member(number), 0)
        return len(pickle.dumps(collector.collected(), 5))

    assert size(1000) < size(1) + 1000 * 60


def test_none() -> None:
    plans = PlanCollector().collected()
    assert (len(plans), plans.targets.tolist()) == (0, [])


NAME = Column("name", "varchar(20)", "utf8mb4")
KEYS = (UniqueKey("PRIMARY", ("id",)),)
TARGET = Table("m", "t", (ID, NAME), KEYS, "CREATE TABLE `t` (…)")


def shard(number: int) -> tuple[Member, Table, TableMap]:
    name = f"t_{number}"
    return (
        Member("a", TableName("s", name)),
        Table("s", name, (ID, NAME), KEYS, f"CREATE TABLE `{name}` (…)"),
        TableMap(
            *("s", name, (ColumnType.LONG, ColumnType.VARCHAR), (0, 80), (False, True)),
            OptionalMetadata(),
        ),
    )


def planned(plans: PlanCache, number: int, target: Table = TARGET) -> TablePlan:
    member, structure, table_map = shard(number)
    return plans.plan(member, structure, table_map, target, 7, 4, AS_THEY_ARE)


def test_alike_shards_have_the_same_plan_but_for_their_names() -> None:
    plans = PlanCache()
    first, second = planned(plans, 1), planned(plans, 2)
    assert first is second
    for number in (1, 2):
        member, structure, table_map = shard(number)
        made = plan_table(member, structure, table_map, TARGET, 7, 4)
        assert replace(first, member=member) == made


def test_alike_targets_have_the_same_plan_but_for_their_names() -> None:
    plans = PlanCache()
    first = planned(plans, 1)
    member, structure, table_map = shard(2)
    other = Table("m", "other", (ID, NAME), KEYS, "CREATE TABLE `other` (…)")
    second = plans.plan(member, structure, table_map, other, 8, 4, AS_THEY_ARE)
    assert second == plan_table(member, structure, table_map, other, 8, 4)
    assert second.rows.columns is first.rows.columns
    assert second.target_columns is first.target_columns
    assert plans.plan(member, structure, table_map, other, 8, 4, AS_THEY_ARE) is second
    renamed = replace(other, schema="n")
    third = plans.plan(member, structure, table_map, renamed, 8, 4, AS_THEY_ARE)
    assert third == plan_table(member, structure, table_map, renamed, 8, 4)


def test_a_target_whose_key_has_a_period_is_like_no_other() -> None:
    plans = PlanCache()
    member, structure, table_map = shard(1)
    create = "CREATE TABLE `u` (\n  PRIMARY KEY (`id`,`p` WITHOUT OVERLAPS)\n)"
    periods = replace(TARGET, name="u", create_sql=create, keys=KEYS)
    for number, target in enumerate((TARGET, periods, TARGET)):
        plan = plans.plan(member, structure, table_map, target, number, 4, AS_THEY_ARE)
        assert plan == plan_table(member, structure, table_map, target, number, 4)
        assert plan.target.replace is (target is TARGET)


def test_what_makes_another_plan_is_told_apart() -> None:
    plans = PlanCache()
    member, structure, table_map = shard(1)
    given = structure, table_map, TARGET, 7, 4, AS_THEY_ARE
    plan = plans.plan(member, *given)
    longer = replace(TARGET, columns=(ID, replace(NAME, type="varchar(40)")))
    more = replace(TARGET, columns=(*TARGET.columns, Column("shard", "varchar(9)", "utf8mb4")))
    extracted = MemberColumns((ExtractedColumn("shard", "1"),))
    full = replace(table_map, optional=OptionalMetadata(names=("id", "name")))
    others = [
        (replace(structure, keys=()), *given[1:]),
        (structure, full, *given[2:]),
        (structure, table_map, longer, *given[3:]),
        (structure, table_map, TARGET, 8, 4, AS_THEY_ARE),
        (structure, table_map, TARGET, 7, 1, AS_THEY_ARE),
        (structure, table_map, more, 7, 4, extracted),
    ]
    for other in others:
        assert plans.plan(member, *other) == plan_table(member, *other)
    assert plans.plan(member, *given) == plan


def test_a_shard_that_does_not_fit_is_named_each_time() -> None:
    plans = PlanCache()
    for number in (1, 2):
        member, structure, table_map = shard(number)
        narrow = replace(table_map, types=(ColumnType.LONG,), metadata=(0,), nullable=(False,))
        with pytest.raises(MisfitError, match=f"t_{number}: "):
            plans.plan(member, structure, narrow, TARGET, 7, 4, AS_THEY_ARE)


def test_forgotten_plans_are_made_anew() -> None:
    plans = PlanCache()
    first = planned(plans, 1)
    plans.forget()
    assert planned(plans, 1).rows.columns is not first.rows.columns


@pytest.mark.parametrize(
    ("kind", "fill", "field"),
    [
        ("int(11)", "NULL", b"\\N"),
        ("decimal(6,2)", "'1.5'", b"1.50"),
        ("varchar(9)", "'it''s'", b"it's"),
        ("char(9)", "'a '", b"a"),
        ("enum('it''s','b')", "'it''s'", b"it's"),
        ("enum('a','b')", "'B'", None),
        ("set('x','y','z')", "'z,x'", b"x,z"),
        ("set('x')", "''", b""),
        ("double", "0", b"0"),
        ("double", "1e3", None),
        ("float(7,2)", "1", None),
        ("date", "'0000-00-00'", b"0000-00-00"),
        ("date", "'2020-1-2'", None),
        ("datetime(3)", "'2020-01-02 03:04:05.5'", b"2020-01-02 03:04:05.500"),
        ("datetime", "'2020-01-02 03:04:05.5'", None),
        ("time(2)", "'-01:00:00'", b"-01:00:00.00"),
        ("year(4)", "'0000'", b"0000"),
        ("year(4)", "2020", b"2020"),
        ("decimal(5,2)", "1.005", b"1.01"),
        ("decimal(5,0)", "-2.5", b"-3"),
        ("tinyint(4)", "300", None),
        ("tinyint(3) unsigned", "-1", None),
        ("varchar(2)", "'abc'", None),
        ("varbinary(9)", "'ab'", b"ab"),
        ("binary(4)", "'ab'", None),
    ],
)
def test_what_the_target_shows_of_a_fill(kind: str, fill: str, field: bytes | None) -> None:
    assert fill_field("", Column("c", kind, fill=fill)) == field
