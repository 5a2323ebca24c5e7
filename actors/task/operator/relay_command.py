"""Purges the relay logs of a running task, as `replicator relay --purge` does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.control.protocol import Reply
from actors.task.wiring.wiring import RunningTask


async def purge_relays(running: RunningTask | None, arguments: Mapping[str, Any]) -> Reply:
    """Delete all unneeded relay files; the reply has ``purged``, the files by source.

    ``running`` is None if the task does not follow its sources. ``arguments`` has ``sources``,
    which is empty for all sources.
    """
    wanted = arguments.get("sources")
    if not isinstance(wanted, list):
        return Reply(ok=False, error="purging takes a list of sources")
    if running is None:
        return Reply(ok=False, error="the task does not follow its sources now: purge later")
    relays = running.watch.relays
    if lacking := [source for source in wanted if source not in relays]:
        return Reply(ok=False, error=f"no relay log that runs: {', '.join(map(str, lacking))}")
    purged = {}
    for source in wanted or sorted(relays):
        need = running.watch.need(source)
        try:
            gone = [] if need is None else await relays[source].purge(need.positions, every=True)
        except OSError as error:
            return Reply(ok=False, error=f"relay log of {source}: {error}")
        purged[source] = gone
    return Reply(ok=True, body={"purged": purged})
