"""What groups give the writer in the model of the join rule, and what no row tells: defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from replicator.schema.structure.structure import Table
from replicator.sharding.optimistic.agreement import PartKind
from replicator.sharding.optimistic.given_names import GivenName
from replicator.sharding.optimistic.history import EntryKind, HistoryEntry, TargetHistory
from replicator.watermark import Place
from tests.simulation.optimistic_estate import Event, Values, value_of
from tests.simulation.store import BrokenError


@dataclass(slots=True)
class Given:
    """A row as a group gave it to the writer, or a statement as a barrier."""

    event: Event
    at: Place
    version: int


def follow_members(history: TargetHistory[str], defaults: dict[str, str]) -> HistoryEntry[str]:
    """Give the target what all members have; returns the entry that says so."""
    parts = history.lagging
    for kind, name in parts:
        if kind is PartKind.DEFAULT:
            having = (s.taken for s in history.state.members.values() if s.taken is not None)
            found = [value_of(taken, name) for taken in having if taken.column(name) is not None]
            if not found:
                raise BrokenError(f"no member has {name}, which all have alike")
            defaults[name] = found[0]
    first = min(history.state.members)
    return HistoryEntry(EntryKind.AGREED, first, parts=tuple(sorted(parts)))


def check_defaults(defaults: Mapping[str, str], structure: Table) -> None:
    """When all members are equal, the target is like them, also in what no row tells."""
    for column in structure.columns:
        name, wanted = column.name, value_of(structure, column.name)
        if defaults.get(name, wanted) != wanted:
            there = defaults[name]
            raise BrokenError(f"the target's default of {name} is {there}, not {wanted}")


def move_values(given: GivenName, rows: Iterable[Values]) -> None:
    """Give the rows of a target the values of a column by its new name, as `moved_values` does."""
    assert given.fill is not None
    for values in rows:
        if values[given.new] == given.fill.sql != values[given.old]:
            values[given.new] = values[given.old]
