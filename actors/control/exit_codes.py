"""Which exit code a command ends with."""

from __future__ import annotations

FAILED, WRONG_USAGE, NOT_RUNNING = 1, 2, 3

_USAGE = "2 the command or the task file is wrong"
RUN_CODES = (
    f"Exit codes: 0 stopped in order; 1 a check failed, or the task ended with a fault; {_USAGE}."
)
CHECK_CODES = f"Exit codes: 0 no check failed; 1 one did, or a server can't be reached; {_USAGE}."
ASKING_CODES = (
    f"Exit codes: 0 done; 1 the task refused, or can't be asked; {_USAGE}; 3 it does not run here."
)
REMOVE_CODES = (
    "Exit codes: 0 it is removed, or there was nothing; 1 it runs, or the target can't be used;"
    f" {_USAGE}."
)
DEMO_CODES = "Exit codes: 0 source and target are equal; 1 they are not, or something is missing."


def exit_code(error: BaseException) -> int | None:
    """The code for an error that the user can do something about; None: the program is at fault."""
    # Here, not above: all this takes a while to import, and commands that go well need none of it.
    import pymysql.err

    from actors.control.client import NotRunningError
    from actors.control.protocol import ControlError
    from actors.control.server import AlreadyRunningError
    from actors.faults import FatalError
    from config import TaskFileError
    from replicator.downstream.lease import LeaseHeldError
    from replicator.logs import LogFileError
    from replicator.mysql.connection import DatabaseUnavailableError
    from replicator.routing.expression_types import ExpressionError
    from replicator.routing.routes import RouteError
    from replicator.status import StatusFormatError

    match error:
        case NotRunningError():
            return NOT_RUNNING
        case TaskFileError() | LogFileError() | RouteError() | ExpressionError():
            return WRONG_USAGE
        case ControlError() | AlreadyRunningError() | LeaseHeldError() | StatusFormatError():
            return FAILED
        case FatalError() | DatabaseUnavailableError() | pymysql.err.OperationalError():
            return FAILED
    return None


def innermost(error: BaseException) -> BaseException:
    """The error itself: a task group wraps what its tasks raise, however few they are."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
