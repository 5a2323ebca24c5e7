"""Which targets the operator may have copied again beside the others, and which not now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from actors.task.operator.blocked_parts import named_parts, shown
from replicator.mysql.names import TableName
from replicator.status import TaskStatus


def recopy_wanted(
    status: TaskStatus,
    task_mode: str,
    arguments: Mapping[str, Any],
    known: Collection[TableName],
) -> frozenset[TableName]:
    """The targets named in ``arguments``, of those that are ``known``.

    Raises ValueError where they can't be copied again as the task is now.
    """
    if task_mode != "all":
        raise ValueError(
            f"only a task with task-mode all copies targets, and this one has {task_mode}"
        )
    if status.state != "running":
        raise ValueError(f"the task is {status.state}: targets are copied again while it runs")
    if status.copy is None or status.copy.state != "finished":
        raise ValueError("a target can be copied again when the full copy has finished")
    targets = named_parts(arguments, known, ()).targets
    names = {shown(target) for target in targets}
    changing = {name for lock in status.locks for name in (lock.target, *lock.tied)}
    changing |= {t.target for t in status.targets if t.ddl}
    if names & changing:
        raise ValueError(
            f"a schema change of {', '.join(sorted(names & changing))} waits or is executed: let it"
            f" end first (`replicator show-ddl-locks {status.task}`)"
        )
    return targets
