"""The findings about shards that share values of a target's key, with their remedies."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.names import Member, TableName, folded, quote
from replicator.pipeline.duplicate_keys.key_plan import KeyRead
from replicator.pipeline.duplicate_keys.key_sample import KeyTally, SharedValue
from replicator.routing.columns.member_columns import ExtractedColumn
from replicator.schema.structure.column_rules import EXTRACTED_TYPE
from replicator.schema.structure.structure import Table, UniqueKey

_PLACE = CheckedPart("target")
_SHOWN = 5
"""Maximum number of values and members in a message."""


@dataclass(slots=True)
class KeyFinding:
    """A unique key of a target, how it is read from its members, and the result.

    Attributes:
        number: the number of the key.
        unread: why members, or the key itself, could not be read.
        extracted: for each member, the columns of the target that the routes fill from its names.
        creation: the statements that create a missing target; empty if the task can't create it.
    """

    number: int
    name: TableName
    target: Table
    key: UniqueKey
    reads: list[KeyRead] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    extracted: Mapping[Member, Sequence[ExtractedColumn]] = field(default_factory=dict)
    creation: str | None = None
    tally: KeyTally = field(default_factory=KeyTally)

    @property
    def members(self) -> int:
        """Return the number of members that were read."""
        return len({read.member for read in self.reads} - self.tally.failures.keys())

    @property
    def failures(self) -> list[str]:
        """Return the unread members, with the reasons."""
        failed = sorted(self.tally.failures.items())
        return [*self.unread, *(f"{member}: {text}" for member, text in failed)]


def key_results(finding: KeyFinding) -> list[CheckResult]:
    """Return one result for the values, and one for the unread members."""
    results = []
    if finding.failures:
        results.append(_unread(finding))
    if finding.tally.shared:
        results.append(_collision(finding))
    elif finding.members:
        results.append(_PLACE.passed("key_collisions", _nothing_found(finding)))
    return results


def nothing_to_compare() -> CheckResult:
    """Return the result if no target has a unique key in which two shards could share a value."""
    text = "no target has a unique key of which two shards could have the same value"
    return _PLACE.passed("key_collisions", text)


def _nothing_found(finding: KeyFinding) -> str:
    values, shards = f"{finding.tally.looked_at:,} values", _shards(finding.members)
    if finding.tally.whole:
        return f"all {values} of {_key(finding)} in {shards} differ"
    return (
        f"{values} of {_key(finding)}, sampled in {shards}, all differ; a "
        "sample can't prove that no others are: replicator check --keys exact compares all"
    )


def _unread(finding: KeyFinding) -> CheckResult:
    more = len(finding.failures) - _SHOWN
    listed = "; ".join(finding.failures[:_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return _PLACE.warning(
        "key_collisions",
        f"the check can't tell whether shards share values of {_key(finding)}: {listed}",
        "Make sure that the shards' values differ, by what the application does or by a query; "
        "the check reads the table when you run it again",
    )


def _collision(finding: KeyFinding) -> CheckResult:
    tally = finding.tally
    examples = sorted(tally.examples, key=lambda shared: (len(shared.value), shared.value))
    amount = "" if tally.whole else f"in a sample of {tally.looked_at:,}, "
    counted = "one value is" if tally.shared == 1 else f"{tally.shared:,} values are"
    text = (
        f"{amount}{counted} found more than once among the shards, as values of {_key(finding)}:"
        f" {'; '.join(map(_example, examples[:_SHOWN]))}. The target can have one row of each;"
        f" the other {tally.by_member.total() - tally.shared:,} would stop the task, or be lost"
        " with on-duplicate-logical replace or ignore"
    )
    if tally.shared > _SHOWN:
        largest = sorted(tally.by_member.items(), key=lambda held: (-held[1], held[0]))[:_SHOWN]
        more = len(tally.by_member) - len(largest)
        text += "; most are of " + ", ".join(f"{m} ({rows:,})" for m, rows in largest)
        text += f" and {more} more" if more else ""
    example = examples[0].members[-1]
    return _PLACE.failed("key_collisions", text, *_remedies(finding, example))


def _example(shared: SharedValue) -> str:
    shown = ", ".join(map(str, shared.members[:_SHOWN]))
    more = shared.rows - min(len(shared.members), _SHOWN)
    return f"{shared.value} ({shown}{f' and {more} more' if more else ''})"


def _remedies(finding: KeyFinding, member: Member) -> list[str]:
    """Return the remedies; ``member``: a member with a shared value."""
    columns = [finding.target.column(name) for name in finding.key.columns]
    numbers = [c.name for c in columns if c is not None and c.sql_type.family == "integer"]
    remedies = []
    if numbers:
        column = quote(numbers[-1])
        remedies.append(
            f"Where {column} is a BIGINT that counts up: fold the shard's number into it, with a "
            "'partition id' under column-mappings that names the shards' tables"
        )
    remedies.append(_wider_key(finding))
    if numbers:
        remedies.append(
            f"Renumber one of two shards at its source, with all that refers to it, before it is "
            f"copied: UPDATE {member.name.quoted} SET {column} = {column} + "
            "<more than the largest of all shards> ORDER BY "
            f"{column} DESC;"
        )
    else:
        remedies.append(
            f"Change the values of one of two shards at its source, such as {member}, or leave "
            "rows that are copies of one another out of all shards but one"
        )
    return remedies


def _wider_key(finding: KeyFinding) -> str:
    """Return the columns to add to the target's key, with the rules that fill them."""
    drop = "DROP PRIMARY KEY, ADD PRIMARY KEY"
    if finding.key.name != "PRIMARY":
        name = quote(finding.key.name)
        drop = f"DROP INDEX {name}, ADD UNIQUE KEY {name}"
    members = {read.member for read in finding.reads}
    there = {folded(column.name) for column in finding.target.columns}
    if extracted := _distinguishing_columns(finding, members):
        names = list(map(quote, extracted))
        columns = _added(name for name in extracted if folded(name) not in there)
        what = f"Add the extracted columns of the shards ({', '.join(names)}) to the target's key"
    else:
        parts = distinguishing(members)
        added = {part: _free_name(f"shard_{part}", there) for part in parts}
        names, columns = list(map(quote, added.values())), _added(added.values())
        rules = " and ".join(f"extract-{part} ({quote(name)})" for part, name in added.items())
        one = len(added) == 1
        what = (
            f"Add {'a column that distinguishes' if one else 'columns that distinguish'} the shards"
            f" to the target's key, and fill {'it' if one else 'them'} with {rules} of the route"
        )
    key = ", ".join((*map(quote, finding.key.columns), *names))
    statement = f"ALTER TABLE {finding.name.quoted} {columns}{drop} ({key});"
    if finding.creation is None:
        return f"{what}: {statement}"
    return (
        f"{what}. The target does not exist yet: before the start, create it"
        f"{' by hand, then' if not finding.creation else ''}: {finding.creation} {statement}"
    )


def _added(columns: Iterable[str]) -> str:
    return "".join(f"ADD COLUMN {quote(name)} {EXTRACTED_TYPE} NOT NULL, " for name in columns)


def _distinguishing_columns(finding: KeyFinding, members: Collection[Member]) -> list[str]:
    """Return the target's extracted columns, present or future, if they distinguish all members."""
    values = {member: finding.extracted.get(member, ()) for member in members}
    names = {folded(column.name): column.name for of in values.values() for column in of}
    if len({tuple((folded(c.name), c.value) for c in of) for of in values.values()}) < len(members):
        return []
    there = {folded(column.name) for column in finding.target.columns}
    if finding.creation is None and not names.keys() <= there:
        return []
    in_key = set(map(folded, finding.key.columns))
    return [name for key, name in names.items() if key not in in_key]


def distinguishing(members: Collection[Member]) -> tuple[str, ...]:
    """Return the fewest of ``table``, ``schema`` and ``source`` in which all members differ."""
    values = {
        "table": lambda member: member.name.table,
        "schema": lambda member: member.name.schema,
        "source": lambda member: member.source,
    }
    for count in (1, 2):
        for parts in combinations(values, count):
            found = {tuple(values[part](member) for part in parts) for member in members}
            if len(found) == len(members):
                return parts
    return tuple(values)


def _free_name(name: str, there: Collection[str]) -> str:
    names = (name, *(f"{name}_{number}" for number in range(2, len(there) + 3)))
    return next(free for free in names if folded(free) not in there)


def _key(finding: KeyFinding) -> str:
    columns = ", ".join(map(quote, finding.key.columns)) or "an expression"
    if finding.key.name == "PRIMARY":
        return f"{finding.name}'s primary key ({columns})"
    return f"{finding.name}'s unique key {quote(finding.key.name)} ({columns})"


def _shards(count: int) -> str:
    return "1 shard" if count == 1 else f"{count:,} shards"
