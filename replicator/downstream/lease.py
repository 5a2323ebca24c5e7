"""The lease: which run of a task may write, and the number of what it has saved.

One row. Every transaction of the driver that saves something locks it, finds its own token there
and the number that its last one has left, and counts the number up. So a run that was replaced
can't save any more; and where a server has lost its last commits, which it does from the end of its
log, the number is lower than it was left. Executors compare the number too, and the token, which
stands in each row that they lock (`replicator.downstream.fence`).
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from pymysql.err import MySQLError

from replicator.downstream.chunk_records import CHUNK_TABLE, PLANNED
from replicator.downstream.fence import Fence, Mismatch, OutOfStepError
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.watermarks import WATERMARK_TABLE
from replicator.mysql.connection import Connection, DatabaseUnavailableError, Transaction
from replicator.mysql.errors import error_text, is_contention

LEASE_TABLE = MetaTable(
    "lease",
    "id TINYINT NOT NULL PRIMARY KEY, token BIGINT NOT NULL, revision BIGINT NOT NULL",
)

_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The lease as it was left or found: whose it is, and the number of the last save."""

    token: int
    revision: int


class Lease:
    """What a process knows of the lease of its task. All that save have it in common."""

    def __init__(self, schema: str, task: str) -> None:
        self._table = LEASE_TABLE.qualified(schema, task)
        self._watermarks = WATERMARK_TABLE.qualified(schema, task)
        self._chunks = CHUNK_TABLE.qualified(schema, task)
        self._left: LeaseState | None = None
        self._unsure = False
        self._lock = anyio.Lock()

    @property
    def fence(self) -> Fence:
        """What executors need to know of it in this run."""
        return Fence(self._table, self._state.token)

    @property
    def revision(self) -> int:
        """The number of the last save."""
        return self._state.revision

    @property
    def _state(self) -> LeaseState:
        if self._left is None:
            raise DatabaseUnavailableError("the task has not reached its target yet")
        return self._left

    async def begin(self, connection: Connection) -> None:
        """Begin a run from what the target has: writers of earlier ones find another token.

        Waits for their transactions that are open. Raises DatabaseUnavailableError, also where
        one does not end.
        """
        token = secrets.randbits(63)
        async with self._lock:
            async with _contended(), connection.transaction() as transaction:
                found = await self._find(transaction, " FOR UPDATE")
                revision = found.revision + 1 if found else 1
                await transaction.fetch(
                    f"REPLACE INTO {self._table} (id, token, revision) VALUES (1, %s, %s)",
                    (token, revision),
                )
                await transaction.fetch(f"UPDATE {self._watermarks} SET token = %s", (token,))
                await transaction.fetch(
                    f"UPDATE {self._chunks} SET token = %s WHERE state = %s", (token, PLANNED)
                )
            self._left, self._unsure = LeaseState(token, revision), False

    @asynccontextmanager
    async def saving(self, connection: Connection) -> AsyncIterator[Transaction]:
        """A transaction that saves something of the task, committed at the end of the block.

        Raises OutOfStepError where the target does not hold what was saved before, and
        DatabaseUnavailableError, also where other transactions stand in the way.
        """
        async with self._lock:
            # Until the end of the COMMIT is known, both numbers may be there afterwards.
            unsure, self._unsure = self._unsure, True
            async with _contended(), connection.transaction() as transaction:
                found = self._checked(await self._find(transaction, " FOR UPDATE"), unsure)
                revision = found.revision + 1
                await transaction.fetch(
                    f"UPDATE {self._table} SET revision = %s WHERE id = 1", (revision,)
                )
                yield transaction
            self._left, self._unsure = LeaseState(found.token, revision), False

    async def confirm(self, connection: Connection) -> None:
        """Raise OutOfStepError where the target does not hold what was saved last."""
        async with self._lock:
            self._checked(await self._find(connection, ""), self._unsure)

    async def _find(self, connection: Connection | Transaction, lock: str) -> LeaseState | None:
        rows = await connection.fetch(
            f"SELECT token, revision FROM {self._table} WHERE id = 1{lock}"
        )
        return LeaseState(*rows[0]) if rows else None

    def _checked(self, found: LeaseState | None, unsure: bool) -> LeaseState:
        left = self._state
        known = {left.revision, left.revision + unsure}
        if found is None or found.token != left.token or found.revision not in known:
            raise OutOfStepError(
                Mismatch(
                    "the number of the last save",
                    str(left.revision),
                    str(found.revision) if found else _NOTHING,
                )
            )
        return found


@asynccontextmanager
async def _contended() -> AsyncIterator[None]:
    """A transaction that was broken off for another one's sake can be tried again."""
    try:
        yield
    except MySQLError as error:
        if not is_contention(error):
            raise
        raise DatabaseUnavailableError(
            "the meta tables are locked by another transaction, such as one of an earlier run of"
            f" this task that the target has not ended yet: {error_text(error)}"
        ) from error
