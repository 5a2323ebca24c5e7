"""The structure of each member at each place of its binlog; numbers for targets and members."""

from __future__ import annotations

import json
import threading
from bisect import bisect_right, insort
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from replicator.mysql.names import Member, TableName, folded
from replicator.schema.registry.row_owners import RowOwners
from replicator.schema.structure.foreign_keys import ParentChange, with_parents_changed
from replicator.schema.structure.structure import Column, Table, UniqueKey


class Provenance(StrEnum):
    """Where a structure comes from. All but a guess are known."""

    READ = "read"
    """From the server, and no statement of the binlog that may change it stands in between."""
    LEARNED = "learned"
    """From a statement of the binlog, executed on a known structure or creating the table."""
    DECLARED = "told"
    """From the operator."""
    GUESSED = "guessed"
    """Anything else."""


@dataclass(frozen=True, slots=True)
class KnownStructure:
    """What is held for a member at a place of its binlog.

    ``structure`` is None for a table that is gone, or where there is not even a guess. ``doubt``
    says why a guess is no more than that.
    """

    structure: Table | None
    provenance: Provenance
    doubt: str = ""

    @property
    def known(self) -> bool:
        """Whether rows may be read with it, whatever their events tell."""
        return self.provenance is not Provenance.GUESSED

    @property
    def certain(self) -> Table | None:
        """The structure where it is known."""
        return self.structure if self.known else None


GONE = KnownStructure(None, Provenance.LEARNED)
"""Of a table that was dropped, or has another name now."""

UNSEEN = KnownStructure(
    None,
    Provenance.GUESSED,
    "it was not there when the task first looked at its source, and no statement that creates it"
    " was read since",
)
"""Of a table that rows are met of, and nothing else."""


def guess(structure: Table | None, doubt: str) -> KnownStructure:
    """A structure that is not certain, or none; ``doubt`` says why."""
    return KnownStructure(structure, Provenance.GUESSED, doubt)


_FIRST_HAND = frozenset({Provenance.READ, Provenance.DECLARED})


class CopyState(IntEnum):
    """How the full copy of a member ended.

    Without a full copy a member counts as copied, and so does one that is created later.
    """

    COPIED = 0
    """Its rows are on the target, or come by the binlog."""
    DEFERRED = 1
    """Some of its rows are to be copied yet; what is read of it is applied meanwhile."""
    LEFT_OUT = 2
    """None of its rows are copied: what is read of it is left out until they are. It would be
    there twice where no key tells them apart on the target."""
    AGAIN = 3
    """Its rows are being copied once more, from the saved position on."""
    RECOPY = 4
    """Its target is to be emptied, and all shards of the target copied anew: `LEFT_OUT` then."""


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """What a checkpoint keeps of a member: its version and structure at the saved position.

    ``since`` is the key of the event group that gave it this structure (0: known from the start).
    ``held`` is the structure, and where it comes from. ``copying``: whether its rows are copied.
    """

    member: Member
    target: TableName
    version: int
    since: int
    held: KnownStructure
    copying: CopyState = CopyState.COPIED


@dataclass(frozen=True, slots=True)
class _Inherited:
    """What another member has at a place."""

    member: int
    at: int


class _Structures:
    """The structures of a member, ``at`` the ``places`` at which they were noted, in order."""

    def __init__(self) -> None:
        self.at: dict[int, KnownStructure | _Inherited] = {}
        self.places: list[int] = []

    def note(self, place: int, held: KnownStructure | _Inherited) -> None:
        new = place not in self.at
        self.at[place] = held
        if new:
            insort(self.places, place)


class SchemaRegistry:
    """The members, their targets, and their structures at each place of the binlog.

    Places are keys of positions (`replicator.binlog.positions.position.BinlogPosition.key`).

    Targets and members are numbered from 0, since row events carry numbers rather than names; no
    number is reused while the process runs. The readers' threads add members that they find;
    everything else happens on the event loop. ``folds_targets``: the target's server takes names of
    tables without their case.
    """

    def __init__(self, *, folds_targets: bool = False) -> None:
        self._names = TargetNames(folds=folds_targets)
        self._targets: list[TableName] = []
        self._target_numbers: dict[TableName, int] = {}
        self._members: list[Member] = []
        self._member_numbers: dict[Member, int] = {}
        self._target_of: dict[int, int] = {}
        self._present: set[int] = set()
        self._present_of: dict[int, set[int]] = {}
        self._sorted: dict[int, tuple[int, ...]] = {}
        self._structures: dict[int, _Structures] = {}
        self._declared: dict[Member, dict[int, KnownStructure]] = {}
        self._copied: dict[int, int] = {}
        self._copying: dict[int, dict[int, CopyState | _Inherited]] = {}
        self._parents: dict[str, dict[int, dict[TableName, ParentChange]]] = {}
        self._lock = threading.Lock()
        self.changes = 0
        """How often a structure was noted."""
        self.owners = RowOwners()
        """The shards that targets may have rows of, as far as they are not saved."""
        self.retired: dict[Member, tuple[TableName, int]] = {}
        """The retired shards, each with its target, and the place from which no row is applied."""

    def keeps_retired(self, target: TableName) -> bool:
        """Whether a target has rows of retired shards, which no statement may remove."""
        return any(target in (of, TableName(of.schema, "")) for of, _ in self.retired.values())

    def target(self, name: TableName) -> int:
        """The number of a target; a new one for a new name."""
        with self._lock:
            return self._target(name)

    def _target(self, name: TableName) -> int:
        number = self._target_numbers.get(name)
        if number is None:
            number = self._target_numbers[name] = len(self._targets)
            self._targets.append(name)
        return number

    def clash(self, name: TableName) -> str | None:
        """Another spelling of a target that its server takes for the same; as `TargetNames`."""
        return self._names.clash(name)

    def target_name(self, number: int) -> TableName:
        """The name of the target with this number."""
        return self._targets[number]

    def targets(self) -> tuple[tuple[int, TableName], ...]:
        """All targets with their numbers."""
        return tuple(enumerate(self._targets))

    @property
    def targets_in_use(self) -> frozenset[TableName]:
        """The tables that have members."""
        return frozenset(
            name for number, name in self.targets() if name.table and self.members_of(number)
        )

    def join(self, member: Member, target: TableName) -> int:
        """Add a member, or add it again; returns its number."""
        with self._lock:
            number = self._member_numbers.get(member)
            if number is None:
                number = self._member_numbers[member] = len(self._members)
                self._members.append(member)
                noted = self._structures[number] = _Structures()
                for since, held in self._declared.get(member, {}).items():
                    noted.note(since, held)
                self.changes += 1
            self._withdraw(number)
            routed = self._target_of[number] = self._target(target)
            self._present.add(number)
            self._present_of.setdefault(routed, set()).add(number)
            self._sorted.pop(routed, None)
            self.owners.has(member, self._targets[routed])
            return number

    def leave(self, member: int) -> None:
        """Remove a member whose table is gone; its number and past structures stay."""
        with self._lock:
            self._withdraw(member)

    def end(self, member: int) -> None:
        """Note that a member's table is gone, and that its target keeps the rows."""
        self.owners.ended(self._members[member], self._targets[self._target_of[member]])

    def _withdraw(self, member: int) -> None:
        if member in self._present:
            self._present.remove(member)
            self._present_of[self._target_of[member]].remove(member)
            self._sorted.pop(self._target_of[member], None)

    def members_of(self, target: int) -> tuple[int, ...]:
        """The members that are routed to a target now, of all sources."""
        with self._lock:
            # Asked for with each batch, and there may be thousands.
            found = self._sorted.get(target)
            if found is None:
                found = self._sorted[target] = tuple(sorted(self._present_of.get(target, ())))
            return found

    def sources(self) -> frozenset[str]:
        """The sources that have members now."""
        return frozenset(self._members[m].source for m in tuple(self._present))

    def members_in(self, source: str) -> tuple[int, ...]:
        """The members that a source has now."""
        return tuple(sorted(m for m in tuple(self._present) if self._members[m].source == source))

    def known_in(self, source: str) -> tuple[int, ...]:
        """The members that a source has or had."""
        return tuple(n for n, m in enumerate(tuple(self._members)) if m.source == source)

    def member(self, number: int) -> Member:
        """The member with this number."""
        return self._members[number]

    def number(self, member: Member) -> int | None:
        """The number of a member, None for one that never joined."""
        return self._member_numbers.get(member)

    def target_of(self, member: int) -> int:
        """The number of the target that a member is routed to."""
        return self._target_of[member]

    def copied(self, member: int, until: int) -> None:
        """Note that the full copy has written a member's rows as they were at this place."""
        self._copied[member] = until

    def copied_before(self, member: int, at: int) -> bool:
        """Whether the rows on the target were copied from a place before this one."""
        return self._copied.get(member, 0) <= at

    def copied_places(self, source: str, target: int) -> dict[int, int]:
        """The places before which the rows of a sharding group's members were copied.

        Also of members that have left since: their rows may be read again.
        """
        return {
            member: place
            for member, place in self._copied.items()
            if self._members[member].source == source and self._target_of[member] == target
        }

    def defer(self, member: int, state: CopyState) -> None:
        """Note that rows of a member, as it was at the start, are still to be copied."""
        self._copying[member] = {0: state}

    def copying(self, member: int, at: int) -> CopyState:
        """Whether a member's rows are copied, by what it is at a place of its source's binlog.

        A table takes along what is to be copied of it when it gets another name.
        """
        noted = self._copying.get(member, {})
        since = max((since for since in noted if since <= at), default=None)
        found = CopyState.COPIED if since is None else noted[since]
        return self.copying(found.member, found.at) if isinstance(found, _Inherited) else found

    def deferred_in(self, source: str) -> set[TableName]:
        """The targets of members that a source had at the start and that are still to be copied."""
        return {
            self._targets[self._target_of[member]]
            for member, noted in self._copying.items()
            if self._members[member].source == source
            and noted.get(0, CopyState.COPIED) is not CopyState.COPIED
        }

    @property
    def leaves_out(self) -> bool:
        """Whether what is read of a member may have to be left out until it is copied."""
        return any(
            state is CopyState.LEFT_OUT
            for noted in self._copying.values()
            for state in noted.values()
        )

    def learn(self, member: int, since: int, held: KnownStructure) -> None:
        """Note the structure that a member has after the event group at ``since``.

        What was read or told for that very place is not replaced by what is concluded.
        """
        if held == GONE and member in self._copying:
            self._copying[member][since] = CopyState.COPIED
        if held.provenance in _FIRST_HAND or not self._is_first_hand(member, since):
            self._structures[member].note(since, held)
            self.changes += 1

    def declare(self, member: Member, since: int, structure: Table) -> None:
        """Note the structure that the operator gives a table from a place on.

        It may become a member only later.
        """
        held = KnownStructure(structure, Provenance.DECLARED)
        self._declared.setdefault(member, {})[since] = held
        number = self.number(member)
        if number is not None:
            self.learn(number, since, held)

    def is_declared(self, member: Member) -> bool:
        """Whether the operator has told a structure of a table, for any place."""
        return member in self._declared

    def inherit(self, member: int, since: int, origin: int) -> None:
        """Note that a member has, from ``since`` on, the structure that ``origin`` had before.

        What that is may be learned later: statements are read before they are executed. So does
        what is to be copied of it.
        """
        if member in self._copying or origin in self._copying:
            self._copying.setdefault(member, {})[since] = _Inherited(origin, since - 1)
        if not self._is_first_hand(member, since):
            self._structures[member].note(since, _Inherited(origin, since - 1))
            self.changes += 1

    def _is_first_hand(self, member: int, since: int) -> bool:
        noted = self._structures[member].at.get(since)
        return isinstance(noted, KnownStructure) and noted.provenance in _FIRST_HAND

    def held(self, member: int, at: int) -> KnownStructure:
        """A member's structure at a place of its source's binlog, and where it comes from.

        It is the newest one noted up to ``at``, so reading the binlog again from an earlier place
        finds the same structures again.
        """
        since = self.since(member, at)
        found = UNSEEN if since is None else self._structures[member].at[since]
        if isinstance(found, _Inherited):
            # The statement may rename its parents, too.
            since, found = found.at, self.held(found.member, found.at)
        source = self._members[member].source
        if since is None or found.structure is None or source not in self._parents:
            return found
        return self._with_parents(found, source, since, at)

    def rename_parent(self, source: str, at: int, change: ParentChange) -> None:
        """Note that a statement gives a table or its columns other names: its server changes the
        foreign keys that refer to it."""
        self._parents.setdefault(source, {}).setdefault(at, {})[change.parent] = change
        self.changes += 1

    def _with_parents(
        self, held: KnownStructure, source: str, since: int, at: int
    ) -> KnownStructure:
        """A structure with the names that its parents have at a position."""
        structure = held.structure
        assert structure is not None
        for changed_at, changes in sorted(self._parents[source].items()):
            if since < changed_at <= at and structure.definition.foreign_keys:
                structure = with_parents_changed(structure, changes)
        return held if structure is held.structure else replace(held, structure=structure)

    def record(self, member: int, version: int, at: int) -> MemberRecord:
        """What a checkpoint at ``at`` keeps of the member, whose version there is ``version``."""
        since = self.since(member, at)
        return MemberRecord(
            member=self._members[member],
            target=self._targets[self._target_of[member]],
            version=version,
            since=since or 0,
            held=self.held(member, at),
            copying=self.copying(member, at),
        )

    def places(self, member: int) -> tuple[int, ...]:
        """The places at which a member's structure was noted, in their order."""
        return tuple(self._structures[member].places)

    def since(self, member: int, at: int) -> int | None:
        """The place since which a member has its structure at ``at``; None if unknown."""
        places = self._structures[member].places
        earlier = bisect_right(places, at)
        return places[earlier - 1] if earlier else None


def dump_structure(table: Table | None) -> str:
    """A structure as JSON text, for the meta tables."""
    # Not by `asdict`, which copies all values: there are thousands of members.
    values = None if table is None else _values(table)
    return json.dumps(values, default=_values, ensure_ascii=False)


def _values(part: Table | Column | UniqueKey) -> dict[str, object]:
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def load_structure(text: str) -> Table | None:
    """The structure that `dump_structure` wrote. Raises KeyError or ValueError on other text."""
    data = json.loads(text)
    if data is None:
        return None
    columns: Iterable[dict[str, object]] = data.pop("columns")
    keys: Iterable[dict[str, object]] = data.pop("keys")
    return Table(
        columns=tuple(Column(**column) for column in columns),  # type: ignore[arg-type]
        keys=tuple(
            UniqueKey(**{**key, "columns": tuple(key["columns"])})  # type: ignore[arg-type]
            for key in keys
        ),
        **data,
    )


class TargetNames:
    """The names of targets seen so far. ``folds``: as in `replicator.mysql.server.identity`.

    To the task two names are two targets: each would have its own version, watermarks and lock,
    while their rows and schema changes go to one table.
    """

    def __init__(self, *, folds: bool) -> None:
        self._folds = folds
        self._tables: dict[TableName, TableName] = {}
        self._schemas: dict[str, str] = {}

    def clash(self, name: TableName) -> str | None:
        """Take a name in; the earlier spelling that the server takes for the same, None: none.

        Of the database where that is spelled otherwise, else of the table. An empty table name
        stands for the database alone.
        """
        if not self._folds:
            return None
        schema = self._schemas.setdefault(folded(name.schema), name.schema)
        table = self._tables.setdefault(name.folded, name)
        if schema != name.schema:
            return schema
        return str(table) if table != name else None
