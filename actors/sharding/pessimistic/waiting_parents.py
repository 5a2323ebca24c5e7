"""Foreign keys that need a change of their parents that still waits in a lock.

A server refuses a foreign key to a column without a key. Where the shard had made the key by a
statement that the target has not executed yet, the child waits for it: its CREATE TABLE is read
again, and the execution of its ALTER TABLE is repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field

from actors.lock_state import ShardStatement
from replicator.ddl.parser.statement import ParsedStatement, TableRole
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.registry.registry import SchemaRegistry
from replicator.sharding.pessimistic.lock import TargetLock

Needed = frozenset[tuple[int, int]]
"""Parents: their targets, each with the version that it needs."""


@define(eq=False)
class WaitingParents:
    """Knows which created tables wait for which versions of the targets of their parents."""

    _registry: SchemaRegistry
    _locks: Mapping[int, TargetLock[TableName, ShardStatement]]
    _waiting: dict[str, set[Needed]] = field(factory=dict, init=False)
    """By source, what its created tables wait for."""

    def lacking(self, source: str, effect: Effect) -> Needed:
        """Return what the targets of the parents in a statement lack, by what its source's shards
        had made before it."""
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

    def wait(self, source: str, needed: Needed) -> None:
        """Note that a created table waits, until its source has restarted."""
        self._waiting.setdefault(source, set()).add(needed)

    def may_go_on(self) -> list[str]:
        """Return the sources with created tables that need not wait any longer."""
        return [
            source
            for source, waiting in self._waiting.items()
            if any(all(self._locks[n].version >= v for n, v in needed) for needed in waiting)
        ]

    def restarted(self, source: str) -> None:
        """Note that a source reads its created tables again."""
        self._waiting.pop(source, None)

    def change(self, statement: ParsedStatement) -> bool:
        """Whether the targets that a statement names as parents have open locks."""
        names = (TableName(t.schema, t.table) for t in statement.named(TableRole.REFERENCED))
        locks = (self._locks.get(self._registry.target(name)) for name in names)
        return any(lock is not None and lock.view() is not None for lock in locks)

    def shown(self, needed: Needed) -> str:
        """Return what a table waits for, for people."""
        names = (f"{self._registry.target_name(n)} at version {v}" for n, v in sorted(needed))
        return f"its foreign keys need {', '.join(names)}"
