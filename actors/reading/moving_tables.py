"""Tables that a reader skips because they have moved before their target was renamed.

Their rows and statements are read again when the target has its new name. Other tables of the
former target continue, like everything else of the source. When the binlog is read again, groups
skip the rows that the target had before it was renamed (`MovedShards.left`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import replace

from attrs import define, field

from actors.sharding.moved_shards import WAITING, MovedShards, WaitingShard
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import TableRole
from replicator.downstream.meta.moved_shards import MovedShard
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind, one_by_one
from replicator.schema.registry.registry import CopyState, SchemaRegistry

_MOVES = (EffectKind.MOVE_IN, EffectKind.MOVE_OUT)


@define(eq=False)
class MovingTables:
    """The waiting tables of a source, in one of its runs (``epoch``).

    Attributes:
        _holds: returns whether all events of a target are held.
        _target: returns the target of a table.
        _family: returns the tables that foreign keys with unlogged actions connect with a table.
    """

    _source: str
    _epoch: int
    _registry: SchemaRegistry
    _shards: MovedShards
    _holds: Callable[[TableName], bool]
    _target: Callable[[TableName], TableName | None]
    _family: Callable[[TableName], Set[TableName]]
    _waiting: Set[TableName] = field(factory=frozenset, init=False)

    def __attrs_post_init__(self) -> None:
        self._shards.restart(self._source)

    @property
    def any_waits(self) -> bool:
        """Whether any table waits."""
        return bool(self._waiting)

    def waits(self, name: TableName) -> bool:
        """Return whether a table is read only after its target has been renamed."""
        return name in self._waiting

    def answered(self, effects: tuple[Effect, ...], statement: Statement) -> tuple[Effect, ...]:
        """Return a statement's effects; nothing is executed for shards that move with their target.

        The shards that wait from this statement on are recorded. A shard whose rows the operator
        has moved also waits, until a record shows which rows its new target has: rows of other
        shards that were applied while it waited have moved the watermarks past its own rows.
        """
        place = statement.transaction
        moving = [effect for effect in effects if self._moves(effect, place)]
        numbers = {
            _origin(effect): self._shards.number(Member(self._source, _origin(effect)), place)
            for effect in moving
        }
        coming = [effect for effect in moving if not numbers[_origin(effect)]]
        joins = any(effect.skipped for effect in coming)
        if coming and (
            any(effect.clears for effect in effects)
            or not (joins or all(map(self._may_come, coming)))
        ):
            numbers = {name: number for name, number in numbers.items() if number}
            coming = []
        for effect in coming:
            assert effect.other is not None
            member = Member(self._source, _origin(effect))
            move = MovedShard(member, place, effect.other, effect.target)
            self._shards.wait(WaitingShard(move, effect.table, self._epoch, statement, joins))
        for effect in effects:
            if effect.kind is EffectKind.MOVE_IN and effect not in coming:
                self._shards.settle(Member(self._source, _origin(effect)), place)
        return tuple(
            replace(effect, instead=())
            if effect.kind in _MOVES and _origin(effect) in numbers
            else effect
            for effect in effects
        )

    def _moves(self, effect: Effect, place: int) -> bool:
        """Return whether a shard moves between targets, and its rows do not wait yet."""
        return (
            effect.kind is EffectKind.MOVE_IN
            and effect.other is not None
            and (effect.instead is None or effect.skipped)
            and not effect.filtered
            and not self._follows(effect, place)
        )

    def _may_come(self, effect: Effect) -> bool:
        """Return whether the former target can be renamed with the shard."""
        names = {_origin(effect), *self._tied(effect)}
        targets = {effect.other, effect.target, *map(self._target, names)} - {None}
        if any(target is not None and self._holds(target) for target in targets):
            return False
        numbers = (self._registry.number(Member(self._source, name)) for name in names)
        return all(
            number is None or self._registry.copying(number, 1 << 62) is CopyState.COPIED
            for number in numbers
        )

    def _tied(self, effect: Effect) -> Set[TableName]:
        """Return the tables that are not read while a shard waits.

        Foreign keys change their rows when the shard's rows change, or the reverse, and all of
        these changes must keep their order.
        """
        return self._family(_origin(effect)) | self._family(effect.table)

    def kept(self, effects: tuple[Effect, ...], statement: Statement) -> tuple[Effect, ...]:
        """Return the effects that happen now, of the effects of one moment of a statement."""
        place = statement.transaction
        found: list[Effect] = []
        begun: dict[TableName, int] = {}
        for effect in effects:
            origin = _origin(effect)
            moves = effect.kind in _MOVES and effect.skipped and self._is_waiting(origin, place)
            if moves and effect.kind is EffectKind.MOVE_IN:
                # The former name also waits, unless another table gets it.
                begun = {origin: WAITING, **begun, effect.table: WAITING}
                begun |= self._wait_along(effect, self._tied(effect) - begun.keys(), place)
                continue
            if not moves and self._follows(effect, place):
                begun |= {n: WAITING for n in (effect.table, effect.renamed_to) if n}
                leaves = effect.kind is EffectKind.MOVE_OUT
                self._shards.touch(self._source, effect.target, place, leaves=leaves)
                if effect.kind is EffectKind.MOVE_IN and effect.other is not None:
                    member = Member(self._source, origin)
                    self._shards.follow(MovedShard(member, place, effect.other, effect.target))
                continue
            if effect.kind is EffectKind.RENAME and effect.renamed_to is not None:
                # A table of the former target may take the name of a waiting one.
                begun[effect.renamed_to] = self._shards.life(Member(self._source, origin), place)
            if effect.kind is EffectKind.CREATE:
                self._shards.note_joined(Member(self._source, effect.table), place)
            found.append(effect)
        for name, life in begun.items():
            if (life == WAITING) is not self.waits(name):
                self._shards.begin(Member(self._source, name), place, life)
                self._waiting = self._waiting - {name} | ({name} if life == WAITING else set())
        return tuple(found)

    def _wait_along(
        self, moving: Effect, names: Set[TableName], place: int
    ) -> Mapping[TableName, int]:
        """Make other tables wait with a shard from a place on; they keep their names."""
        names = {name for name in names if not self._is_waiting(name, place)}
        for name in names - self._waiting:
            if (target := self._target(name)) is not None:
                self._shards.touch(self._source, target, place, leaves=False)
                if moving.other is not None:
                    self._shards.tie(self._source, target, moving.other)
        return dict.fromkeys(names, WAITING)

    def _is_waiting(self, origin: TableName, place: int) -> bool:
        return any(
            shard.move.member == Member(self._source, origin) and shard.move.place == place
            for shard in (*self._shards.waiting, *self._shards.joining)
        )

    def _follows(self, effect: Effect, place: int) -> bool:
        """Return whether an effect concerns a waiting table, or depends on one.

        A move to the name of a waiting table depends on it, because moves keep the statements'
        order.
        """
        if effect.kind is EffectKind.CREATE and self._takes_name(effect, place):
            return True
        referenced = effect.statement.named(TableRole.REFERENCED)
        names = {TableName(table.schema, table.table) for table in referenced}
        names |= {_origin(effect), *effect.origins}
        if effect.kind in _MOVES:
            names |= {name for name in (effect.table, effect.renamed_to) if name is not None}
        return bool(names & self._waiting)

    def _takes_name(self, effect: Effect, place: int) -> bool:
        """Return whether a created table would make a target whose name another target will get.

        If there are shards with this target, or were before everything was read again, the table
        may be a further shard, and leave the target with them. A table that joined its target
        before everything was read again was such a shard, and others may have left since.
        """
        target, member = effect.target, Member(self._source, effect.table)
        return (
            self._shards.is_awaited(target)
            and not self._shards.was_left(target)
            and not self._shards.has_joined(member, place)
            and self._shards.end(target, member, place) is None
            and not self._registry.members_of(self._registry.target(target))
        )


def _origin(effect: Effect) -> TableName:
    """Return the name of an effect's table before the statement."""
    if effect.kind is EffectKind.MOVE_IN:
        assert effect.renamed_to is not None
        return effect.renamed_to
    return effect.table


Steps = list[tuple[Statement, tuple[Effect, ...]]]
"""Statements with their effects."""


def at_moments(moving: MovingTables | None, found: Steps, statement: Statement) -> Steps:
    """Return the effects of a statement, or of its replacements, moment by moment.

    Effects that wait until a target has its new name are excluded.
    """
    moments = [
        (processed, effects)
        for processed, every in found
        for effects in one_by_one(moving.answered(every, statement) if moving else every)
    ]
    if moving is None:
        return moments
    return [(processed, moving.kept(effects, statement)) for processed, effects in moments]
