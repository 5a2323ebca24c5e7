"""Transactions of executors on the target: made again until they hold."""

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
"""How long a server that is away is tried again here, before the task is told of it."""

Result = TypeVar("Result")


class OutOfPatienceError(Exception):
    """A server was away, or other transactions stood in the way, for too long: see the cause.

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
    """A transaction on this thread's session, to be committed by the block.

    ``patient``: it may wait for what a source sends.

    After ``harmless`` exceptions it is rolled back and the session stays; after all others the
    session is dropped. Raises the driver's error.
    """
    try:
        session = session_for(address, patient=patient)
        session.run(b"BEGIN")
        yield session
    except harmless:
        session.run(b"ROLLBACK")
        raise
    except BaseException:
        # Closing rolls back, whatever state the connection is in. After a refusal, too: a setting
        # of the server that is mended counts for connections that are opened afterwards.
        forget_session(address)
        raise


def until_done(
    attempt: Callable[[bool], Result],
    *,
    patience: float,
    away: float = AWAY_SECONDS,
    passing: frozenset[int] = frozenset(),
) -> Result:
    """What ``attempt`` gives, called again while the error is one that passes.

    Its argument says whether to write exactly, which it is once a load was not. Errors pass when
    the server is away, when others stood in the way, and those with a code of ``passing``; for at
    most ``patience`` seconds, of a server that is away for ``away``. Raises OutOfPatienceError, or
    what the attempt raises otherwise.

    The waiting is not stamina's, which executors have not got: they need few packages.
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
        # Only spreads the attempts of several writers.
        time.sleep(pause * (0.5 + random.random()))  # nosec B311
        pause = min(2 * pause, LONGEST_PAUSE)
