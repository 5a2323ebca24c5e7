"""The command `service`, which prints a systemd unit for a task."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from actors.control.arguments import TaskFile
from replicator.terminal.consoles import tell


def service(
    task_file: TaskFile,
    user: Annotated[
        str, typer.Option(metavar="NAME", help="The user that the task runs as.")
    ] = "replicator",
    standby: Annotated[
        bool, typer.Option("--standby", help="Make the unit wait while another host runs the task.")
    ] = False,
) -> None:
    """Print a systemd unit that runs the task, hardened, with readiness and a watchdog.

    The unit contains the paths of this program and of the task file, and of JAVA_HOME and
    REPLICATOR_SECRET_KEY_FILE if they are set.
    """
    from actors.service.systemd_unit import systemd_unit
    from config import load_task

    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*\$?|[0-9]+", user):
        raise typer.BadParameter(f"--user {user}: name a user of this host")
    task = load_task(task_file)
    file = task_file.resolve()
    names = ("JAVA_HOME", "REPLICATOR_SECRET_KEY_FILE")
    environment = {name: os.environ[name] for name in names if os.environ.get(name)}
    # A running service has the folder of the task file as its working directory.
    environment = {name: os.path.abspath(value) for name, value in environment.items()}
    command = [*_program(), "run", str(file), *(["--standby"] if standby else [])]
    secrets = sorted(set(task.variables))
    try:
        unit = systemd_unit(task.name, command, str(file.parent), user, environment, secrets)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    tell(unit.rstrip("\n"))


def _program() -> list[str]:
    """Return the command of this program.

    It is the script next to the running Python, or ``python -m cli`` without such a script.
    """
    # The link is kept: a virtual environment's Python is a link, and finds its packages by its
    # path.
    script = Path(sys.executable).with_name("replicator")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "cli"]
