"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskFile = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file.")]
TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="The name of a running task, or its task file.")
]
OptionalTaskName = Annotated[
    str | None, typer.Argument(metavar="[TASK]", help="The name of a task, or its task file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def name_of(task: str) -> str:
    """The name of the task that a `TaskName` means. Raises config.TaskFileError."""
    if is_file(task):
        # Here, not above: the models of the task file take a while to import.
        from config import load_task

        return load_task(Path(task)).name
    return task


def is_file(task: str) -> bool:
    """Whether a `TaskName` means a task file."""
    path = Path(task)
    return path.suffix in (".yaml", ".yml") or path.is_file()
