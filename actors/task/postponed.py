"""Shards whose copy was postponed: when, while the sources are followed, to look at them again."""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from actors.task.wiring import RunningTask

LOOK_SECONDS = 0.5
"""Between two looks at the saved positions."""


async def copy_due(running: RunningTask, look_at: Mapping[str, int]) -> None:
    """Wait until a source's saved position has come to the place by source; for ever without one.

    The saved one, since it stays before the items of locks that are open.
    """
    while look_at:
        await anyio.sleep(LOOK_SECONDS)
        for source, place in look_at.items():
            position = running.writer.tracker(source).resume.position
            if position is not None and position.binlog.key >= place:
                return
    await anyio.sleep_forever()
