"""The exit code with which a command ends."""

from __future__ import annotations

FAILED, WRONG_USAGE, NOT_RUNNING, UNHEALTHY = 1, 2, 3, 4
INCOMPLETE = 2
"""The exit code of a comparison that could not see everything; the same as that of ``diff``."""

_USAGE = "2 the command or the task file is wrong"
RUN_CODES = (
    f"Exit codes: 0 stopped in order; 1 a check failed, or a fault ended the task; {_USAGE}, or a"
    " switch has finished the task."
)
CHECK_CODES = (
    f"Exit codes: 0 no check failed; 1 a check failed, or a server does not answer; {_USAGE}."
)
ASKING_CODES = (
    f"Exit codes: 0 done; 1 the task refused, or does not answer; {_USAGE}; 3 the task does not run"
    " here."
)
STATUS_CODES = (
    f"{ASKING_CODES[:-1]}; 4 with --exit-code: something needs the operator (a fault, a part that"
    " is blocked or paused, a lock in conflict, a task that was killed)."
)
WAIT_CODES = (
    "Exit codes: 0 everything is applied; 1 it is not: the time is over, somebody has to do"
    f" something first, or the task does not answer; {_USAGE}; 3 the task does not run here."
)
SWITCH_CODES = (
    "Exit codes: 0 the task is finished, or with --dry-run can be; 1 it is not, and everything"
    f" continues as before; {_USAGE}; 3 the task does not run here."
)
REMOVE_CODES = (
    "Exit codes: 0 the task is removed, or nothing was saved; 1 it runs, or the target refuses;"
    f" {_USAGE}."
)
REPORT_CODES = (
    "Exit codes: 0 done; 1 the log has no record of the task, or the page can't be written; 2 the"
    " command is wrong, or the log can't be read."
)
CHANGES_CODES = (
    "Exit codes: 0 done; 1 changes are of no certain shard, or the task was not switched; 2 the"
    " command or the task file is wrong; 3 a server can't be reached."
)
SERVICE_CODES = f"Exit codes: 0 done; {_USAGE}."
FILES_CODES = (
    f"Exit codes: 0 done; 1 a file exists already, or the folder can't be written to; {_USAGE}."
)
ENCRYPT_CODES = "Exit codes: 0 done; 2 the key file or the command is wrong."
COMPARE_CODES = (
    "Exit codes: 0 all targets are equal, or were made so; 1 rows or structures differ; 2 something"
    " could not be compared, or the command or the task file is wrong."
)
DEMO_CODES = "Exit codes: 0 source and target are equal; 1 they are not, or something is missing."


_CODES = {
    "actors.control.client.NotRunningError": NOT_RUNNING,
    "actors.task.resources.finished_task.TaskFinishedError": WRONG_USAGE,
    "actors.switching.freeze.FreezeError": FAILED,
    "actors.switching.switching.SwitchError": FAILED,
    "config.problems.TaskFileError": WRONG_USAGE,
    "replicator.logs.LogFileError": WRONG_USAGE,
    "replicator.routing.routes.RouteError": WRONG_USAGE,
    "replicator.routing.expression.types.ExpressionError": WRONG_USAGE,
    "actors.control.protocol.ControlError": FAILED,
    "actors.control.server.AlreadyRunningError": FAILED,
    "actors.control.metrics_server.MetricsAddressError": FAILED,
    "replicator.downstream.meta.lease.LeaseHeldError": FAILED,
    "replicator.status.StatusFormatError": FAILED,
    "actors.errors.faults.FatalError": FAILED,
    "actors.errors.faults.ApplicationLostError": INCOMPLETE,
    "actors.errors.faults.SparkFailedError": INCOMPLETE,
    "replicator.mysql.errors.DatabaseUnavailableError": FAILED,
    "pymysql.err.OperationalError": FAILED,
}
"""By name, because importing all these classes takes longer than most commands.

A class whose error was raised is imported anyway.
"""


def exit_code(error: BaseException) -> int | None:
    """Return the code for an error that the user can act on; None for an error of the program."""
    for kind in type(error).__mro__:
        code = _CODES.get(f"{kind.__module__}.{kind.__qualname__}")
        if code is not None:
            return code
    return None


def innermost(error: BaseException) -> BaseException:
    """Return the error itself: a task group wraps the errors of its tasks, even a single one."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
