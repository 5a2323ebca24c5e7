"""Compares the collations in which the members of a target compare the texts of its unique keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.agreement import Shard, members_listed
from replicator.checks.schema.table_fit import collated, distinguishes
from replicator.ddl.rewrite.default_collations import ignores_spaces, nearest_collation, renamed
from replicator.mysql.names import TableName, folded
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.column_order import finest_way

_PLACE = CheckedPart("target")


@dataclass(frozen=True, slots=True)
class KeyTexts:
    """A text column of a unique key which the members compare in several collations.

    Attributes:
        column: its name.
        members: the members with each collation.
        exact: the collation of the target's server in which only equal texts are equal, or None.
    """

    column: str
    members: Mapping[str, Sequence[Shard]]
    exact: str | None

    @property
    def first(self) -> Shard:
        """The first member."""
        return next(iter(self.members.values()))[0]


def differing_key_texts(
    shards: Sequence[Shard], target: Table | None, available: Set[str], *, joins: bool
) -> list[KeyTexts]:
    """Return the text columns of unique keys that the target can't compare as every member does.

    The members have such a column in several collations. In the target's collation, or the first
    member's if the target is created like it, texts are equal that differ in a member. A column of
    several charsets is left out: `check_agreement` reports it.

    Args:
        available: the collations of the target's server, in lower case.
        joins: whether the target gets the collation of a member that distinguishes all texts, if
            there is one.
    """
    pattern = target or shards[0].table
    found = []
    for name in dict.fromkeys(folded(name) for key in pattern.keys for name in key.columns):
        members: dict[str, list[Shard]] = {}
        for shard in shards:
            column = shard.table.column(name)
            if column is not None and column.collation:
                members.setdefault(_same_name(column.collation), []).append(shard)
        charsets = {collation.partition("_")[0] for collation in members}
        if len(members) < 2 or len(charsets) > 1:
            continue
        ways = {collation.partition("_")[2] for collation in members}
        finest, own = finest_way(ways), pattern.column(name)
        if finest is not None if joins else own is not None and distinguishes(own, ways):
            continue
        (charset,) = charsets
        spaces = all(map(ignores_spaces, members))
        exact = nearest_collation(f"{charset}{'' if spaces else '_nopad'}_bin", available)
        if exact is not None and ignores_spaces(exact) and not spaces:
            exact = None
        found.append(KeyTexts(name, members, exact))
    return found


def with_one_collation(shards: Sequence[Shard], like: Table) -> list[Shard]:
    """Return the members with the collations that a table has in the columns of its keys."""
    keyed = {folded(name) for key in like.keys for name in key.columns}

    def of(column: Column) -> Column:
        own = like.column(column.name) if folded(column.name) in keyed else None
        alike = own is not None and _charset(own.collation) == _charset(column.collation)
        return replace(column, collation=own.collation) if own is not None and alike else column

    return [
        replace(shard, table=replace(shard.table, columns=tuple(map(of, shard.table.columns))))
        for shard in shards
    ]


def _charset(collation: str) -> str:
    return _same_name(collation).partition("_")[0]


def _same_name(collation: str) -> str:
    """Return a collation by its name with the newer name of its charset."""
    name = collation.lower()
    return renamed(name) if name.startswith("utf8_") else name


def check_key_texts(
    texts: Sequence[KeyTexts],
    name: TableName,
    target: Table | None,
    create: str,
    *,
    joins: bool,
    required: bool,
) -> list[CheckResult]:
    """Return the results for the columns whose members compare keys in several collations.

    Args:
        target: the target's structure, or None if it does not exist.
        create: the statements that create a missing target like its first member.
        joins: whether the target's structure follows from the members' structures.
        required: whether a difference is a failure instead of a warning.
    """
    results = []
    for found in texts:
        having = "; ".join(f"{way} ({members_listed(m)})" for way, m in found.members.items())
        finding = (
            f"`{found.column}` is part of a unique key of {name}, and the shards compare it by"
            f" different collations: {having}. Texts that one of them takes for equal are different"
            " keys in another one: perhaps 'a' and 'A', 'e' and 'é', or texts that differ in a"
            f" space at the end. If {name} compares them as equal, two rows have one key there,"
            " and the second one stops the task or replaces the first one"
            " (on-duplicate-logical)"
        )
        remedies = [] if joins else _exact_target(found, name, target, create)
        remedies += _altered_shards(found)
        later = any(s.later_ddl for shards in found.members.values() for s in shards)
        make = _PLACE.failed if required and not later else _PLACE.warning
        results.append(make("schema_of_shard_tables", finding, *remedies))
    return results


def _exact_target(texts: KeyTexts, name: TableName, target: Table | None, create: str) -> list[str]:
    if texts.exact is None or not (target or create):
        return []
    definition = collated(target or texts.first.table, texts.column, texts.exact)
    alter = f"ALTER TABLE {name.quoted} MODIFY COLUMN {definition};"
    made = f"{create} " if target is None else ""
    return [
        f"Let the target distinguish all texts, so that no two rows have one key: {made}{alter}"
        " (in the target, a query for 'a' no longer finds 'A', unless it says by which collation"
        " it compares)"
    ]


def _altered_shards(texts: KeyTexts) -> list[str]:
    """Return the remedy that gives all members one collation that their servers support."""
    charset = next(iter(texts.members)).partition("_")[0]
    servers = [shard.available for shards in texts.members.values() for shard in shards]
    common = next(
        (
            way
            for way in (*texts.members, f"{charset}_unicode_ci", f"{charset}_bin")
            if all(way in there or renamed(way) in there for there in servers)
        ),
        None,
    )
    if common is None:
        return []
    alters = [
        f"on {shard.member.source}: ALTER TABLE {shard.member.name.quoted} MODIFY COLUMN"
        f" {collated(shard.table, texts.column, _named(common, shard.available))};"
        for way, shards in texts.members.items()
        if way != common
        for shard in shards
    ]
    return [f"Or give the shards one collation, {common}: {' '.join(alters)}"]


def _named(collation: str, available: Set[str]) -> str:
    return collation if collation in available else renamed(collation)
