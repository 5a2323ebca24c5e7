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
    """What to do with rows on a target that were written under other rules of the task file."""

    STOP = "stop"
    KEEP = "keep"
    RECOPY = "recopy"


@dataclass(frozen=True, slots=True)
class Until:
    """The end of a run or a wait. Only one attribute is set.

    Attributes:
        now: the end is where the binlogs end when the sources are first followed.
        moment: the end is this time, by the clock of each source.
        places: the end of some sources, by name: a position, or a GTID set as text.
    """

    now: bool = False
    moment: datetime | None = None
    places: Mapping[str, BinlogPosition | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How `replicator run` runs its task.

    Attributes:
        exit_on_error: whether a fault ends the process instead of pausing the task.
        until: where the task stops by itself.
        standby: whether the process waits while another process runs the task.
        reopen: whether a task that a switch has finished runs again.
        environment: the variables that contain passwords; the process no longer has them.
    """

    exit_on_error: bool = False
    on_changed_rules: OnChangedRules = OnChangedRules.STOP
    until: Until | None = None
    standby: bool = False
    reopen: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


DEFAULTS = RunOptions()
"""The options of a run for which none are given."""


def complete_task(incomplete: str) -> list[str]:
    """Return the tasks that run here and this folder's task files, for completion."""
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
    """Return the name of the task that a `TaskName` means. Raises config.TaskFileError."""
    if is_file(task):
        # Imported here, because the models of the task file take a while to import.
        from config import load_task

        return load_task(Path(task)).name
    return task


def is_file(task: str) -> bool:
    """Return whether a `TaskName` means a task file."""
    path = Path(task)
    return path.suffix in (".yaml", ".yml") or path.is_file()
