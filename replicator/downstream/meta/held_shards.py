"""The shards whose rows wait behind schema changes, in a meta table: saved with each checkpoint, so
that a target can be compared while its task does not run."""

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
        shards: those whose rows may wait otherwise, as `replicator.mysql.names.Member` is shown.
        reason: what else than a schema change holds them (`PAUSED`, a fault, `lock_reason`); empty
            if there is nothing else.
        events: how many row events are held; None if that is not known.
    """

    all_of: bool = False
    shards: frozenset[str] = frozenset()
    reason: str = ""
    events: int | None = None

    @property
    def alone(self) -> bool:
        """Whether rows of single shards may wait, and those of the others may not."""
        return not self.all_of and bool(self.shards)

    @property
    def some(self) -> bool:
        """Whether rows may wait at all."""
        return self.all_of or bool(self.shards)

    def holds(self, shard: str) -> bool:
        """Whether a row of this shard may wait; an empty name is that of a row without a shard."""
        if not shard:
            return self.some
        return self.all_of or shard in self.shards


NOTHING_HELD = HeldShards()
ALL_HELD = HeldShards(all_of=True)


def all_held(several: Iterable[HeldShards]) -> HeldShards:
    """Return the shards of a target that any of these name."""
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
"""Characters of a reason that are saved."""


def lock_reason(lock: str, *, conflict: bool, refused: bool) -> str:
    """Return what else than a schema change holds rows if a lock is in conflict, or the target has
    ``refused`` its statement; empty otherwise."""
    if conflict:
        return f"the DDL lock {lock} is in conflict"
    return f"the target has refused the statement of the DDL lock {lock}" if refused else ""


async def replace_held(
    transaction: Transaction, table: str, held: Mapping[TableName, HeldShards]
) -> None:
    """Save these, and nothing else; ``table`` is the quoted name of the meta table."""
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
    """What was saved last, by target. Raises DatabaseUnavailableError and the server's error."""
    rows = await connection.fetch(
        f"SELECT target_schema, target_table, all_of, shards, reason FROM {table}"
    )
    return {
        TableName(schema, name): HeldShards(bool(all_of), frozenset(json.loads(shards)), reason)
        for schema, name, all_of, shards, reason in rows
    }
