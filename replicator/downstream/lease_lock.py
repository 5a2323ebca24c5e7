"""The lease's row, locked by a blocking session that writes what only the holder may."""

from __future__ import annotations

from replicator.downstream.fence import Fence, Mismatch, OutOfStepError
from replicator.downstream.session import Session


def lock_lease(session: Session, fence: Fence) -> None:
    """Keep others from taking the task over until the transaction ends.

    Raises OutOfStepError where another has it, or the driver's error.
    """
    rows = session.rows(b"SELECT token FROM %s FOR UPDATE" % fence.lease_table.encode())
    if not rows or int(rows[0][0]) != fence.token:
        found = str(rows[0][0]) if rows else "nothing"
        raise OutOfStepError(Mismatch("the lease's token", str(fence.token), found))
