"""The lease: which process runs the task, which of its runs may write, and what it has saved.

One row. Every transaction of the driver that saves something locks it, finds its own token there
and the number that its last one has left, and counts the number up. So a run that was replaced
can't save any more; and where a server has lost its last commits, which it does from the end of its
log, the number is lower than it was left. Executors compare the number too, and the token, which
stands in each row that they lock (`replicator.downstream.fence`).

A process holds the lease for LEASE_SECONDS, by the clock of the target, and renews it until it
ends. Another one can take it when it has run out, or was given back, or its holder is surely gone.

The lease's row, locked by a blocking session that writes what only the holder may.
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
"""How long a process that is not heard of keeps the lease."""


_PROC = Path("/proc")
_ENDED = frozenset("ZX")
"""States of a process that is dead, and of which only the number is left."""


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    """A process on a host.

    ``machine`` is one boot of a host, as one set of processes sees it (containers have sets of
    their own); empty where that can't be told. ``begun`` tells the process from others that get
    its number.
    """

    host: str
    process: int
    machine: str
    begun: str

    def __str__(self) -> str:
        return f"process {self.process} on host {self.host}"


@cache
def this_process() -> LeaseHolder:
    """The process that asks."""
    pid = os.getpid()
    return LeaseHolder(socket.gethostname(), pid, _machine(), begun(pid) or secrets.token_hex(8))


def is_gone(holder: LeaseHolder, here: LeaseHolder, begun_at: Callable[[int], str]) -> bool:
    """Whether a process has surely ended, as ``here`` can see it.

    ``begun_at`` tells when the process that has a number now was begun; empty if none has it. A
    process of another machine may live, however long nothing is heard of it.
    Needs Linux to tell (proc(5)): elsewhere nobody is ever known to be gone.
    """
    seen = here.machine != "" and (holder.host, holder.machine) == (here.host, here.machine)
    return seen and begun_at(holder.process) != holder.begun


def begun(process: int) -> str:
    """When a process was begun, in ticks since the host's start; empty if there is none."""
    try:
        text = (_PROC / str(process) / "stat").read_text()
    except OSError:
        return ""
    # The second field is the name in brackets, which may hold anything; the state follows.
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
    """The lease as it was left or found: whose it is, and the number of the last save.

    Times are of the target's clock, in UTC; ``remaining`` seconds were left when it was read.
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
    """Another process has the lease, as ``state`` tells, if it has not ended without a word."""

    def __init__(self, state: LeaseState) -> None:
        super().__init__(
            f"the task is run by {state}, and its lease on the target is renewed. `replicator stop`"
            " there ends it. Where it can't be reached, end it or take its access to the target"
            f" away: the lease runs out {LEASE_SECONDS:.0f} seconds later, and `replicator run`"
            " waits that long"
        )
        self.state = state


class LeaseLostError(Exception):
    """Another process has taken the lease over, as ``state`` tells: this one must not go on."""

    def __init__(self, state: LeaseState) -> None:
        super().__init__(f"the task was taken over by {state}")
        self.state = state


class Lease:
    """What a process, ``holder``, knows of the lease of its task. All that save have it in common.

    ``seconds``: how long it is held without being renewed.
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

        Waits for their transactions that are open. Raises LeaseHeldError where another process has
        the lease, LeaseLostError where it has taken it from this one; DatabaseUnavailableError,
        also where a transaction does not end.
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
        """Raise where another process has the lease."""
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
        """A transaction that saves something of the task, committed at the end of the block.

        Raises LeaseLostError where another process has taken the task over, FencedError where
        the target does not hold what was saved before, and DatabaseUnavailableError, also where
        other transactions stand in the way.
        """
        async with self._lock:
            # Until the end of the COMMIT is known, both numbers may be there afterwards.
            unsure, self._unsure = self._unsure, True
            async with _contended(), connection.transaction() as transaction:
                left = self._state
                if unsure or not await self._count_up(transaction, left):
                    left = self._checked(await self._find(transaction, " FOR UPDATE"), unsure)
                    await self._count_up(transaction, left)
                yield transaction
            self._left, self._unsure = replace(left, revision=left.revision + 1), False

    async def _count_up(self, transaction: Transaction, found: LeaseState) -> bool:
        """Lock the lease and count its number up, if it is as it was left or found."""
        return bool(
            await transaction.execute(
                f"UPDATE {self._table} SET revision = revision + 1,"
                " expires_at = UTC_TIMESTAMP(6) + INTERVAL %s MICROSECOND"
                " WHERE id = 1 AND token = %s AND revision = %s",
                (self._microseconds, found.token, found.revision),
            )
        )

    async def confirm(self, connection: Connection) -> None:
        """Raise LeaseLostError or FencedError where nothing could be saved."""
        async with self._lock:
            self._checked(await self._find(connection, ""), self._unsure)

    async def renew(self, connection: Connection) -> None:
        """Keep the lease. Raises LeaseLostError, DatabaseUnavailableError, the server's error.

        That commits were lost is left to the run to find.
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
        """The lease of a process that may still have it; None where none has.

        Raises DatabaseUnavailableError and the server's error.
        """
        state = await self._find(connection, "")
        if state is None or state.remaining <= 0:
            return None
        return None if is_gone(state.holder, self._holder, begun) else state

    async def release(self, connection: Connection) -> None:
        """Give the lease back, if this process has it. Raises what `renew` does but the loss."""
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
        """Raise where another process has taken the lease after this one did.

        What a target has that lost the taking itself is older.
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


def lock_lease(session: Session, fence: Fence) -> None:
    """Keep others from taking the task over until the transaction ends.

    Raises FencedError where another has it, or the driver's error.
    """
    rows = session.rows(b"SELECT token FROM %s FOR UPDATE" % fence.lease_table.encode())
    if not rows or int(rows[0][0]) != fence.token:
        found = str(rows[0][0]) if rows else "nothing"
        raise FencedError(Mismatch("the lease's token", str(fence.token), found))
