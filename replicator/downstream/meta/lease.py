"""The lease: the process that runs the task, the run that may write, and its last save.

The lease is one row. Every transaction of the driver that saves something locks it, checks its own
token and the number that its last save has written, and increments the number. So a replaced run
can't save any more. If a server has lost its last commits, the number is lower than the run's.
Executors also compare the number, and the token, which is in each row that they lock
(`replicator.downstream.fence`). A blocking session can lock the lease with `lock_lease`.

A process holds the lease for LEASE_SECONDS, by the clock of the target, and renews it until it
ends. Another process can take it when it has expired, was given back, or its holder has certainly
ended.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path

import anyio
from pymysql.err import MySQLError

from replicator.downstream.fence import Fence, FencedError, Mismatch
from replicator.downstream.meta.chunk_records import CHUNK_TABLE, PLANNED
from replicator.downstream.meta_table import MetaTable
from replicator.downstream.rows.watermark_table import WATERMARK_TABLE
from replicator.downstream.rows.write_session import Session
from replicator.mysql.connection.asyncio_connection import (
    Connection,
    DatabaseUnavailableError,
    Transaction,
)
from replicator.mysql.errors import error_text, is_contention

LEASE_TABLE = MetaTable(
    "lease",
    "id TINYINT NOT NULL PRIMARY KEY, token BIGINT NOT NULL, revision BIGINT NOT NULL,"
    " host VARCHAR(255) NOT NULL, process BIGINT NOT NULL, machine VARCHAR(128) NOT NULL,"
    " begun VARCHAR(64) NOT NULL, taken_at DATETIME(6) NOT NULL, expires_at DATETIME(6) NOT NULL",
)

LEASE_SECONDS = 30.0
"""Seconds for which a process has the lease without renewing it."""


_PROC = Path("/proc")
_ENDED = frozenset("ZX")
"""The states of a process that has ended and only keeps its number."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process on a host.

    Attributes:
        machine: one boot of a host, in one process namespace (containers have their own); empty if
            unknown.
        begun: start time, which distinguishes the process from later ones with the same number.
    """

    host: str
    process: int
    machine: str
    begun: str

    def __str__(self) -> str:
        return f"process {self.process} on host {self.host}"


@cache
def this_process() -> LeaseHolder:
    """The current process."""
    pid = os.getpid()
    return LeaseHolder(socket.gethostname(), pid, _machine(), begun(pid) or secrets.token_hex(8))


def is_gone(holder: LeaseHolder, here: LeaseHolder, begun_at: Callable[[int], str]) -> bool:
    """Return whether a process has certainly ended, for a process at ``here``.

    ``begun_at``: returns the start time of the process that has a number now; empty if there is
    none. A process of another machine counts as running, however long it is silent. Needs Linux
    (proc(5)): on other systems, no process is ever known to have ended.
    """
    seen = here.machine != "" and (holder.host, holder.machine) == (here.host, here.machine)
    return seen and begun_at(holder.process) != holder.begun


def begun(process: int) -> str:
    """Return the start of a process in ticks since the host's start; empty if there is none."""
    try:
        text = (_PROC / str(process) / "stat").read_text()
    except OSError:
        return ""
    # The second field is the name in brackets, which may contain any character; the state follows.
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in _ENDED else fields[19]


def _machine() -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {(_PROC / 'self/ns/pid').readlink()}"
    except OSError:
        return ""


_NOTHING = "nothing"
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The lease as it was saved or found: its holder, and the number of the last save.

    Times are by the target's clock, in UTC; ``remaining``: seconds until it expires, when it was
    read.
    """

    token: int
    revision: int
    holder: LeaseHolder
    taken_at: datetime
    expires_at: datetime
    remaining: float

    def __str__(self) -> str:
        return f"{self.holder}, since {self.taken_at:%Y-%m-%d %H:%M:%S} UTC by the target's clock"


class LeaseHeldError(Exception):
    """Another process has the lease, as ``state`` shows, unless it has died."""

    def __init__(self, state: LeaseState) -> None:
        super().__init__(
            f"the task is run by {state}, and its lease on the target is renewed. `replicator stop`"
            " there ends it. Where it can't be reached, end it or take its access to the target"
            f" away: the lease runs out {LEASE_SECONDS:.0f} seconds later, and `replicator run`"
            " waits that long"
        )
        self.state = state


class LeaseLostError(Exception):
    """Another process has taken the lease over, as ``state`` shows; this one must not continue."""

    def __init__(self, state: LeaseState) -> None:
        super().__init__(f"the task was taken over by {state}")
        self.state = state


class Lease:
    """A process's knowledge of its task's lease; everything in the process that saves shares it.

    ``seconds``: time until the lease expires if it is not renewed.
    """

    def __init__(
        self, schema: str, task: str, holder: LeaseHolder, *, seconds: float = LEASE_SECONDS
    ) -> None:
        self._table = LEASE_TABLE.qualified(schema, task)
        self._watermarks = WATERMARK_TABLE.qualified(schema, task)
        self._chunks = CHUNK_TABLE.qualified(schema, task)
        self._holder = holder
        self._microseconds = int(seconds * _MICROSECONDS)
        self._left: LeaseState | None = None
        self._unsure = False
        self._lock = anyio.Lock()

    @property
    def fence(self) -> Fence:
        """The fence that executors need in this run."""
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
        """Begin a run from the target's state: writers of earlier runs then find another token.

        Waits for their open transactions. Raises LeaseHeldError if another process has the lease,
        LeaseLostError if that process has taken it from this one, and DatabaseUnavailableError,
        also if a transaction does not end.
        """
        token = secrets.randbits(63)
        async with self._lock:
            async with _contended(), connection.transaction() as transaction:
                found = await self._find(transaction, " FOR UPDATE")
                self._claim(found)
                await self._take(transaction, found, token)
                await transaction.fetch(f"UPDATE {self._watermarks} SET token = %s", (token,))
                await transaction.fetch(
                    f"UPDATE {self._chunks} SET token = %s WHERE state = %s", (token, PLANNED)
                )
                state = await self._find(transaction, " FOR UPDATE")
            self._left, self._unsure = state, False

    def _claim(self, found: LeaseState | None) -> None:
        if found is None or found.holder == self._holder:
            return
        if self._left is not None and found.revision >= self._left.revision:
            raise LeaseLostError(found)
        if found.remaining > 0 and not is_gone(found.holder, self._holder, begun):
            raise LeaseHeldError(found) if self._left is None else LeaseLostError(found)

    async def _take(self, transaction: Transaction, found: LeaseState | None, token: int) -> None:
        mine = found is not None and found.holder == self._holder
        holder = self._holder
        await transaction.fetch(
            f"REPLACE INTO {self._table} (id, token, revision, host, process, machine, begun,"
            " taken_at, expires_at) VALUES (1, %s, %s, %s, %s, %s, %s,"
            " COALESCE(%s, UTC_TIMESTAMP(6)), UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND)",
            (
                token,
                found.revision + 1 if found else 1,
                holder.host,
                holder.process,
                holder.machine,
                holder.begun,
                found.taken_at if found and mine else None,
                self._microseconds,
            ),
        )

    @asynccontextmanager
    async def saving(self, connection: Connection) -> AsyncIterator[Transaction]:
        """Open a transaction that saves something of the task, committed at the end of the block.

        Raises LeaseLostError if another process has taken the task over, FencedError if the target
        does not hold the previous save, and DatabaseUnavailableError, also if other transactions
        hold the locks.
        """
        async with self._lock:
            # Until the result of the COMMIT is known, the target may have either number.
            unsure, self._unsure = self._unsure, True
            async with _contended(), connection.transaction() as transaction:
                left = self._state
                if unsure or not await self._count_up(transaction, left):
                    left = self._checked(await self._find(transaction, " FOR UPDATE"), unsure)
                    await self._count_up(transaction, left)
                yield transaction
            self._left, self._unsure = replace(left, revision=left.revision + 1), False

    async def _count_up(self, transaction: Transaction, found: LeaseState) -> bool:
        """Lock the lease and increment its number; False if the lease is not as it was found."""
        return bool(
            await transaction.execute(
                f"UPDATE {self._table} SET revision = revision + 1,"
                " expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
                " WHERE id = 1 AND token = %s AND revision = %s",
                (self._microseconds, found.token, found.revision),
            )
        )

    async def confirm(self, connection: Connection) -> None:
        """Raise LeaseLostError or FencedError if this run could not save."""
        async with self._lock:
            self._checked(await self._find(connection, ""), self._unsure)

    async def renew(self, connection: Connection) -> None:
        """Renew the lease. Raises LeaseLostError, DatabaseUnavailableError, the server's error.

        Does not detect lost commits; the next save does.
        """
        async with _contended():
            renewed = await connection.execute(
                f"UPDATE {self._table} SET expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
                " WHERE id = 1 AND token = %s",
                (self._microseconds, self._state.token),
            )
        if not renewed:
            self._refuse_other(await self._find(connection, ""))

    async def found(self, connection: Connection) -> LeaseState | None:
        """Return the lease if a process may still hold it.

        Raises DatabaseUnavailableError and the server's error.
        """
        state = await self._find(connection, "")
        if state is None or state.remaining <= 0:
            return None
        return None if is_gone(state.holder, self._holder, begun) else state

    async def release(self, connection: Connection) -> None:
        """Give the lease back if this process has it.

        Raises the errors of `renew`, except LeaseLostError.
        """
        if self._left is not None:
            async with _contended():
                await connection.execute(
                    f"UPDATE {self._table} SET expires_at = UTC_TIMESTAMP(6)"
                    " WHERE id = 1 AND token = %s",
                    (self._left.token,),
                )

    async def _find(self, connection: Connection | Transaction, lock: str) -> LeaseState | None:
        rows = await connection.fetch(
            "SELECT token, revision, host, process, machine, begun, taken_at, expires_at,"
            " TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)"
            f" FROM {self._table} WHERE id = 1{lock}"
        )
        if not rows:
            return None
        token, revision, host, process, machine, begun_at, taken, expires, remaining = rows[0]
        holder = LeaseHolder(host, process, machine, begun_at)
        return LeaseState(token, revision, holder, taken, expires, remaining / _MICROSECONDS)

    def _refuse_other(self, found: LeaseState | None) -> None:
        """Raise an error if another process has taken the lease after this one.

        If the target has lost the transaction in which this process took the lease, the found
        number is lower.
        """
        if found and found.holder != self._holder and found.revision >= self._state.revision:
            raise LeaseLostError(found)

    def _checked(self, found: LeaseState | None, unsure: bool) -> LeaseState:
        self._refuse_other(found)
        left = self._state
        known = {left.revision, left.revision + unsure}
        if found is None or found.token != left.token or found.revision not in known:
            raise FencedError(
                Mismatch(
                    "the number of the last save",
                    str(left.revision),
                    str(found.revision) if found else _NOTHING,
                )
            )
        return found


@asynccontextmanager
async def _contended() -> AsyncIterator[None]:
    """Turn the server's error for contention into DatabaseUnavailableError, which is retried."""
    try:
        yield
    except MySQLError as error:
        if not is_contention(error):
            raise
        raise DatabaseUnavailableError(
            "the meta tables are locked by another transaction, such as one of an earlier run of"
            f" this task that the target has not ended yet: {error_text(error)}"
        ) from error


def lock_lease(session: Session, fence: Fence) -> None:
    """Prevent other processes from taking the task over until the transaction ends.

    Raises FencedError if another process has it, or the driver's error.
    """
    rows = session.rows(b"SELECT token FROM %s FOR UPDATE" % fence.lease_table.encode())
    if not rows or int(rows[0][0]) != fence.token:
        found = str(rows[0][0]) if rows else "nothing"
        raise FencedError(Mismatch("the lease's token", str(fence.token), found))
