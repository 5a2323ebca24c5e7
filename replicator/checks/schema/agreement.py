"""Compares the members of a target with one another: structures, counters, foreign keys."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.table_fit import colliding_keys
from replicator.mysql.names import Member, TableName, folded, quote
from replicator.routing.columns.member_columns import AS_THEY_ARE, MemberColumns
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.joined_table import joined_table
from replicator.sharding.optimistic.shapes import NoJoinError, described_apart

_PLACE = CheckedPart("target")
_SHOWN = 10
"""Maximum number of members in a message; the others are only counted."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A member and its structure.

    Attributes:
        later_ddl: whether statements in the binlog may change the structure before the first rows.
        collations: the default collations of its server, by charset.
        available: all collations of its server, in lower case.
        logs_cascades: whether its server logs the effects of foreign keys.
        rules: the rules for its columns.
        numbering: its server's auto_increment_increment and auto_increment_offset.
    """

    member: Member
    table: Table
    later_ddl: bool
    collations: Mapping[str, str] = field(default_factory=dict)
    logs_cascades: bool = False
    rules: MemberColumns = AS_THEY_ARE
    numbering: tuple[int, int] = (1, 1)
    available: frozenset[str] = frozenset()


def check_agreement(
    shards: Sequence[Shard], name: TableName, *, required: bool
) -> list[CheckResult]:
    """Compare all members of a target with the first one: one result for each difference.

    If equal structures are ``required``, a difference is a failure, otherwise a warning.
    """
    first = shards[0]
    differing: dict[tuple[str, ...], list[Shard]] = {}
    for shard in shards[1:]:
        if shard.table.fingerprint == first.table.fingerprint:
            continue
        words = tuple(member_disagreements(first.table, shard.table))
        if words:
            differing.setdefault(words, []).append(shard)
    if not differing:
        text = f"the {len(shards)} shards of {name} have the same structure"
        return [_PLACE.passed("schema_of_shard_tables", text)]
    results = []
    for words, found in differing.items():
        finding = (
            f"shards of {name} differ from {first.member}: in {members_listed(found)} "
            f"{'; '.join(words)}"
        )
        way_out = (
            f"Bring {found[0].member} and {first.member} to the same structure: compare "
            f"SHOW CREATE TABLE {first.member.name}; and SHOW CREATE TABLE {found[0].member.name};"
        )
        later = any(shard.later_ddl for shard in (first, *found))
        make = _PLACE.failed if required and not later else _PLACE.warning
        results.append(make("schema_of_shard_tables", finding, way_out))
    return results


def check_joinable(shards: Sequence[Shard], name: TableName) -> list[CheckResult]:
    """Check whether there is a structure that accepts the rows of all members of a target."""
    if len({shard.table.fingerprint for shard in shards}) == 1:
        return check_agreement(shards, name, required=False)
    try:
        joined_table([shard.table for shard in shards])
    except NoJoinError as error:
        types: dict[str, list[Shard]] = {}
        for shard in shards:
            if (column := shard.table.column(error.column)) is not None:
                types.setdefault(described_apart(shard.table, column), []).append(shard)
        having = "; ".join(f"{kind}: {members_listed(found)}" for kind, found in types.items())
        make = _PLACE.warning if any(shard.later_ddl for shard in shards) else _PLACE.failed
        return [
            make(
                "schema_of_shard_tables",
                f"no table takes the rows of all shards of {name}: {error} ({having})",
                "Make the column alike in the shards",
                "If the values of these shards can be converted to the target's column:"
                " ignore-checking-items: [schema_of_shard_tables]; a value that can't be converted"
                " blocks the target",
            )
        ]
    text = f"the {len(shards)} shards of {name} differ, and one table takes the rows of all"
    return [_PLACE.passed("schema_of_shard_tables", text)]


def member_disagreements(first: Table, other: Table) -> list[str]:
    """Return how a member differs from the first one in columns and unique keys, in words."""
    found = []
    keyed = {name for table in (first, other) for key in table.keys for name in _lower(key.columns)}
    for column in first.columns:
        its = other.column(column.name)
        if its is None:
            found.append(f"{quote(column.name)} is missing")
            continue
        by_collation = folded(column.name) in keyed
        if _shape(its, by_collation) != _shape(column, by_collation):
            mine, theirs = _described(column, by_collation), _described(its, by_collation)
            found.append(f"{quote(column.name)} is {theirs}, not {mine}")
    found += [
        f"{quote(column.name)} is additional"
        for column in other.columns
        if first.column(column.name) is None
    ]
    if {_lower(key.columns) for key in first.keys} != {_lower(key.columns) for key in other.keys}:
        found.append(f"unique keys are {_described_keys(other)}, not {_described_keys(first)}")
    return found


def _lower(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(folded, names))


def _shape(column: Column, by_collation: bool) -> tuple[object, ...]:
    """Return the parts that must be equal, without parts that server versions write differently."""
    kind = re.sub(r"\b(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)", r"\1", column.type)
    charset = column.charset.lower().replace("utf8mb3", "utf8")
    collation = column.collation.lower().replace("utf8mb3", "utf8") if by_collation else ""
    return kind, column.nullable, column.generated, charset, collation


def _described(column: Column, by_collation: bool) -> str:
    words = [column.type, column.charset, column.collation if by_collation else ""]
    words += ["" if column.nullable else "NOT NULL", "GENERATED" if column.generated else ""]
    return " ".join(word for word in words if word)


def _described_keys(table: Table) -> str:
    return ", ".join(f"({', '.join(key.columns)})" for key in table.keys) or "none"


def check_counters(
    shards: Sequence[Shard], name: TableName, target: Table | None, *, copies: bool
) -> list[CheckResult]:
    """Check whether AUTO_INCREMENT gives the same values of a target's key to several members."""
    counting = [s for s in shards if any(c.auto_increment for c in s.table.columns)]
    if len(counting) < 2:
        return []
    extracted = counting[0].rules.extracted_names
    column, keys = colliding_keys([shard.table for shard in counting], target, extracted)
    alike = next(filter(None, (_numbered_alike(counting, column, key) for key in keys)), [])
    if not alike:
        return []
    first, second = alike[0].member, alike[1].member
    others = f" and {len(alike) - 2} more" if len(alike) > 2 else ""
    meaning = "equal values collide and stop the task"
    if copies:
        meaning = (
            "rows with equal values are one row to the full copy, of which `on-duplicate-logical` "
            "keeps the last one, the first one, or stops; when the binlog is followed, they stop "
            "the task"
        )
    rules = (
        "add the number of the shard to the key ('partition id' under column-mappings), or add a "
        "column of 'extract-source' / 'extract-schema' / 'extract-table' to the target's key"
    )
    # The settings apply to all tables of a server.
    if len({shard.member.source for shard in alike}) == len(alike):
        rules = (
            "Give the shards different numbers (on shard k of n: SET GLOBAL "
            f"auto_increment_increment = n, auto_increment_offset = k;), or {rules}"
        )
    return [
        _PLACE.warning(
            "auto_increment_ID",
            f"{first} and {second}{others} each number `{column}` by AUTO_INCREMENT, and it is a "
            f"key of {name}: {meaning}",
            rules[0].upper() + rules[1:],
        )
    ]


def _numbered_alike(counting: Sequence[Shard], column: str, key: Set[str]) -> list[Shard]:
    """Return shards whose values in a key may be equal.

    Mapped bits, an extracted column of the key, or the numbering of the servers can distinguish
    shards. The servers' offsets do so only if all of them count with the same increment.
    """
    found: dict[tuple[object, ...], list[Shard]] = {}
    increments = {shard.numbering[0] for shard in counting}
    for shard in counting:
        mapped = shard.rules.mapped
        upper = mapped.upper if mapped and folded(mapped.name) == folded(column) else 0
        texts = [c.value for c in shard.rules.extracted if folded(c.name) in key]
        increment, offset = shard.numbering
        first = offset % increment if len(increments) == 1 else 0
        found.setdefault((upper, first, *texts), []).append(shard)
    return next((shards for shards in found.values() if len(shards) > 1), [])


def check_cascades(
    shards: Sequence[Shard], name: TableName, obstacle: tuple[str, str] | None
) -> list[CheckResult]:
    """Check whether the task repeats the effects of foreign keys, which no binlog has.

    ``obstacle``: why it can't, and the remedy.
    """
    acting = [
        shard
        for shard in shards
        if not shard.logs_cascades and any(key.acts for key in shard.table.definition.foreign_keys)
    ]
    if not acting:
        return []
    if obstacle is None:
        finding = (
            f"foreign keys of {members_listed(acting)} change or delete rows when their parent"
            f" changes, and the server does not log it: the task does the same to {name}"
        )
        return [_PLACE.passed("foreign_keys", finding)]
    return [
        _PLACE.failed(
            "foreign_keys",
            f"foreign keys of {members_listed(acting)} change or delete rows when their parent"
            " changes (ON DELETE, ON UPDATE): the server does not write this to its binlog, so"
            f" {name} would keep the old rows. The task can't do the same: {obstacle[0]}",
            f"Let the task do the same: {obstacle[1]}",
            "Take the action out of the key (ON DELETE RESTRICT), and let the application delete"
            " and change the rows of the child itself, before those of the parent",
            "If it does so already, ignore-checking-items: [foreign_keys]: rows that the server"
            " changes all the same are lost then",
        )
    ]


def members_listed(shards: Sequence[Shard]) -> str:
    """Return the members by name; a long list is cut."""
    shown = ", ".join(str(shard.member) for shard in shards[:_SHOWN])
    return shown + (f" and {len(shards) - _SHOWN} more" if len(shards) > _SHOWN else "")
