"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TaskFile = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file.")]
TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="The name of a running task, or its task file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def name_of(task: str) -> str:
    """The name of the task that a `TaskName` means. Raises config.TaskFileError."""
    path = Path(task)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        # Here, not above: the models of the task file take a while to import.
        from config import load_task

        return load_task(path).name
    return task
