"""A task in the foreground of a terminal: its supervisor, and a bar while it copies."""

from __future__ import annotations

from contextlib import suppress

import anyio
from rich.console import Console

from actors.control.arguments import OnChangedRules
from actors.task.resources.spark import TaskSpark
from actors.task.supervisor import TaskSupervisor
from actors.task.until import Until
from config.models import Task
from replicator.terminal.copy_progress import CopyBar, copy_line

BAR_SECONDS = 0.5
"""Between two looks at how far the copy is."""


def run_in_foreground(
    task: Task,
    spark: TaskSpark,
    console: Console,
    *,
    exit_on_error: bool,
    on_changed_rules: OnChangedRules,
    until: Until | None = None,
) -> int:
    """Run a task until it ends; its exit code.

    ``console`` shows the bar, and in the end what was copied, if it is a terminal: elsewhere there
    are only the lines of the log. Raises what `TaskSupervisor.run` raises.
    """
    supervisor = TaskSupervisor(
        task,
        spark,
        exit_on_error=exit_on_error,
        on_changed_rules=on_changed_rules,
        until=until,
    )
    code = anyio.run(_run, supervisor, console)
    copy = supervisor.status().copy
    shown = console.is_terminal and task.task_mode == "full"
    if shown and code == 0 and copy is not None and copy.state == "finished":
        console.print(f"copied {copy_line(copy)}", markup=False, highlight=False)
    return code


async def _run(supervisor: TaskSupervisor, console: Console) -> int:
    async with anyio.create_task_group() as tasks:
        if console.is_terminal:
            tasks.start_soon(_show, supervisor, CopyBar(console))
        code = await supervisor.run()
        tasks.cancel_scope.cancel()
    return code


async def _show(supervisor: TaskSupervisor, bar: CopyBar) -> None:
    # A closed terminal (SIGHUP) shows nothing, and must not keep the task from saving.
    with suppress(OSError):
        try:
            while True:
                bar.show(supervisor.status().copy)
                await anyio.sleep(BAR_SECONDS)
        finally:
            bar.close()
