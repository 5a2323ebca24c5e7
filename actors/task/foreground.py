"""A task in the foreground of a terminal: its supervisor, and a bar while it copies."""

from __future__ import annotations

from pathlib import Path

import anyio
from rich.console import Console

from actors.task.supervisor import TaskSupervisor
from config.models import Task
from replicator.pipeline import session
from replicator.terminal.copy import copy_line
from replicator.terminal.copy_bar import CopyBar

BAR_SECONDS = 0.5
"""Between two looks at how far the copy is."""


class MissingProgramError(Exception):
    """A program that the task needs is not installed, or not found; says what to do."""


def run_in_foreground(task: Task, console: Console, *, exit_on_error: bool) -> int:
    """Run a task until it ends; its exit code.

    ``console`` shows the bar, and in the end what was copied, if it is a terminal: elsewhere there
    are only the lines of the log. Raises MissingProgramError, and what `TaskSupervisor.run` raises.
    """
    _check_java()
    supervisor = TaskSupervisor(task, exit_on_error=exit_on_error)
    code = anyio.run(_run, supervisor, console)
    copy = supervisor.status().copy
    shown = console.is_terminal and task.task_mode == "full"
    if shown and code == 0 and copy is not None and copy.state == "finished":
        console.print(f"copied {copy_line(copy)}", markup=False, highlight=False)
    return code


def _check_java() -> None:
    try:
        java_home = session.find_java_home()
    except session.JavaMissingError as error:
        raise MissingProgramError(str(error)) from error
    if not Path(java_home, "bin", "java").is_file():
        raise MissingProgramError(
            f"JAVA_HOME is {java_home}, where no bin/java is: set it to the folder of Java 17 or "
            "21, or unset it to have an installed one found"
        )


async def _run(supervisor: TaskSupervisor, console: Console) -> int:
    async with anyio.create_task_group() as tasks:
        if console.is_terminal:
            tasks.start_soon(_show, supervisor, CopyBar(console))
        code = await supervisor.run()
        tasks.cancel_scope.cancel()
    return code


async def _show(supervisor: TaskSupervisor, bar: CopyBar) -> None:
    try:
        while True:
            bar.show(supervisor.status().copy)
            await anyio.sleep(BAR_SECONDS)
    finally:
        bar.close()
