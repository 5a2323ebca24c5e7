"""The shards that may have a key which another shard of their target has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from actors.copying.start import CopyMember
from actors.member_columns import columns_of
from actors.task_setup import SourceSetup
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.mysql.names import Member, TableName
from replicator.pipeline.copy.copy_plan import KeyConflict


async def key_conflicts_of(
    setups: Mapping[str, SourceSetup],
    meta: MetaStore,
    members: Mapping[str, Sequence[CopyMember]],
    *,
    everyone: bool,
) -> dict[TableName, list[KeyConflict]]:
    """By target, the shards that are copied; ``everyone``: all that the task has.

    Raises DatabaseUnavailableError.
    """
    found: dict[str, Iterable[tuple[TableName, TableName]]] = {
        source: [(member.name, member.target) for member in each]
        for source, each in members.items()
    }
    for source in setups if everyone else ():
        checkpoint = await meta.load(source)
        if checkpoint is not None:
            found[source] = [(record.member.name, record.target) for record in checkpoint.members]
    columns = columns_of(setups)
    key_conflicts: dict[TableName, list[KeyConflict]] = {}
    for source, shards in found.items():
        for name, target in shards:
            key_conflict = KeyConflict(source, name, columns(Member(source, name)))
            key_conflicts.setdefault(target, []).append(key_conflict)
    return key_conflicts
