"""The targets whose rows and statements a source's reader holds, while others are applied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import replace

from actors.errors.faults import TaskParts
from actors.reading.statement_reader import Step
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import TableRole
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.registry.registry import SchemaRegistry
from replicator.watermark import Place

Route = Callable[[TableName], TableName | None]
"""Returns the target of a table of the source; None if the table is not replicated."""

_MOVES = (EffectKind.MOVE_IN, EffectKind.MOVE_OUT)
_PATTERNS = (TableRole.LIKE, TableRole.REFERENCED)


class HeldTargets:
    """Drops the events that are read for held targets, without keeping them.

    The ``blocked`` targets are held from the first event on. If a statement ties other targets to a
    held target, they are held from this statement on, because their later events can't be applied
    before it. The saved position of the source stays before `places`, so that all held events are
    read again later.

    Args:
        drops_targets: whether DROP DATABASE may be executed, which drops all targets in a database.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        blocked: Set[TableName],
        *,
        drops_targets: bool,
    ) -> None:
        self._registry = registry
        self._blocked = blocked
        self._drops_targets = drops_targets
        self._tied: dict[TableName, TableName] = {}
        self._schemas: dict[str, TableName] = {}
        self._first: dict[TableName, Place] = {}
        self._rows: dict[TableName, int] = {}
        self.oldest_row = 0
        """Time in seconds, by the source's clock, when the first held row was written; 0 for no
        row."""

    @property
    def places(self) -> Collection[Place]:
        """The place of the first held event of each target."""
        return self._first.values()

    @property
    def targets(self) -> Collection[TableName]:
        """The targets that have held events."""
        return self._first.keys()

    def rows_held(self, target: TableName) -> int:
        """Return how many row events of a target have to be read again."""
        return self._rows.get(target, 0)

    def holds(self, target: TableName) -> bool:
        """Return whether the events of a target are held."""
        return target in self._blocked or self.waits_for(target) is not None

    def waits_for(self, target: TableName) -> TableName | None:
        """Return the held target to which a statement tied this one, unless this one is blocked."""
        if target in self._blocked:
            return None
        return self._tied.get(target) or self._schemas.get(target.schema)

    def holds_all(self, scope: TaskParts | None, statement: Statement) -> bool:
        """Return whether a statement with a fault of this scope concerns only held targets.

        If so, it is held.
        """
        if scope is None or not scope.targets or not all(map(self.holds, scope.targets)):
            return False
        for target in scope.targets:
            self._note(target, Place(statement.transaction, 0))
        return True

    def without_held_rows(
        self, rows: Mapping[int, RowEvents], timestamp: int = 0
    ) -> Mapping[int, RowEvents]:
        """Return the rows of a segment that are not held, by the number of their target.

        ``timestamp`` is when they were written, by the source's clock; 0 if unknown.
        """
        found = {}
        for number, events in rows.items():
            name = self._registry.target_name(number)
            if self.holds(name):
                self._note(name, events.first, len(events))
                self.oldest_row = self.oldest_row or timestamp
            else:
                found[number] = events
        return found

    def without_held_effects(self, step: Step, route: Route) -> Step:
        """Return a statement with only the effects that are not held."""
        if step.statement is None:
            return step
        self._tie([effect for effects in step.effects.values() for effect in effects], route)
        at = Place(step.statement.transaction, 0)
        kept = {}
        for number, effects in step.effects.items():
            name = self._registry.target_name(number)
            if self.holds(name):
                self._note(name, at)
            else:
                kept[number] = effects
        return replace(step, effects=kept)

    def _note(self, target: TableName, at: Place, rows: int = 0) -> None:
        self._first.setdefault(target, at)
        self._rows[target] = self._rows.get(target, 0) + rows

    def _tie(self, effects: list[Effect], route: Route) -> None:
        """Hold the targets that a statement ties to a held one, from the statement on."""
        # A table takes its rows with it to another target.
        moved = {effect.target for effect in effects if effect.kind in _MOVES}
        self._tie_to(self._held_of(moved), moved)
        for effect in effects:
            # A table that is copied or referred to does not yet have the state that it had at the
            # source.
            named = (t for role in _PATTERNS for t in effect.statement.named(role))
            routed = {route(TableName(table.schema, table.table)) for table in named}
            self._tie_to(self._held_of(target for target in routed if target), {effect.target})
            database = effect.target.schema
            if self._drops_targets and not effect.target.table and effect.discards_rows:
                known = {name for _, name in self._registry.targets()} | self._blocked
                inside = {name for name in known if name.schema == database}
                held = self._held_of(inside | {e.target for e in effects})
                if held is not None:
                    self._schemas.setdefault(database, held)

    def _held_of(self, targets: Iterable[TableName]) -> TableName | None:
        return min(filter(self.holds, targets), default=None)

    def tie(self, held: TableName, targets: Set[TableName]) -> None:
        """Also hold other targets that can't be applied without the events of a held one."""
        self._tie_to(held, targets)

    def _tie_to(self, held: TableName | None, targets: Set[TableName]) -> None:
        for target in targets:
            if held is not None and not self.holds(target):
                self._tied[target] = held
