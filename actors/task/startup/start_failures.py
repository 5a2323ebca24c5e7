"""What the operator can do about an error that ends `replicator run`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pymysql.err

from actors.control.protocol import ControlError
from actors.control.server import AlreadyRunningError
from actors.task.startup.prechecks import PrecheckError
from replicator.downstream.meta.lease import LeaseHeldError
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError
from replicator.pipeline.spark.java import JavaMissingError
from replicator.routing.routes import RouteError


def remedies_of(error: BaseException, task: str, task_file: Path) -> tuple[str, ...]:
    """The remedies of an error, which is not a fault: those bring their own."""
    name, file = shlex.quote(task), shlex.quote(str(task_file))
    match error:
        case PrecheckError():
            found = dict.fromkeys(way for result in error.failed for way in result.remedies)
            return (*found, f"`replicator check {file}` shows all that was looked at")
        case AlreadyRunningError():
            return (
                f"if that process is to run the task there is nothing to do: `replicator status"
                f" {name}` shows it",
                f"`replicator stop {name}`, then start the task again",
            )
        case LeaseHeldError():
            return (
                f"`replicator stop {name}` on host {error.state.holder.host}, then start the task"
                " again",
                "where that host can't be reached: end the process, or take its access to the"
                " target away; the start waits until its lease has run out",
            )
        case JavaMissingError():
            return ("install what is missing, or set JAVA_HOME, then start the task again",)
        case RouteError():
            return ("correct `routes:` in the task file, then start the task again",)
        case ControlError():
            return ("mend what the error names, then start the task again",)
        case DatabaseUnavailableError() | pymysql.err.OperationalError():
            return (f"`replicator check {file}` tells which server can't be used, and why",)
    return ("report it with this record of the log: nobody expected this error",)
