"""The structure of each member at each position of its binlog, and the numbers of all members."""

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
    """The origin of a structure. Every origin but a guess makes it a known structure."""

    READ = "read"
    """Read from the server, and no statement in the binlog in between may have changed it."""
    LEARNED = "learned"
    """Learned from a statement of the binlog that creates the table or alters a known structure."""
    DECLARED = "told"
    """Declared by the operator."""
    GUESSED = "guessed"
    """Any other origin."""


@dataclass(frozen=True, slots=True)
class KnownStructure:
    """The structure of a member at a position of its binlog.

    Attributes:
        structure: None if the table is gone or there is not even a guess.
        doubt: why the structure is only a guess.
    """

    structure: Table | None
    provenance: Provenance
    doubt: str = ""

    @property
    def known(self) -> bool:
        """Whether rows may be read with it, whatever their events contain."""
        return self.provenance is not Provenance.GUESSED

    @property
    def certain(self) -> Table | None:
        """The structure if it is known, else None."""
        return self.structure if self.known else None


GONE = KnownStructure(None, Provenance.LEARNED)
"""The structure of a table that was dropped or renamed."""

UNSEEN = KnownStructure(
    None,
    Provenance.GUESSED,
    "it was not there when the task first looked at its source, and no statement that creates it"
    " was read since",
)
"""The structure of a table that is known only from its rows."""


def guess(structure: Table | None, doubt: str) -> KnownStructure:
    """Return an uncertain structure, or none; `doubt` gives the reason."""
    return KnownStructure(structure, Provenance.GUESSED, doubt)


_FIRST_HAND = frozenset({Provenance.READ, Provenance.DECLARED})


class CopyState(IntEnum):
    """How the full copy of a member ended.

    A member counts as copied if there was no full copy or if it was created later.
    """

    COPIED = 0
    """The member's rows are on the target or follow in the binlog."""
    DEFERRED = 1
    """Some rows of the member are still to be copied; its events are applied in the meantime."""
    LEFT_OUT = 2
    """None of the member's rows are copied, and its events are skipped until they are.

    Otherwise a target without a key that identifies rows would have the rows twice.
    """
    AGAIN = 3
    """The member's rows are being copied again, from the saved position on."""
    RECOPY = 4
    """The target is to be emptied and all its shards copied again; then `LEFT_OUT`."""


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member in a checkpoint: its version and structure at the saved position.

    Attributes:
        since: key of the event group that gave it this structure; 0 if it was known from the start.
        held: the structure and its provenance.
        copying: whether its rows are copied.
    """

    member: Member
    target: TableName
    version: int
    since: int
    held: KnownStructure
    copying: CopyState = CopyState.COPIED


@dataclass(frozen=True, slots=True)
class _Inherited:
    """A reference to the state of another member at a position."""

    member: int
    at: int


class _Structures:
    """The structures of a member by position (`at`), and these positions in order (`places`)."""

    def __init__(self) -> None:
        self.at: dict[int, KnownStructure | _Inherited] = {}
        self.places: list[int] = []

    def note(self, place: int, held: KnownStructure | _Inherited) -> None:
        new = place not in self.at
        self.at[place] = held
        if new:
            insort(self.places, place)


class SchemaRegistry:
    """The members, their targets, and their structures at each position of the binlog.

    Positions are keys (`replicator.binlog.positions.position.BinlogPosition.key`). Targets and
    members are numbered from 0, because row events carry numbers rather than names; no number is
    reused while the process runs. The readers' threads add members that they find; everything else
    runs on the event loop.

    `folds_targets`: whether the target's server ignores the case of table names.
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
        """Number of recorded structures and renamed parents."""
        self.owners = RowOwners()
        """Unsaved changes of the shards that targets may have rows of."""
        self.retired: dict[Member, tuple[TableName, int]] = {}
        """The retired shards with their targets and the positions from which no row is applied."""

    def keeps_retired(self, target: TableName) -> bool:
        """Return whether a target has rows of retired shards, which no statement may remove."""
        return any(target in (of, TableName(of.schema, "")) for of, _ in self.retired.values())

    def target(self, name: TableName) -> int:
        """Return the number of a target; a new name gets a new number."""
        with self._lock:
            return self._target(name)

    def _target(self, name: TableName) -> int:
        number = self._target_numbers.get(name)
        if number is None:
            number = self._target_numbers[name] = len(self._targets)
            self._targets.append(name)
        return number

    def clash(self, name: TableName) -> str | None:
        """Add a target's name and return an equal earlier spelling, as `TargetNames.clash`."""
        return self._names.clash(name)

    def target_name(self, number: int) -> TableName:
        """Return the name of the target with this number."""
        return self._targets[number]

    def targets(self) -> tuple[tuple[int, TableName], ...]:
        """Return all targets with their numbers."""
        return tuple(enumerate(self._targets))

    @property
    def targets_in_use(self) -> frozenset[TableName]:
        """The tables that have members."""
        return frozenset(
            name for number, name in self.targets() if name.table and self.members_of(number)
        )

    def join(self, member: Member, target: TableName) -> int:
        """Add a member, or add it again, and return its number."""
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
        """Remove a member whose table is gone; its number and past structures remain."""
        with self._lock:
            self._withdraw(member)

    def end(self, member: int) -> None:
        """Record that a member's table is gone and that its target keeps the rows."""
        self.owners.ended(self._members[member], self._targets[self._target_of[member]])

    def _withdraw(self, member: int) -> None:
        if member in self._present:
            self._present.remove(member)
            self._present_of[self._target_of[member]].remove(member)
            self._sorted.pop(self._target_of[member], None)

    def members_of(self, target: int) -> tuple[int, ...]:
        """Return the members of all sources that are routed to a target now."""
        with self._lock:
            # Cached because it is called for each batch, and there may be thousands of members.
            found = self._sorted.get(target)
            if found is None:
                found = self._sorted[target] = tuple(sorted(self._present_of.get(target, ())))
            return found

    def sources(self) -> frozenset[str]:
        """Return the sources that have members now."""
        return frozenset(self._members[m].source for m in tuple(self._present))

    def members_in(self, source: str) -> tuple[int, ...]:
        """Return the members that a source has now."""
        return tuple(sorted(m for m in tuple(self._present) if self._members[m].source == source))

    def known_in(self, source: str) -> tuple[int, ...]:
        """Return the members that a source has or had."""
        return tuple(n for n, m in enumerate(tuple(self._members)) if m.source == source)

    def member(self, number: int) -> Member:
        """Return the member with this number."""
        return self._members[number]

    def number(self, member: Member) -> int | None:
        """Return the number of a member, or None if it never joined."""
        return self._member_numbers.get(member)

    def target_of(self, member: int) -> int:
        """Return the number of the target that a member is routed to."""
        return self._target_of[member]

    def copied(self, member: int, until: int) -> None:
        """Record that the full copy has written a member's rows as they were at this position."""
        self._copied[member] = until

    def copied_before(self, member: int, at: int) -> bool:
        """Return whether a member's rows were copied as they were at this position or earlier."""
        return self._copied.get(member, 0) <= at

    def copied_places(self, source: str, target: int) -> dict[int, int]:
        """Return the positions up to which the copied rows of a group's members are current.

        Includes members that have left since, because their rows may be read again.
        """
        return {
            member: place
            for member, place in self._copied.items()
            if self._members[member].source == source and self._target_of[member] == target
        }

    def defer(self, member: int, state: CopyState) -> None:
        """Record that rows that a member had at the start are still to be copied."""
        self._copying[member] = {0: state}

    def copying(self, member: int, at: int) -> CopyState:
        """Return whether a member's rows are copied, as of a position of its source's binlog.

        A renamed table keeps its copy state.
        """
        noted = self._copying.get(member, {})
        since = max((since for since in noted if since <= at), default=None)
        found = CopyState.COPIED if since is None else noted[since]
        return self.copying(found.member, found.at) if isinstance(found, _Inherited) else found

    def deferred_in(self, source: str) -> set[TableName]:
        """Return the targets of a source's members from the start that are still to be copied."""
        return {
            self._targets[self._target_of[member]]
            for member, noted in self._copying.items()
            if self._members[member].source == source
            and noted.get(0, CopyState.COPIED) is not CopyState.COPIED
        }

    @property
    def leaves_out(self) -> bool:
        """Whether events of some member may have to be left out until it is copied."""
        return any(
            state is CopyState.LEFT_OUT
            for noted in self._copying.values()
            for state in noted.values()
        )

    def learn(self, member: int, since: int, held: KnownStructure) -> None:
        """Record the structure that a member has after the event group at ``since``.

        A learned structure does not replace one that was read or declared for the same position.
        """
        if held == GONE and member in self._copying:
            self._copying[member][since] = CopyState.COPIED
        if held.provenance in _FIRST_HAND or not self._is_first_hand(member, since):
            self._structures[member].note(since, held)
            self.changes += 1

    def declare(self, member: Member, since: int, structure: Table) -> None:
        """Record the structure that the operator declares for a table from a position on.

        The table may become a member later.
        """
        held = KnownStructure(structure, Provenance.DECLARED)
        self._declared.setdefault(member, {})[since] = held
        number = self.number(member)
        if number is not None:
            self.learn(number, since, held)

    def is_declared(self, member: Member) -> bool:
        """Return whether the operator has declared a structure of a table for any position."""
        return member in self._declared

    def inherit(self, member: int, since: int, origin: int) -> None:
        """Record that from ``since`` on, a member has the structure that ``origin`` had before.

        It also inherits the copy state. The structure itself may be learned later, because
        statements are read before they are executed.
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
        """Return a member's structure at a position of its source's binlog, with its provenance.

        This is the newest structure recorded up to ``at``. So if the binlog is read again from an
        earlier position, the same structures are found.
        """
        since = self.since(member, at)
        found = UNSEEN if since is None else self._structures[member].at[since]
        if isinstance(found, _Inherited):
            # The statement may also rename its parents.
            since, found = found.at, self.held(found.member, found.at)
        source = self._members[member].source
        if since is None or found.structure is None or source not in self._parents:
            return found
        return self._with_parents(found, source, since, at)

    def rename_parent(self, source: str, at: int, change: ParentChange) -> None:
        """Record new names of a table or its columns: its server changes foreign keys to it."""
        self._parents.setdefault(source, {}).setdefault(at, {})[change.parent] = change
        self.changes += 1

    def _with_parents(
        self, held: KnownStructure, source: str, since: int, at: int
    ) -> KnownStructure:
        structure = held.structure
        assert structure is not None
        for changed_at, changes in sorted(self._parents[source].items()):
            if since < changed_at <= at and structure.definition.foreign_keys:
                structure = with_parents_changed(structure, changes)
        return held if structure is held.structure else replace(held, structure=structure)

    def record(self, member: int, version: int, at: int) -> MemberRecord:
        """Return the record of a member with this version for a checkpoint at `at`."""
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
        """Return the positions at which a member's structure was noted, in order."""
        return tuple(self._structures[member].places)

    def since(self, member: int, at: int) -> int | None:
        """Return the position from which a member has its structure at `at`, or None if unknown."""
        places = self._structures[member].places
        earlier = bisect_right(places, at)
        return places[earlier - 1] if earlier else None


def dump_structure(table: Table | None) -> str:
    """Return a structure as JSON text, for the meta tables."""
    # `asdict` would copy all values, and there are thousands of members.
    values = None if table is None else _values(table)
    return json.dumps(values, default=_values, ensure_ascii=False)


def _values(part: Table | Column | UniqueKey) -> dict[str, object]:
    return {name: getattr(part, name) for name in part.__dataclass_fields__}


def load_structure(text: str) -> Table | None:
    """Return the structure that `dump_structure` wrote, or raise KeyError or ValueError."""
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
    """The names of the known targets.

    The task treats two spellings as two targets, each with its own version, watermarks and lock. If
    the server ignores case, their rows and schema changes would be in the same table.

    ``folds``: as in `replicator.mysql.server.identity`.
    """

    def __init__(self, *, folds: bool) -> None:
        self._folds = folds
        self._tables: dict[TableName, TableName] = {}
        self._schemas: dict[str, str] = {}

    def clash(self, name: TableName) -> str | None:
        """Add a name and return an earlier spelling of it that the server considers equal, or None.

        Returns the database's spelling if that differs, or else the table's. An empty table name
        means the database alone.
        """
        if not self._folds:
            return None
        schema = self._schemas.setdefault(folded(name.schema), name.schema)
        table = self._tables.setdefault(name.folded, name)
        if schema != name.schema:
            return schema
        return str(table) if table != name else None
