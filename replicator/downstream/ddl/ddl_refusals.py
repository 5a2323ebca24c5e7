"""What it means that a target refuses a statement."""

from __future__ import annotations

from replicator.mysql.errors import ErrorCode


class DdlRefusedError(Exception):
    """The target refused the statement."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


class TargetLockedError(DdlRefusedError):
    """Other sessions have used the target for longer than the statement may wait for them."""


class RenumberingError(DdlRefusedError):
    """The target was not asked: the statement would have given ``rows`` of it new numbers."""

    def __init__(self, rows: str) -> None:
        super().__init__(ErrorCode.ER_DUP_ENTRY, f"{rows} would get new numbers")
        self.rows = rows


class HalfExecutedError(DdlRefusedError):
    """The target has taken some of a statement's single changes, and refused the next one.

    The record says so: when the same is executed again, it goes on with that one.
    """

    def __init__(self, error: DdlRefusedError, statements: tuple[str, ...], number: int) -> None:
        super().__init__(error.code, error.message)
        self.executed = statements[:number]
        self.left = statements[number:]


class NondeterministicDefaultError(DdlRefusedError):
    """The target was not asked: its rows would have got values of their own by ``function``."""

    def __init__(self, function: str) -> None:
        super().__init__(ErrorCode.ER_WRONG_VALUE_FOR_VAR, f"rows would get values of {function}")
        self.function = function


SAME_FOR_SINGLE_CHANGES = (RenumberingError, NondeterministicDefaultError, TargetLockedError)
"""What would be refused for the same reason if the changes were executed one by one."""
