"""Arguments and options that several commands have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from datetime import datetime

    from replicator.binlog.positions.position import BinlogPosition


class OnChangedRules(StrEnum):
    """What becomes of rows on a target that were written by other rules of the task file."""

    STOP = "stop"
    KEEP = "keep"
    RECOPY = "recopy"


@dataclass(frozen=True, slots=True)
class Until:
    """``now``: the ends of the binlogs as they are when the sources are first followed; else
    ``moment``, by the clocks of the sources; else ``places`` of some sources, by their names: a
    position, or a GTID set as text."""

    now: bool = False
    moment: datetime | None = None
    places: Mapping[str, BinlogPosition | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How `replicator run` is to run its task.

    ``exit_on_error``: a fault ends the process instead of pausing the task. ``until``: where the
    task stops by itself. ``standby``: it waits while another process runs the task. ``reopen``: a
    task that a switch has finished runs again. ``environment``: the variables with passwords, which
    the process has no longer.
    """

    exit_on_error: bool = False
    on_changed_rules: OnChangedRules = OnChangedRules.STOP
    until: Until | None = None
    standby: bool = False
    reopen: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


DEFAULTS = RunOptions()
"""Those of a run without options."""


def complete_task(incomplete: str) -> list[str]:
    """For the shell: the tasks that run here, and the task files of this folder."""
    from urllib.parse import unquote

    from actors.control.protocol import ControlError, runtime_dir

    try:
        running = [unquote(path.stem) for path in sorted(runtime_dir().glob("*.sock"))]
    except ControlError:
        running = []
    files = sorted(str(path) for path in Path().glob("*.y*ml"))
    return [name for name in (*running, *files) if name.startswith(incomplete)]


TaskFile = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file.")]
TaskName = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="The name of a running task, or its task file.",
        autocompletion=complete_task,
    ),
]
OptionalTaskName = Annotated[
    str | None,
    typer.Argument(
        metavar="TASK",
        help="The name of a task, or its task file.",
        autocompletion=complete_task,
    ),
]
Everything = Annotated[
    bool, typer.Option("--all", help="Show everything, however many targets and shards there are.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


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
