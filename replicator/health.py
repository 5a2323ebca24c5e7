"""What a task is in, in a word or two, and whether it needs its operator."""

from __future__ import annotations

from replicator.status import TaskStatus


def condition(status: TaskStatus) -> str:
    """``running``, ``blocked (2 parts)``, ``waiting for a lock``, ``paused``, ``killed`` …"""
    if status.state != "running":
        return status.state
    if status.blocked:
        parts = len(status.blocked)
        return f"blocked ({parts} {'part' if parts == 1 else 'parts'})"
    if any(lock.state == "conflict" for lock in status.locks):
        return "lock in conflict"
    return "waiting for a lock" if status.locks else "running"


def needs_operator(status: TaskStatus) -> bool:
    """Whether the task, or a part of it, does not go on before the operator does something.

    A lock that waits for shards, a server that is away and a target that waits for its copy need
    nobody; a task that was stopped is as its operator wants it.
    """
    return (
        status.state in ("killed", "paused", "pausing")
        or any(part.error is not None or not part.waits_for for part in status.blocked)
        or any(lock.state == "conflict" for lock in status.locks)
    )
