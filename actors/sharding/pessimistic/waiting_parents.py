"""Statements whose foreign keys need a change of another table that still waits in a lock.

A server refuses a foreign key to a column without a key, and a new type for a column with a foreign
key. If the shard changed the other table by a statement that the target has not executed yet, the
statement with the foreign key waits for it: a CREATE TABLE is read again, an ALTER TABLE is
executed again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping

from attrs import define, field

from actors.saved.lock_state import ShardStatement
from replicator.ddl.parser.statement import TableRole
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.pessimistic.group import Group
from replicator.sharding.pessimistic.lock import TargetLock

Needed = frozenset[tuple[int, int]]
"""The targets (numbers) of parents, each with the needed version."""


@define(eq=False)
class WaitingParents:
    """Knows which created tables wait for which versions of their parents' targets."""

    _registry: SchemaRegistry
    _locks: Mapping[int, TargetLock[TableName, ShardStatement]]
    _waiting: dict[str, set[Needed]] = field(factory=dict, init=False)
    """The versions that created tables wait for, by source."""
    refused: set[int] = field(factory=set, init=False)
    """The targets that have refused their items, which wait for changes of other targets."""

    def lacking(self, source: str, effect: Effect) -> Needed:
        """Return the parents' versions that the shard had at the statement and the targets lack."""
        own = self._registry.target(effect.target)
        return frozenset((n, v) for n, v in self._needed(source, effect) if n != own)

    def _needed(self, source: str, effect: Effect) -> Iterator[tuple[int, int]]:
        for parent in effect.statement.named(TableRole.REFERENCED):
            name = TableName(parent.schema, parent.table)
            number = self._registry.number(Member(source, name))
            target = None if number is None else self._registry.target_of(number)
            lock = None if target is None else self._locks.get(target)
            group = lock.groups.get(source) if lock is not None else None
            if target is None or lock is None or group is None or name not in group.members:
                continue
            version = group.members[name].version
            if version > lock.version:
                yield target, version

    async def hold(
        self,
        group: Group[TableName, ShardStatement],
        source: str,
        effect: Effect,
        is_missing: Callable[[Effect], Awaitable[bool]],
    ) -> bool:
        """Whether a created table must wait for an open lock of one of its foreign keys' parents.

        Tables of a source and target share their watermarks. So a table does not wait if another
        one creates its target, and if one waits, later created tables wait, too.

        Args:
            is_missing: returns whether the target does not exist yet.
        """
        if group.waiting and self._waiting.get(source):
            return True
        needed = self.lacking(source, effect)
        if not needed or group.members.keys() - group.waiting or not await is_missing(effect):
            return False
        self._waiting.setdefault(source, set()).add(needed)
        return True

    def may_go_on(self) -> list[str]:
        """Return the sources with created tables that no longer need to wait."""
        return [
            source
            for source, waiting in self._waiting.items()
            if any(all(self._locks[n].version >= v for n, v in needed) for needed in waiting)
        ]

    def restarted(self, source: str) -> None:
        """Record that a source reads its created tables again."""
        self._waiting.pop(source, None)

    def change(self, tables: Iterable[TableName]) -> bool:
        """Whether these targets have open locks whose items are not refused themselves."""
        numbers = {self._registry.target(name) for name in tables} - self.refused
        locks = (self._locks.get(number) for number in numbers)
        return any(lock is not None and lock.view() is not None for lock in locks)

    def shown(self, source: str, effect: Effect) -> str:
        """Return the reason why a created table waits, as text for people."""
        needed = self.lacking(source, effect)
        names = (f"{self._registry.target_name(n)} at version {v}" for n, v in sorted(needed))
        if not needed:
            return "another created table of this target waits for the parents of its foreign keys"
        return f"its foreign keys need {', '.join(names)}"
