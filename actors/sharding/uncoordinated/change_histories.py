"""The histories of targets, from their saved entries; and members that join with their source."""

from __future__ import annotations

from pydantic import TypeAdapter

from actors.sharding.uncoordinated.change_entries import ChangeContext, joined_entry
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.decisions import DdlHistoryStore
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.inspection import read_table
from replicator.sharding.uncoordinated.change_history import ChangeHistory, Entry

_ENTRY = TypeAdapter(Entry[Member])
_AT_LAST = 1 << 62
"""Behind every place of a binlog."""


def dump_entry(entry: Entry[Member]) -> str:
    """An entry as JSON."""
    return _ENTRY.dump_json(entry, exclude_defaults=True).decode()


def load_entry(text: str) -> Entry[Member]:
    """The entry that `dump_entry` wrote."""
    return _ENTRY.validate_json(text)


class ChangeHistories:
    """Loads histories, and the context that an event or a member meets."""

    def __init__(self, registry: SchemaRegistry, meta: MetaStore, target: Connection) -> None:
        self._registry = registry
        self._store = DdlHistoryStore(meta)
        self._target = target

    async def of(self, target: TableName) -> ChangeHistory[Member]:
        """The history of a target; an empty one where its DDL is coordinated."""
        entries = await self._store.entries(target)
        return ChangeHistory((number, load_entry(text)) for number, text in entries)

    async def context(self, target: TableName, member: Member) -> ChangeContext:
        """What a member's statement meets on a target."""
        registry = self._registry
        held = (
            registry.held(number, _AT_LAST).certain
            for number in registry.members_of(registry.target(target))
            if registry.member(number) != member
        )
        others = [table for table in held if table is not None]
        return ChangeContext(await self.of(target), await read_table(self._target, target), others)

    async def join(self) -> None:
        """Note the members of sources that are new to the task: they have what they show.

        Before any of the sources is followed.
        """
        registry = self._registry
        for place, target in registry.targets():
            history = await self.of(target)
            for number in registry.members_of(place):
                member = registry.member(number)
                if not history.knows(member):
                    structure = registry.held(number, _AT_LAST).certain
                    entry = joined_entry(member, structure, await self.context(target, member))
                    await self._store.add(target, member, dump_entry(entry))
