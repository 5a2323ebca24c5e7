"""The shards whose rows wait for schema changes, in a meta table.

They are saved with each checkpoint, so that a target can be compared while its task does not run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from replicator.downstream.meta_table import MetaTable
from replicator.mysql.names import TableName

if TYPE_CHECKING:
    # Executors have no asyncio driver.
    from replicator.mysql.connection.asyncio_connection import Connection, Transaction

HELD_TABLE = MetaTable(
    "held",
    "target_schema VARCHAR(64) NOT NULL, target_table VARCHAR(64) NOT NULL,"
    " all_of BOOLEAN NOT NULL, shards LONGTEXT NOT NULL, reason VARCHAR(1000) NOT NULL,"
    " PRIMARY KEY (target_schema, target_table)",
)


@dataclass(frozen=True, slots=True)
class HeldShards:
    """The shards of a target whose rows may wait.

    Attributes:
        all_of: whether rows of all shards may wait.
        shards: otherwise, the shards whose rows may wait, as `replicator.mysql.names.Member` shows
            them.
        reason: what holds them besides a schema change (`PAUSED`, a fault, `lock_reason`); empty if
            there is nothing else.
        events: number of held row events; None if unknown.
    """

    all_of: bool = False
    shards: frozenset[str] = frozenset()
    reason: str = ""
    events: int | None = None

    @property
    def alone(self) -> bool:
        """Whether rows of single shards may wait, but not rows of the others."""
        return not self.all_of and bool(self.shards)

    @property
    def some(self) -> bool:
        """Whether rows may wait at all."""
        return self.all_of or bool(self.shards)

    def holds(self, shard: str) -> bool:
        """Return whether a row of this shard may wait; an empty name means no shard."""
        if not shard:
            return self.some
        return self.all_of or shard in self.shards


NOTHING_HELD = HeldShards()
ALL_HELD = HeldShards(all_of=True)


def all_held(several: Iterable[HeldShards]) -> HeldShards:
    """Return the union of several results for one target."""
    found = NOTHING_HELD
    for each in several:
        counts = [count for count in (found.events, each.events) if count is not None]
        found = HeldShards(
            found.all_of or each.all_of,
            found.shards | each.shards,
            found.reason or each.reason,
            sum(counts) if counts else None,
        )
    return found


PAUSED = "the operator has paused it"
"""The reason of a target that waits for its operator, without a fault."""

_LONGEST_REASON = 1000
"""Maximum number of characters of a saved reason."""


def lock_reason(lock: str, *, conflict: bool, refused: bool) -> str:
    """Return what holds rows besides a schema change; empty if nothing does.

    Args:
        conflict: whether the lock is in conflict.
        refused: whether the target has refused the lock's statement.
    """
    if conflict:
        return f"the DDL lock {lock} is in conflict"
    return f"the target has refused the statement of the DDL lock {lock}" if refused else ""


async def replace_held(
    transaction: Transaction, table: str, held: Mapping[TableName, HeldShards]
) -> None:
    """Replace the saved shards; ``table`` is the quoted name of the meta table."""
    await transaction.fetch(f"DELETE FROM {table}")
    for target, shards in sorted(held.items()):
        await transaction.fetch(
            f"INSERT INTO {table} (target_schema, target_table, all_of, shards, reason)"
            " VALUES (%s, %s, %s, %s, %s)",
            (
                *target,
                shards.all_of,
                json.dumps(sorted(shards.shards)),
                shards.reason[:_LONGEST_REASON],
            ),
        )


async def read_held(connection: Connection, table: str) -> dict[TableName, HeldShards]:
    """Return the saved shards by target. Raises DatabaseUnavailableError and the server's error."""
    rows = await connection.fetch(
        f"SELECT target_schema, target_table, all_of, shards, reason FROM {table}"
    )
    return {
        TableName(schema, name): HeldShards(bool(all_of), frozenset(json.loads(shards)), reason)
        for schema, name, all_of, shards, reason in rows
    }
