"""Transactions of executors on the target, repeated until they succeed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from pymysql.err import MySQLError

from replicator.downstream.rows.load_data import InexactLoadError
from replicator.downstream.rows.write_session import Session, forget_session, session_for
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import error_code, is_contention, is_unavailable

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 2.0
"""Seconds between attempts: doubled from the first to the longest, with a random part."""

AWAY_SECONDS = 2.0
"""Seconds for which an executor retries an unavailable server before it reports this to the
task."""

Result = TypeVar("Result")


class OutOfPatienceError(Exception):
    """A server was unavailable, or other transactions held locks, for too long: see the cause.

    ``waited``: whole seconds since the first failure.
    """

    def __init__(self, error: Exception, waited: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.waited = waited


@contextmanager
def transaction(
    address: DatabaseAddress, *harmless: type[Exception], patient: bool = False
) -> Iterator[Session]:
    """Open a transaction on this thread's session; it is committed at the end of the block.

    ``patient``: whether the server waits for data that a source still sends. After ``harmless``
    exceptions, the transaction is rolled back and the session is kept; after others, the session is
    closed. Raises the driver's error.
    """
    try:
        session = session_for(address, patient=patient)
        session.run(b"BEGIN")
        yield session
    except harmless:
        session.run(b"ROLLBACK")
        raise
    except BaseException:
        # Closing rolls back in any state of the connection. It is also right after a refusal, since
        # a corrected setting of the server applies only to new connections.
        forget_session(address)
        raise


def until_done(
    attempt: Callable[[bool], Result],
    *,
    patience: float,
    away: float = AWAY_SECONDS,
    passing: frozenset[int] = frozenset(),
) -> Result:
    """Return the result of ``attempt``, which is repeated after temporary errors.

    Its argument says whether to write exactly, and is True after an inexact load. Raises
    OutOfPatienceError. Executors have few packages, so stamina is not used for the retries.

    Args:
        patience: seconds after which temporary errors are raised.
        away: seconds for an unavailable server.
        passing: codes of further temporary errors, besides contention and an unavailable server.
    """
    exact = False
    failed_at: float | None = None
    began = time.monotonic()
    pause = FIRST_PAUSE
    while True:
        try:
            return attempt(exact)
        except InexactLoadError:
            exact = True
            continue
        except (MySQLError, OSError) as error:
            if not (is_unavailable(error) or is_contention(error) or error_code(error) in passing):
                raise
            moment = time.monotonic()
            failed_at = moment if failed_at is None else failed_at
            limit = min(patience, away) if is_unavailable(error) else patience
            if moment > began + limit:
                raise OutOfPatienceError(error, int(moment - failed_at)) from error
        # The random part only spreads the attempts of several writers.
        time.sleep(pause * (0.5 + random.random()))  # nosec B311
        pause = min(2 * pause, LONGEST_PAUSE)
