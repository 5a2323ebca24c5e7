"""Retiring shards of a task whose actors run inside the test."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import anyio

from actors.task.generation import Generation
from actors.task.operator.retire_command import RetireCommand
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.binlog_ends import end_of
from tests.support.tasks.running import LOOK_SECONDS, PATIENCE


async def retired(
    generation: Generation,
    servers: Mapping[str, DatabaseServer],
    *shards: Sequence[str],
    sources: Collection[str] = (),
) -> tuple[str, ...]:
    """Ask until it is done, or only the operator can help; the reasons then."""
    ends = {name: str(end_of(server)) for name, server in servers.items()}
    named = {*sources, *(source for source, *_ in shards)}
    arguments: dict[str, Any] = {
        "sources": list(sources),
        "shards": [list(shard) for shard in shards],
        "ends": {name: end for name, end in ends.items() if name in named},
    }
    with anyio.fail_after(PATIENCE):
        while True:
            reply = RetireCommand(generation.running, generation.counts).reply(arguments)
            if not reply.ok:
                return (reply.error,)
            if reply.body["done"]:
                return ()
            if reply.body["final"]:
                return tuple(map(str, reply.body["reasons"]))
            await anyio.sleep(LOOK_SECONDS)
