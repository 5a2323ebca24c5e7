"""Queries that look for the key of a refused row in the other shards of its target."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import anyio

from actors.setup.task_setup import SourceSetup, columns_of
from actors.writing.batch_planner import BatchPlanner
from replicator.pipeline.apply.batch import TargetOutcome
from replicator.pipeline.copy.key_conflicts import KeyHolders, QueriedShard, find_holders
from replicator.pipeline.plans.planning import target_column
from replicator.schema.registry.registry import SchemaRegistry


async def holders_of(
    setups: Mapping[str, SourceSetup],
    registry: SchemaRegistry,
    planner: BatchPlanner,
    failed: TargetOutcome,
) -> KeyHolders | None:
    """Return the other shards that have the key; None if the error is not about one row."""
    structure = planner.structure(failed.target)
    if failed.refused is None or structure is None:
        return None
    text, names, line = failed.refused
    known = [structure.column(name) for name in names]
    columns = [target_column(column) for column in known if column is not None]
    if len(columns) != len(names):
        return None
    rules = columns_of(setups)
    members = [registry.member(number) for number in registry.members_of(failed.target)]
    others = [
        QueriedShard(member.source, setups[member.source].address, member.name, rules(member))
        for member in sorted(members)
        if str(member) not in failed.members and member.source in setups
    ]
    look_up = partial(find_holders, columns, line, text, structure, others)
    return await anyio.to_thread.run_sync(look_up, abandon_on_cancel=True)
