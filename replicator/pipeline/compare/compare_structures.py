"""Finds the differences between the columns and indexes of a target and its shards.

If the target can store every row of its shards unchanged, a difference is only noted. Otherwise the
target is unfit. If a rule of the task file makes the target differ from its shards (a mapped column
is wider, an extracted column belongs to the key), this is no difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from replicator.mysql.names import Member, folded
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.columns.member_columns import MemberColumns
from replicator.routing.expression.expression_filter import ExpressionFilters
from replicator.schema.effects.check_constraints import check_constraints, json_column
from replicator.schema.effects.column_values import comment, value_clause
from replicator.schema.structure.conversions import (
    Fit,
    charset_conversion,
    conversion,
    null_misfit,
)
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.optimistic.agreement import (
    ORDER,
    Part,
    PartKind,
    agreed_parts,
    described_part,
    values_of,
)
from replicator.sharding.optimistic.agreement_alters import differing_parts
from replicator.sharding.optimistic.alters import NoAlterError
from replicator.sharding.optimistic.joined_table import widening
from replicator.sharding.optimistic.shapes import NoJoinError

_NAME = "`(?:[^`]|``)*`"
_INSIDE = rf"(?:{_NAME}|[^`()])*"
for _ in range(5):
    # Brackets within brackets: lengths of prefixes, expressions.
    _INSIDE = rf"(?:{_NAME}|[^`()]|\({_INSIDE}\))*"
_INDEX = re.compile(
    r"^\s*(PRIMARY KEY|UNIQUE KEY|KEY|FULLTEXT KEY|SPATIAL KEY)\s*(?:`(?:[^`]|``)*`)?\s*"
    rf"(\({_INSIDE}\))",
    re.MULTILINE,
)
_UNIQUE = frozenset({"PRIMARY KEY", "UNIQUE KEY"})
_NOW = r"^(?:current_timestamp|now|localtimestamp|localtime)(?![a-z_])"
"""The beginning of a default that is the current time, without brackets."""
_ALIKE = ({"json", "longtext"},)
"""Sets of types: if a server lacks a type, another type of the set is used instead."""


@dataclass(frozen=True, slots=True)
class ComparedShard:
    """A shard with its present structure.

    Attributes:
        condition: the condition of its rows that reach the target, as SQL.
        open: folded names of the columns in which the shard's rows on the target may differ, since
            one of its statements waits for an answer (`shard-mode: optimistic`).
    """

    member: Member
    structure: Table
    rules: MemberColumns
    condition: str = ""
    open: frozenset[str] = frozenset()


def compared_shard(
    member: Member, structure: Table, rules: MemberColumns, filters: ExpressionFilters
) -> ComparedShard:
    """Return a shard whose rows are the ones that its source's ``filters`` leave.

    Raises ExpressionError.
    """
    filtered = rules_for(filters, member.name, structure)
    return ComparedShard(member, structure, rules, filtered.copied if filtered else "")


@dataclass(frozen=True, slots=True)
class StructureDifferences:
    """The differences between a target and its shards, a sentence for each.

    Attributes:
        unfit: differences because of which the target may refuse or change a row of a shard.
        notes: all others; the target stores every row of its shards in spite of them.
    """

    unfit: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def structure_differences(
    target: Table, shards: Sequence[ComparedShard], *, joins: bool = False
) -> StructureDifferences:
    """Compare the structure of a target with its shards; each difference has its first shard.

    `joins`: whether shards may differ; then a difference from only some of them is not noted. A
    part in which all shards agree, but the target differs, is noted in any case.
    """
    shards_differ = len({shard.structure.fingerprint for shard in shards}) > 1
    unfit: dict[str, list[Member]] = {}
    notes: dict[str, list[Member]] = {}
    for shard in shards:
        its_unfit = dict.fromkeys((*_unfit_columns(target, shard), *_unfit_keys(target, shard)))
        for text in its_unfit:
            unfit.setdefault(text, []).append(shard.member)
        if joins and shards_differ:
            continue
        for text in (*_columns(target, shard), *_indexes(target, shard)):
            if not any(unfit_text.startswith(text) for unfit_text in its_unfit):
                notes.setdefault(text, []).append(shard.member)
    lacking = _lacking_for_all(target, shards) if joins and shards_differ else ()
    agreed = _agreed(target, shards, told=not (joins and shards_differ))
    return StructureDifferences((*_texts(unfit), *lacking), (*_texts(notes), *agreed))


def _texts(found: Mapping[str, Sequence[Member]]) -> Iterator[str]:
    for text, members in found.items():
        more = f" and {len(members) - 1} more" if len(members) > 1 else ""
        yield f"{text} ({members[0]}{more})"


def _agreed(target: Table, shards: Sequence[ComparedShard], *, told: bool) -> Iterator[str]:
    """Yield the parts, such as comments, in which all shards agree, but the target differs.

    ``told``: leave out the parts that `_columns` names.
    """
    structures: dict[tuple[str, frozenset[str]], Table] = {}
    for shard in shards:
        left_out = shard.open | _ruled(shard)
        structures.setdefault((shard.structure.fingerprint, left_out), shard.structure)
    wanted = agreed_parts((table, left_out) for (_, left_out), table in structures.items())
    there = values_of(target)
    in_keys = {folded(name) for key in target.keys for name in key.columns}
    for part in sorted(differing_parts(target, wanted, in_keys)):
        text = f"the target does not have the {described_part(part)} of all its shards"
        if part == ORDER:
            # If shards have different columns, several orders are possible.
            if not told and any(_reorders(target, table) for table in structures.values()):
                yield text
        elif not (told and _names_difference(target, shards[0].structure, part)):
            none = "visible" if part[0] is PartKind.VISIBILITY else "none"
            ours, theirs = (v.removeprefix("= ") or none for v in (there[part], wanted[part] or ""))
            yield f"{text}: it has {ours}, they have {theirs}"


def _names_difference(target: Table, shard: Table, part: Part) -> bool:
    """Whether `_columns` names a part in which a target differs from a shard."""
    kind, name = part
    if kind is PartKind.DEFAULT:
        ours, theirs = target.column(name), shard.column(name)
        if ours is None or theirs is None:
            return False
        return default_text(target, ours) != default_text(shard, theirs)
    return kind in {PartKind.COMMENT, PartKind.COLLATION}


def _lacking_for_all(target: Table, shards: Sequence[ComparedShard]) -> tuple[str, ...]:
    """Return what a target lacks to store the rows of shards that differ from each other."""
    try:
        alter = widening(target, [shard.structure for shard in shards])
    except NoJoinError as error:
        return (str(error),)
    except NoAlterError as error:
        return (f"the target does not take the rows of all shards: {error}",)
    return (f"the target does not take the rows of all shards; it would by: {alter}",) * bool(alter)


def _ruled(shard: ComparedShard) -> set[str]:
    ruled = {folded(made.name) for made in shard.rules.extracted}
    if shard.rules.mapped is not None:
        ruled.add(folded(shard.rules.mapped.name))
    return ruled


def _unfit_columns(target: Table, shard: ComparedShard) -> Iterator[str]:
    """Yield the columns of the target that can't store every value of the shard."""
    ruled = _ruled(shard)
    for column in target.columns:
        its = shard.structure.column(column.name)
        if folded(column.name) in ruled:
            continue
        if column.generated:
            if its is not None and not its.generated:
                yield f"the target computes the column {column.name}, the shard does not"
        elif its is not None:
            for rule in (conversion, charset_conversion, null_misfit):
                if (found := rule(its, column)).fit is not Fit.ALL:
                    ours, theirs = _shown(target, column), _shown(shard.structure, its)
                    what = f"{ours} on the target, {theirs} in the shard"
                    yield f"column {column.name} is {what}: {found.why}"
                    break
        elif not (
            column.nullable
            or column.auto_increment
            or column.fill
            or value_clause(target, column.name)
        ):
            yield f"column {column.name} of the target, which the shard lacks, has no default"


def _unfit_keys(target: Table, shard: ComparedShard) -> Iterator[str]:
    """Yield the target's unique keys and constraints that may refuse rows of one shard."""
    ruled = _ruled(shard)
    there = _index_texts(shard.structure)
    own = [set(map(folded, key.columns)) for key in shard.structure.keys if key.columns]
    numbered = {
        folded(column.name)
        for column in target.columns
        if column.auto_increment and shard.structure.column(column.name) is None
    }
    for kind, text in sorted(_index_texts(target)):
        names = {folded(name) for name in _names_of(text)}
        if kind not in _UNIQUE or names & numbered:
            continue
        alike = any((other, text) in there for other in _UNIQUE)
        whole = "(" not in text[1:]
        if not (alike or (whole and any(key <= names for key in own))):
            yield f"the target has the {kind} {text}, by which the shard has no unique key"
            continue
        for name in sorted(names - ruled):
            its, column = shard.structure.column(name), target.column(name)
            if its and column and not _distinguishes(its.collation, column.collation):
                yield (
                    f"the {kind} {text} compares {column.name} by {column.collation} on the"
                    f" target, by {its.collation} in the shard: rows may be equal there"
                )
    checks = {check.form for check in check_constraints(shard.structure)}
    for check in check_constraints(target):
        column = shard.structure.column(json_column(check.form))
        if check.form not in checks and not (column and column.base_type == "json"):
            yield f"the target has CHECK {check.expression}, the shard does not"


def _distinguishes(collation: str, other: str) -> bool:
    """Whether any two values that differ by one collation also differ by the other one."""
    if not collation or not other or collation == other:
        return True
    names = [re.sub("^utf8(mb3)?_", "utf8mb4_", name.lower()) for name in (collation, other)]
    if names[0] == names[1]:
        return True
    # Without padding, spaces at the end of a text count.
    padded = [re.search("_0900_|_nopad_|^binary$", name) is None for name in names]
    return names[1].endswith(("_bin", "binary")) and (padded[0] or not padded[1])


def _names_of(text: str) -> list[str]:
    found = re.findall(r"`((?:[^`]|``)*)`", text)
    return [name.replace("``", "`") for name in found]


def _columns(target: Table, shard: ComparedShard) -> Iterator[str]:
    ruled = _ruled(shard)
    for its in shard.structure.columns:
        column = target.column(its.name)
        if column is None or folded(its.name) in ruled:
            continue
        ours, theirs = _shown(target, column), _shown(shard.structure, its)
        if ours != theirs and {column.base_type, its.base_type} not in _ALIKE:
            yield f"column {column.name} is {ours} on the target, {theirs} in the shard"
        if comment(target, column.name) != comment(shard.structure, its.name):
            yield f"column {column.name} has another comment on the target than in the shard"
    if _reorders(target, shard.structure):
        yield "the columns of the target have another order"


def _reorders(target: Table, shard: Table) -> bool:
    common = [folded(c.name) for c in target.columns if shard.column(c.name)]
    theirs_in_order = [folded(c.name) for c in shard.columns]
    return common != [name for name in theirs_in_order if name in set(common)]


def default_text(table: Table, column: Column) -> str:
    """Return the default of a column, in one form for all servers; empty for none and for NULL."""
    clause = "" if column.generated else value_clause(table, column.name)
    text = re.sub(r"^DEFAULT\b|[\s'()]", "", clause, flags=re.IGNORECASE)
    if re.match(_NOW, text, re.IGNORECASE):
        return re.sub(_NOW, "CURRENT_TIMESTAMP", text, flags=re.IGNORECASE).upper()
    return "" if text.upper() == "NULL" else text


def _shown(table: Table, column: Column) -> str:
    # Newer servers leave out the display width of integers, and write defaults differently.
    kind = re.sub(r"int\(\d+\)", "int", column.type.lower())
    charset = "utf8mb3" if column.charset == "utf8" else column.charset
    collation = column.collation.replace("utf8_", "utf8mb3_", 1)
    default = default_text(table, column)
    parts = [
        kind,
        f"CHARACTER SET {charset}" if charset else "",
        f"COLLATE {collation}" if collation else "",
        "" if column.nullable else "NOT NULL",
        "generated" if column.generated else "",
        f"DEFAULT '{default}'" if default else "",
    ]
    return " ".join(filter(None, parts))


def _indexes(target: Table, shard: ComparedShard) -> Iterator[str]:
    ours, theirs = _index_texts(target), _index_texts(shard.structure)
    for kind, columns in sorted(theirs - ours):
        if kind in _UNIQUE and (shard.rules.extracted or shard.rules.mapped):
            continue
        yield f"the target has no index {kind} {columns}, the shard does"
    for kind, columns in sorted(ours - theirs):
        if kind not in _UNIQUE:
            yield f"the shard has no index {kind} {columns}, the target does"


def _index_texts(table: Table) -> set[tuple[str, str]]:
    found = _INDEX.findall(table.create_sql)
    return {(kind, columns.replace(", ", ",")) for kind, columns in found}
