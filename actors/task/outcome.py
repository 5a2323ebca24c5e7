"""How one run of a task ends, and what of its errors to act on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pymysql.err import MySQLError

from actors.faults import FatalError, TransientError
from actors.refusals import refusal
from replicator.mysql.connection import DatabaseAddress, DatabaseUnavailableError


@dataclass(frozen=True, slots=True)
class Stop:
    """In order, for good: the operator wants that, or all that was to do is done."""


@dataclass(frozen=True, slots=True)
class Pause:
    """In order, because the operator wanted something."""


@dataclass(frozen=True, slots=True)
class Failed:
    """By a fault, which the operator must mend."""

    error: FatalError


@dataclass(frozen=True, slots=True)
class Retry:
    """By something that another run gets over.

    ``ran``: its actors, or the copy, had started before that.
    """

    error: TransientError | DatabaseUnavailableError
    ran: bool

    @property
    def spark_lost(self) -> bool:
        """Whether Spark is to be started anew, too."""
        return isinstance(self.error, TransientError)


Outcome = Stop | Pause | Failed | Retry


def weightiest(group: BaseExceptionGroup[BaseException], target: DatabaseAddress) -> BaseException:
    """The error to act on: a fatal one before a transient one, anything unexpected first.

    What a server says itself is the target's: the readers and the start tell of the sources.
    """
    errors = [
        refusal("target", target, error) if isinstance(error, MySQLError) else error
        for error in _leaves(group)
    ]
    for error in errors:
        if not isinstance(error, FatalError | TransientError | DatabaseUnavailableError):
            return error
    return next((e for e in errors if isinstance(e, FatalError)), errors[0])


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
