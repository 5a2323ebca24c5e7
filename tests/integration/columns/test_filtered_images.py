"""Row images behind expression filters: what passes is what the rules say of one row at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from random import Random

import pytest

from replicator.binlog.events.table_map import TableMap
from replicator.downstream.rows.literals import NULL_FIELD
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.plans.filter_columns import field_reader
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import plan_table, with_filter
from replicator.pipeline.plans.row_filter import FilterError, RowFilter, passing, rules_for
from replicator.routing.expression.evaluation import EvaluationError, Row
from replicator.routing.expression.expression_filter import (
    ExpressionFilters,
    ExpressionRule,
    Fate,
    ResolvedRules,
    RowFates,
)
from replicator.routing.expression.types import ExpressionError, FilterColumn
from replicator.rows.decoder.block_decoder import BlockDecoder
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.rows.decoder.row_block import UNKNOWN_LINE, RowChange
from replicator.rows.values.column_format import RowFormat
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from tests.support.streams.binlog_file import row_events
from tests.support.streams.row_blocks import Image, images_of, rows_of
from tests.support.streams.row_columns import spans_of
from tests.support.values.expressions import COLUMNS, random_expression, random_row

ROWS = 120
RULES = 40
MORE_COLUMNS = {
    "t1": ("TINYINT", ("-128", "127", "0")),
    "t2": ("TINYINT UNSIGNED", ("255", "0")),
    "h": ("SMALLINT", ("-32768", "32767")),
    "z": ("MEDIUMINT", ("-8388608", "8388607", "-1")),
    "z2": ("MEDIUMINT UNSIGNED", ("16777215", "8388608")),
    "long": ("DECIMAL(40,10)", ("-123456789012345678901234567890.0000000001", "0.5")),
    "point": ("DECIMAL(18,18)", ("0.123456789012345678", "-0.000000000000000001")),
    "no_point": ("DECIMAL(18,0)", ("999999999999999999", "-1")),
    "k": ("SET('a','b c') CHARACTER SET latin1", ("'a'", "'a,b c'", "''")),
    "blob1": ("BLOB", ("x'00ff5c09'", "''")),
    "fixed": ("BINARY(4)", ("x'6100'", "x'61620000'")),
    "old": ("TIMESTAMP NULL", ("'2020-01-01 00:00:00'", "0")),
    "c1": ("CHAR(5) CHARACTER SET latin1", ("'\u00e9\\t'", "'a'")),
}
"""By name, a type that `COLUMNS` has not, and some values."""

MORE_RULES = (
    *("t1 = -128", "t2 = 255", "h < 0", "z < 0", "z2 > 8388607", "z + z2 > 0"),
    *("long < 0", "long * 2 > 1", "point < 0", "point + no_point > 1", "no_point DIV 7 > 1"),
    *("k = 'a,b c'", "blob1 = x'00ff5c09'", "fixed = x'61620000'", "fixed IS NULL"),
    *("old = '2020-01-01 00:00:00+00:00'", "c1 = 'a'", "LENGTH(c1) = 2", "u - 1 > 5"),
)


@dataclass(frozen=True)
class Shard:
    """A table's row events, and the table that they go to."""

    structure: Table
    table_map: TableMap
    events: list[bytes]
    plan: TablePlan


@pytest.fixture(
    params=[
        "mariadb_source",
        "mysql_source",
        pytest.param("mariadb11_source", marks=pytest.mark.slow),
        pytest.param("mysql56_source", marks=pytest.mark.slow),
    ]
)
async def shard(request: pytest.FixtureRequest, database_name: str) -> Shard:
    server: DatabaseServer = request.getfixturevalue(request.param)
    listed = ", ".join(
        f"`{name}` {kind}"
        for name, kind in (COLUMNS | {n: kind for n, (kind, _) in MORE_COLUMNS.items()}).items()
    )
    server.execute(
        f"CREATE DATABASE {database_name} CHARACTER SET latin1",
        f"CREATE TABLE {database_name}.x (id INT PRIMARY KEY, {listed})",
        # What is written differs from what stands in the shard.
        f"CREATE TABLE {database_name}.y LIKE {database_name}.x",
        f"ALTER TABLE {database_name}.y CONVERT TO CHARACTER SET utf8mb4",
        f"ALTER TABLE {database_name}.y MODIFY d DECIMAL(14,4), MODIFY i BIGINT",
    )
    (table_map,), events = row_events(server, database_name, changes(Random(4)))
    address = DatabaseAddress(host=server.host, port=server.port, user=server.user, password="")
    with closing(Connection(address)) as upstream:
        structure = await read_table(upstream, TableName(database_name, "x"))
        target = await read_table(upstream, TableName(database_name, "y"))
    assert structure is not None
    assert target is not None
    member = Member("a", TableName(database_name, "x"))
    plan = plan_table(member, structure, table_map, target, 0, 1)
    return Shard(structure, table_map, events, plan)


def changes(random: Random) -> list[str]:
    statements = ["SET NAMES utf8mb4", "SET sql_mode=''"]
    for start in range(0, ROWS, 10):
        rows = ", ".join(f"({n}, {_random_values(random)})" for n in range(start, start + 10))
        statements.append(f"INSERT INTO x VALUES {rows}")
    replaced = range(0, ROWS, 3)
    statements += [f"REPLACE INTO x VALUES ({n}, {_random_values(random)})" for n in replaced]
    return [*statements, f"DELETE FROM x WHERE id > {ROWS // 2}"]


def _random_values(random: Random) -> str:
    row = random_row(random)
    shown = ["NULL" if row[name] is None else f"'{row[name]}'" for name in COLUMNS]
    shown[list(COLUMNS).index("bit")] = str(row["bit"] or "NULL")
    return ", ".join([*shown, *(random.choice((*v, "NULL")) for _, v in MORE_COLUMNS.values())])


def one_by_one(shard: Shard, resolved: ResolvedRules, filtering: RowFilter) -> list[Fate]:
    """What becomes of each row, from values as they are read one by one. EvaluationError."""
    names = [folded(column.name) for column in shard.structure.columns]
    indexes = [names.index(folded(column.name)) for column in resolved.columns]
    layouts = list(shard.plan.rows.columns)
    for index, layout in zip(indexes, filtering.layouts, strict=True):
        layouts[index] = layout
    decoder = ReferenceDecoder(RowFormat(tuple(layouts), tuple(indexes), (), (), frozenset()))
    images = images_of(decoder.decode(shard.events))
    rules, found = RowFates(resolved.rules), []
    for change, before, after in zip(images.change, images.before, images.after, strict=True):
        old, new = _row(shard, resolved.columns, before), _row(shard, resolved.columns, after)
        if change == RowChange.INSERT:
            found.append(rules.inserted(new))
        elif change == RowChange.DELETE:
            found.append(rules.deleted(old))
        else:
            found.append(rules.updated(old, new))
    return found


def _row(shard: Shard, columns: Sequence[FilterColumn], line: bytes | None) -> Row:
    if line is None or not columns:
        return []
    row = []
    for column, field in zip(columns, line.split(b"\t"), strict=True):
        known = shard.structure.column(column.name)
        assert known is not None
        read = field_reader(column, known.base_type)
        row.append(None if field == NULL_FIELD else read(field))
    return row


def as_passed(
    rows: Sequence[tuple[int, Image, Image]], fates: Sequence[Fate], *, forgets: bool
) -> list[tuple[int, Image, Image]]:
    """The changes that are left, one by one."""
    found: list[tuple[int, Image, Image]] = []
    for (event, before, after), fate in zip(rows, fates, strict=True):
        if fate is Fate.NOTHING:
            continue
        gone = before if fate is not Fate.INSERT else None
        if forgets and gone is not None:
            gone = (UNKNOWN_LINE, *gone[1:])
        found.append((event, gone, after if fate is not Fate.DELETE else None))
    return found


def random_rules(random: Random) -> ExpressionRule:
    def some(share: float) -> str:
        if random.random() > share:
            return ""
        if random.random() < 0.4:
            return random.choice(MORE_RULES)
        return random_expression(random, depth=2)

    insert, old = some(0.7), some(0.3)
    if insert and random.random() < 0.3:
        old = insert
    return ExpressionRule("f", "s", "x", insert, old, some(0.3), some(0.4))


def test_what_passes_is_what_the_rules_say_of_each_row(shard: Shard) -> None:
    random = Random(8)
    seen: Counter[object] = Counter()
    for _ in range(RULES):
        given = random_rules(random)
        filters = ExpressionFilters([given], case_sensitive=False)
        try:
            resolved = rules_for(filters, TableName("s", "x"), shard.structure)
        except ExpressionError:
            seen["refused"] += 1
            continue
        assert resolved is not None
        plan = with_filter(shard.plan, resolved, shard.structure, shard.table_map)
        assert plan.filtering is not None
        raw_columns = plan.filtering.indexes
        read = ReferenceDecoder(plan.rows, raw_columns=raw_columns).decode(shard.events)
        block = BlockDecoder(plan.rows, raw_columns=raw_columns).decode(spans_of(shard.events))
        assert block is not None
        try:
            fates = one_by_one(shard, resolved, plan.filtering)
        except EvaluationError:
            seen["error"] += 1
            with pytest.raises(FilterError):
                passing(plan.filtering, block)
            continue
        expected = as_passed(
            rows_of(read), fates, forgets=bool(given.update_old or given.update_new)
        )
        for rows in (block, read):
            passed = rows_of(passing(plan.filtering, rows))
            assert passed == expected, given
        seen.update(fates)
    assert min(seen[fate] for fate in Fate) > 20, seen
    assert seen["refused"] < RULES * 0.8, seen
