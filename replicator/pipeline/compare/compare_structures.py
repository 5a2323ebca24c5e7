"""How the columns and indexes of a target differ from those of its shards.

Where a rule of the task file makes the target another than its shards (a mapped column is wider, an
extracted one belongs to the key), that is no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from replicator.mysql.names import Member, folded
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.columns.member_columns import MemberColumns
from replicator.routing.expression.expression_filter import ExpressionFilters
from replicator.schema.effects.column_values import value_clause
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.alters import NoAlterError
from replicator.sharding.optimistic.joined_table import widening
from replicator.sharding.optimistic.shapes import NoJoinError

_INDEX = re.compile(
    r"^\s*(PRIMARY KEY|UNIQUE KEY|KEY|FULLTEXT KEY|SPATIAL KEY)\s*(?:`(?:[^`]|``)*`)?\s*"
    r"(\((?:`(?:[^`]|``)*`|[^`])*?\))(?:\s|,|$)",
    re.MULTILINE,
)
_UNIQUE = frozenset({"PRIMARY KEY", "UNIQUE KEY"})
_ALIKE = ({"json", "longtext"},)
"""Types that stand for one another where a server lacks one of them."""


@dataclass(frozen=True, slots=True)
class ComparedShard:
    """A shard as it is now: ``condition`` is that of its rows that reach the target, as SQL.
    ``open``: columns (folded names) that it has otherwise than in its rows on the target, since a
    statement of it waits for an answer (`shard-mode: optimistic`)."""

    member: Member
    structure: Table
    rules: MemberColumns
    condition: str = ""
    open: frozenset[str] = frozenset()


def compared_shard(
    member: Member, structure: Table, rules: MemberColumns, filters: ExpressionFilters
) -> ComparedShard:
    """A shard with the rows that the ``filters`` of its source leave. Raises ExpressionError."""
    filtered = rules_for(filters, member.name, structure)
    return ComparedShard(member, structure, rules, filtered.copied if filtered else "")


def structure_differences(target: Table, shards: Sequence[ComparedShard]) -> tuple[str, ...]:
    """A sentence for each difference, with the first shard that shows it."""
    found: dict[str, list[Member]] = {}
    for shard in shards:
        for text in (*_columns(target, shard), *_indexes(target, shard)):
            found.setdefault(text, []).append(shard.member)
    return tuple(
        f"{text} ({members[0]}{f' and {len(members) - 1} more' if len(members) > 1 else ''})"
        for text, members in found.items()
    )


def joint_differences(target: Table, shards: Sequence[ComparedShard]) -> tuple[str, ...]:
    """What a target lacks to take the rows of all shards, which may differ.

    Where these are alike, it must be like them.
    """
    if len({shard.structure.fingerprint for shard in shards}) <= 1:
        return structure_differences(target, shards)
    try:
        alter = widening(target, [shard.structure for shard in shards])
    except NoJoinError as error:
        return (str(error),)
    except NoAlterError as error:
        return (f"the target does not take the rows of all shards: {error}",)
    return (f"the target does not take the rows of all shards; it would by: {alter}",) * bool(alter)


def _columns(target: Table, shard: ComparedShard) -> Iterator[str]:
    ruled = {folded(made.name) for made in shard.rules.extracted}
    if shard.rules.mapped is not None:
        ruled.add(folded(shard.rules.mapped.name))
    for its in shard.structure.columns:
        column = target.column(its.name)
        if column is None or folded(its.name) in ruled:
            continue
        ours, theirs = _shown(target, column), _shown(shard.structure, its)
        if ours != theirs and {column.base_type, its.base_type} not in _ALIKE:
            yield f"column {column.name} is {ours} on the target, {theirs} in the shard"


def default_text(table: Table, column: Column) -> str:
    """The default of a column, in one form for all servers; empty for none and for NULL."""
    clause = "" if column.generated else value_clause(table, column.name)
    text = re.sub(r"^DEFAULT\b|[\s'()]", "", clause, flags=re.IGNORECASE)
    return "" if text.upper() == "NULL" else text


def _shown(table: Table, column: Column) -> str:
    # Newer servers leave out the display width of integers, and write defaults in their own way.
    kind = re.sub(r"int\(\d+\)", "int", column.type.lower())
    charset = "utf8mb3" if column.charset == "utf8" else column.charset
    default = default_text(table, column)
    parts = [
        kind,
        f"CHARACTER SET {charset}" if charset else "",
        "" if column.nullable else "NOT NULL",
        "generated" if column.generated else "",
        f"DEFAULT '{default}'" if default else "",
    ]
    return " ".join(filter(None, parts))


def _indexes(target: Table, shard: ComparedShard) -> Iterator[str]:
    there = _index_texts(target)
    for kind, columns in sorted(_index_texts(shard.structure) - there):
        if kind in _UNIQUE and (shard.rules.extracted or shard.rules.mapped):
            continue
        yield f"the target has no index {kind} {columns}, the shard does"


def _index_texts(table: Table) -> set[tuple[str, str]]:
    found = _INDEX.findall(table.create_sql)
    return {(kind, columns.replace(", ", ",")) for kind, columns in found}
