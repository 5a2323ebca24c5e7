"""The Python API: observe a merge task, wait for it, and compare its targets, from a program.

    from replicator.api import Task

    task = Task.open("orders.yaml")
    if task.wait(timeout=60).reached:
        print(task.compare().equal)

`docs/reference/python.md` describes it.
"""

from replicator.api.open_task import OpenTask as Task

__all__ = ["Task"]
