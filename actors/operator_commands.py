"""What the operator asks of a running task beside its life: forcing locks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from actors.control_protocol import Reply
from actors.generation import Generation
from actors.lock_messages import Unlock

UNLOCK_SECONDS = 20.0
"""Seconds in which the coordinator must have decided."""


async def unlock(generation: Generation | None, arguments: Mapping[str, Any]) -> Reply:
    """Force a lock of the running generation (None: there is none).

    ``arguments``: ``lock`` (its id), ``owner`` (a source, or empty), ``skip``. The reply comes
    when it is decided and saved, not yet executed.
    """
    lock, owner, skip = (arguments.get(name) for name in ("lock", "owner", "skip"))
    if not (isinstance(lock, str) and isinstance(owner, str) and isinstance(skip, bool)):
        return Reply(ok=False, error="unlocking takes a lock, an owner and whether to skip")
    if generation is None:
        return Reply(ok=False, error="the task does not run now: resume it, then unlock")
    if generation.coordinator is None:
        return Reply(ok=False, error="the task has no locks: its shard-mode is not pessimistic")
    answers: list[str] = []
    answered = anyio.Event()

    def answer(error: str) -> None:
        answers.append(error)
        answered.set()

    generation.coordinator.mailbox.tell(Unlock(lock, owner, skip, answer))
    with anyio.move_on_after(UNLOCK_SECONDS):
        await answered.wait()
    if not answers:
        return Reply(ok=False, error="no answer in time: `replicator status` tells what it does")
    return Reply(ok=not answers[0], error=answers[0])
