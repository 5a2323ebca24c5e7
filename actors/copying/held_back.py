"""Shards of blocked targets when all others of their source are copied: they are deferred.

A part of them may be on the target by then, chunk by chunk. What they do meanwhile is held like
everything else of a blocked target; when it goes on, they are copied like other deferred ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from actors.copying.shard_plans import ShardPlans
from actors.copying.start import CopyMember
from actors.faults import FatalError
from replicator.downstream.meta.chunks import ChunkRecord, ReadSpan
from replicator.mysql.names import TableName
from replicator.schema.registry.copy_state import CopyState


async def held_back(
    members: Sequence[CopyMember],
    plans: ShardPlans,
    records: Sequence[ChunkRecord],
    spans: Sequence[ReadSpan],
) -> dict[TableName, CopyState]:
    """Those of the members that are not copied whole, and what they are to be noted as.

    ``records`` and ``spans`` are those of the source's chunks. Raises TransientError,
    DatabaseUnavailableError or the server's error.
    """
    found = {}
    for member in members:
        own = [record for record in records if record.member == member.name]
        whole = any(record.upper is None for record in own) and all(r.done for r in own)
        if whole and not await _was_misread(member, plans, spans):
            continue
        copied = any(record.done for record in own)
        found[member.name] = CopyState.DEFERRED if copied else CopyState.LEFT_OUT
    return found


async def _was_misread(member: CopyMember, plans: ShardPlans, spans: Sequence[ReadSpan]) -> bool:
    own = [span for span in spans if span.member == member.name]
    try:
        return bool(await plans.misread([member], own))
    except FatalError:
        # Its target is blocked already. The fault comes when it is to be copied once more.
        return True


def told_of(
    waiting: Mapping[str, Sequence[TableName]], held: Mapping[str, Sequence[TableName]]
) -> str:
    """For `status`: the shards that are copied later, by source; empty where there are none.

    ``waiting`` until their targets have their statements, ``held`` until these are resumed.
    """
    parts = (
        _listed("copied once more when their targets have their statements", waiting),
        _listed("copied when their targets, which are blocked, are resumed", held),
    )
    return "; ".join(part for part in parts if part)


def _listed(what: str, shards: Mapping[str, Sequence[TableName]]) -> str:
    names = [f"{source}: {name}" for source, found in sorted(shards.items()) for name in found]
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}: {', '.join(names[:_SHOWN])}{more}"


_SHOWN = 5
