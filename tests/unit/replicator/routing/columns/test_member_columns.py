"""What is made of a member's columns: in plans, decoders, the copy's SELECT, checks and DDL."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from actors.reading.ruled_columns import refuse_ruled
from replicator.binlog.events.event_header import EventType
from replicator.checks.schema.agreement import Shard, check_counters
from replicator.checks.schema.structures import check_missing
from replicator.checks.schema.table_fit import member_differences
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.column_types import ColumnType
from replicator.mysql.names import Member, TableName
from replicator.pipeline.copy.copy_plan import CopyChunk, chunk_query, no_room_query, plan_copy
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import UnfitTargetError, plan_table
from replicator.routing.columns.column_mapping import (
    VALUE_LIMIT,
    ColumnMappings,
    MappedColumn,
    MappingRule,
)
from replicator.routing.columns.member_columns import (
    NO_COLUMN_RULES,
    ColumnRules,
    ExtractedColumn,
    Extraction,
    MemberColumns,
    NamePart,
)
from replicator.routing.routes import RouteRule, Routes
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.rows.values.column_format import ColumnFormat, RowFormat
from replicator.rows.values.value_readers import MappedValueError
from replicator.schema.effects.ddl_effects import DdlError, effects_of
from replicator.schema.structure.column_rules import as_shards_have_it
from replicator.schema.structure.structure import Column, Table, UniqueKey, differences
from tests.support.streams.row_blocks import images_of
from tests.unit.replicator.pipeline.plans.test_planning import map_of
from tests.unit.replicator.rows.decoder.test_reference_decoder import event, row

MEMBER = Member("A", TableName("s", "t_1"))
ID = Column("id", "int(11)", nullable=False, auto_increment=True)
BIG = Column("ID", "bigint(20)", nullable=False)
V = Column("v", "varchar(20)", "utf8mb4")
SHARD_COLUMN = Column("C_Table", "varchar(9)", "utf16", nullable=False)
UPPER = 5 << 44
FILLED = MemberColumns(extracted=(ExtractedColumn("c_table", "\\1"),))
MAPPED = MemberColumns(mapped=MappedColumn("Id", UPPER))


def table(*columns: Column, key: Iterable[str] = ("id",), name: str = "t") -> Table:
    sql = "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  PRIMARY KEY (`id`)\n) ENGINE=InnoDB"
    return Table("s", name, columns, (UniqueKey("PRIMARY", tuple(key)),), sql)


def plan(shard: Table, target: Table, rules: MemberColumns) -> TablePlan:
    return plan_table(MEMBER, shard, map_of(shard), target, 3, 8, rules)


@pytest.mark.parametrize("key", [("c_table", "id"), ("ID", "C_TABLE")])
def test_an_extracted_column_is_one_of_the_plan_and_of_its_key(key: tuple[str, str]) -> None:
    made = plan(table(ID, V), table(SHARD_COLUMN, ID, V, key=key), FILLED)
    assert [column.name for column in made.target_columns] == ["id", "v", "C_Table"]
    assert made.rows.written == (0, 1, 2)
    assert made.rows.key == ((2, 0) if key[0] == "c_table" else (0, 2))
    assert made.rows.hashed == (0,), (
        "texts do not choose the bucket: a collation may take two for one"
    )
    assert made.rows.constants == (b"\\0\\\\\\01",)
    assert (made.covers, made.target.buckets, made.target.replace) == (True, 8, True)


def test_a_row_has_its_constants_behind_those_of_the_event() -> None:
    columns = (ColumnFormat("id", ColumnType.LONG, 0), ColumnFormat("v", ColumnType.VARCHAR, 400))
    decoder = ReferenceDecoder(
        RowFormat(columns, (0, 1, 2, 3), (3, 0), (0,), frozenset(), constants=(b"x", b"\\t"))
    )
    images = images_of(
        decoder.decode([event(EventType.UPDATE_ROWS_V2, row(7, b"a") + row(8, None))])
    )
    assert images.before == [b"7\ta\tx\t\\t"]
    assert images.after == [b"8\t\\N\tx\t\\t"]
    assert (images.before_key, images.after_key) == ([b"\\t\t7"], [b"\\t\t8"])
    assert images.before_hash != images.after_hash


def test_a_mapped_value_is_one_in_both_images_in_keys_and_hashes() -> None:
    made = plan(table(ID, V), table(BIG, V), MAPPED)
    assert [(c.upper, c.limit) for c in made.rows.columns] == [(UPPER, VALUE_LIMIT), (0, 0)]
    column = ColumnFormat("id", ColumnType.LONG, 0, upper=UPPER, limit=VALUE_LIMIT)
    text = ColumnFormat("v", ColumnType.VARCHAR, 400)
    decoder = ReferenceDecoder(RowFormat((column, text), (0, 1), (0,), (0,), frozenset()))
    images = images_of(decoder.decode(
        [event(EventType.UPDATE_ROWS_V2, row(7, b"a") + row(0, b"a")),
         event(EventType.WRITE_ROWS_V2, row(None, b"a"))]
    ))  # fmt: skip
    assert images.before == [b"%d\ta" % (UPPER + 7), None]
    assert images.after == [b"%d\ta" % UPPER, b"\\N\ta"]
    assert images.before_key == [b"%d" % (UPPER + 7), None]
    with pytest.raises(MappedValueError, match=r"id has a value .* 0 to 17592186044415") as raised:
        images_of(decoder.decode([event(EventType.WRITE_ROWS_V2, row(-1, b"a"))]))
    assert "the value -1," not in str(raised.value)
    assert "the value -1," in raised.value.detail


@pytest.mark.parametrize(
    ("target", "rules", "words"),
    [
        (table(ID, V), FILLED, "no column `c_table`.*ADD COLUMN `c_table` VARCHAR"),
        (table(ID, V, Column("c_table", "int(11)")), FILLED, "`c_table` is int.*MODIFY COLUMN"),
        (table(ID, V, Column("c_table", "enum('1')", "utf8")), FILLED, "is enum"),
        (table(ID, V, Column("c_table", "char(1)", "utf8")), FILLED, "too short"),
        (table(ID, V, Column("c_table", "char(9)", "utf8", generated=True)), FILLED, "computes"),
        (table(ID, V), MemberColumns((ExtractedColumn("V", "1"),)), "has a column `V` itself"),
        (table(ID, V), MAPPED, "int.* in the target, and mapped values take a BIGINT.*MODIFY"),
        (table(BIG, V), MemberColumns(mapped=MappedColumn("v", 0)), "varchar.* only integers"),
        (table(BIG, V), MemberColumns(mapped=MappedColumn("w", 0)), "no column `w`"),
    ],
)
def test_rules_that_shard_or_target_do_not_bear(
    target: Table, rules: MemberColumns, words: str
) -> None:
    with pytest.raises(UnfitTargetError, match=words):
        plan(table(ID, V), target, rules)
    failed = [d for d in member_differences(table(ID, V), target, rules) if d.state == "failed"]
    assert failed[0].way_out


def test_targets_that_rules_are_made_for_fit() -> None:
    target = table(ID, V, SHARD_COLUMN, key=("id", "c_table"))
    assert member_differences(table(ID, V), target, FILLED) == []
    unsigned = table(Column("id", "bigint(20) unsigned", nullable=False), V)
    assert member_differences(unsigned, table(BIG, V), MAPPED) == []
    seen = as_shards_have_it(table(SHARD_COLUMN, BIG, V), {"c_table"}, "iD", table(ID, V))
    assert differences(seen, table(ID, V)) == []


def test_the_copy_selects_what_is_made() -> None:
    target = table(SHARD_COLUMN, BIG, V, key=("c_table", "id"))
    rules = MemberColumns(FILLED.extracted, MAPPED.mapped)
    copy = plan_copy("a", table(ID, V), "f", target, 0, rules)
    assert [column.name for column in copy.columns] == ["ID", "v", "C_Table"]
    assert ([column.name for column in copy.key], copy.exact) == (["id"], False)
    assert chunk_query(CopyChunk(copy, 1, (b"5",), None)) == (
        b"SELECT IF(`id`<0 OR `id`>=17592186044416,(`id`|0)+18446744073709551615,`id`|%d),`v`,"
        b"x'005c0031' FROM `s`.`t` FORCE INDEX (`PRIMARY`) WHERE `id`>5" % UPPER
    )
    assert no_room_query(CopyChunk(copy, 1, (b"5",), None)) == (
        b"SELECT `Id` FROM `s`.`t` WHERE `id`>5 AND (`Id`<0 OR `Id`>=17592186044416) LIMIT 1"
    )


def shards(*rules: MemberColumns) -> list[Shard]:
    return [
        Shard(Member("a", TableName("s", f"t{n}")), table(ID, V), later_ddl=False, rules=rule)
        for n, rule in enumerate(rules)
    ]


def test_counters_collide_unless_rules_tell_all_shards_apart() -> None:
    name = TableName("m", "t")
    other = MemberColumns(mapped=MappedColumn("id", 6 << 44))
    assert check_counters(shards(MAPPED, other), name, None, copies=True) == []
    (found,) = check_counters(shards(MAPPED, other, MAPPED), name, None, copies=True)
    assert "a: s.t0 and a: s.t2 each number" in found.finding
    # Settings of their server do not tell them apart.
    assert not any("SET GLOBAL" in remedy for remedy in found.remedies)
    second = MemberColumns((ExtractedColumn("c_table", "2"),))
    keyed = table(ID, V, SHARD_COLUMN, key=("id", "c_table"))
    assert check_counters(shards(FILLED, second), name, keyed, copies=True) == []
    assert len(check_counters(shards(FILLED, FILLED), name, keyed, copies=True)) == 1
    beside = table(ID, V, SHARD_COLUMN)
    assert len(check_counters(shards(FILLED, second), name, beside, copies=True)) == 1


def test_a_missing_target_that_would_not_do_is_told_with_statements() -> None:
    (found,) = check_missing(TableName("m", "t"), shards(FILLED)[0], set(), copies=True)
    assert found.state == "failed"
    assert "CREATE TABLE" in found.remedies[0]
    assert "ALTER TABLE `m`.`t` ADD COLUMN `c_table` VARCHAR(64) NOT NULL;" in found.remedies[0]


def rules_for(*tables: str) -> ColumnRules:
    """Both rules for these tables of the schema ``s``, whose numbers are their last letters."""
    routes = Routes(
        [RouteRule(table, "s", table, "m", "t") for table in tables], case_sensitive=False
    )
    extraction = Extraction(NamePart.TABLE, "(.)$", "c_table")
    rule = MappingRule("map", "s", "t*", "Id", 1, "", "", "")
    return ColumnRules(
        "a",
        routes,
        dict.fromkeys(tables, (extraction,)),
        ColumnMappings([rule], case_sensitive=False),
    )


def numbered() -> ColumnRules:
    rule = MappingRule("map", "s", "t*", "id", 1, "", "t", "")
    mappings = ColumnMappings([rule], case_sensitive=False)
    return ColumnRules("a", Routes([], case_sensitive=False), {}, mappings)


def refuse(sql: str, rules: ColumnRules) -> None:
    effects = effects_of(
        classify(sql, default_schema="s"), lambda _: TableName("m", "t"), [TableName("s", "t")]
    )
    refuse_ruled(effects, rules)


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t ADD x INT AFTER id, DROP COLUMN v, ADD KEY id (id)",
        "ALTER TABLE t DROP KEY c_table, COMMENT 'id'",
        "CREATE INDEX c_table ON t (id)",
        "CREATE TABLE t (id INT)",
    ],
)
def test_statements_that_leave_ruled_columns_alone_pass(sql: str) -> None:
    refuse(sql, rules_for("t"))


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("ALTER TABLE t ADD (x INT, `C_TABLE` INT)", "gets or changes a column c_table"),
        ("ALTER TABLE t RENAME COLUMN v TO c_table", "gets or changes a column c_table"),
        ("ALTER TABLE t MODIFY COLUMN id BIGINT", "changes its column Id"),
        ("ALTER TABLE t CHANGE v id INT", "changes its column Id"),
        ("ALTER TABLE t DROP id", "changes its column Id"),
        ("ALTER TABLE t ALTER COLUMN v SET DEFAULT 1, RENAME COLUMN ID TO x", "its column Id"),
    ],
)
def test_statements_about_ruled_columns_are_refused(sql: str, words: str) -> None:
    with pytest.raises(DdlError, match=words):
        refuse(sql, rules_for("t"))


def test_a_name_that_means_other_values_or_suits_no_rule_is_refused() -> None:
    refuse("RENAME TABLE t TO u", NO_COLUMN_RULES)
    refuse("RENAME TABLE t1 TO t2", rules_for("v"))
    with pytest.raises(DdlError, match=r"s\.t1 and s\.u: the RENAME changes the values"):
        refuse("RENAME TABLE t1 TO u", rules_for("t1"))
    with pytest.raises(DdlError, match="can't number the table"):
        refuse("CREATE TABLE tx (a INT)", numbered())
