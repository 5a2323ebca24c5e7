"""The Python API: a program observes a merge task, waits for it, and compares its targets.

    from replicator.api import Task

    task = Task.open("orders.yaml")
    if task.wait(timeout=60).reached:
        print(task.compare().equal)

`docs/reference/python.md` describes it.
"""

from replicator.api.open_task import OpenTask as Task

__all__ = ["Task"]
