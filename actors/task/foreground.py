"""Runs a task in the foreground of a terminal, with a progress bar while it copies."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import anyio
from rich.console import Console

from actors.control.arguments import RunOptions
from actors.service.systemd_notify import ServiceManager
from actors.task.resources.spark import TaskSpark
from actors.task.supervisor import TaskSupervisor
from config.models import Task
from replicator.status import CopyStatus
from replicator.terminal.copy_progress import CopyBar, copy_line

BAR_SECONDS = 0.5
"""Seconds between two updates of the bar."""


def run_in_foreground(task: Task, spark: TaskSpark, console: Console, options: RunOptions) -> int:
    """Run a task until it ends; return its exit code.

    If ``console`` is a terminal, it shows the bar, and finally a summary of the copy; otherwise
    there is only the log. Raises the same errors as `TaskSupervisor.run`.
    """

    make = partial(TaskSupervisor, task, spark, options)
    code, copy = anyio.run(_run, make, spark, console)
    shown = console.is_terminal and task.task_mode == "full"
    if shown and code == 0 and copy is not None and copy.state == "finished":
        console.print(f"copied {copy_line(copy)}", markup=False, highlight=False)
    return code


async def _run(
    make: Callable[[], TaskSupervisor], spark: TaskSpark, console: Console
) -> tuple[int, CopyStatus | None]:
    supervisor = make()
    async with anyio.create_task_group() as tasks:
        if console.is_terminal:
            tasks.start_soon(_show, lambda: supervisor.status().copy, CopyBar(console))
        tasks.start_soon(ServiceManager(os.environ).keep, lambda: supervisor.status())
        code = await supervisor.run()
        while supervisor.stands_by_again:
            supervisor = make()
            spark.begin()
            code = await supervisor.run()
        tasks.cancel_scope.cancel()
    return code, supervisor.status().copy


async def _show(copy: Callable[[], CopyStatus | None], bar: CopyBar) -> None:
    # A closed terminal (SIGHUP) shows nothing, and must not keep the task from saving.
    with suppress(OSError):
        try:
            while True:
                bar.show(copy())
                await anyio.sleep(BAR_SECONDS)
        finally:
            bar.close()
