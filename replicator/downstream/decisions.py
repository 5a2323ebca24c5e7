"""The decided items of the targets: the lock, the write-ahead record and the history in one.

What was decided (`decision`) is text here: its meaning is known where it is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from replicator.downstream.meta import MetaStore
from replicator.downstream.meta_table import MetaTable
from replicator.mysql.names import Member, TableName

DDL_TABLE = MetaTable(
    "ddl",
    "target VARCHAR(129) NOT NULL, version INT NOT NULL, statement LONGTEXT NOT NULL,"
    " owner VARCHAR(64) NOT NULL, member VARCHAR(129) NOT NULL,"
    " transaction_key BIGINT NOT NULL, state VARCHAR(16) NOT NULL,"
    " fingerprint VARCHAR(64) NOT NULL, decision LONGTEXT NOT NULL,"
    " saved_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,"
    " PRIMARY KEY (target, version)",
)

DECIDED = "decided"
"""The state of a record before its execution begins; then ``pending``, then ``done``."""


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One item of a target. ``transaction`` is the place of the owner's DDL event."""

    target: TableName
    version: int
    statement: str
    member: Member
    transaction: int
    decision: str
    done: bool


class DecisionStore:
    """Reads and writes the decided items."""

    def __init__(self, meta: MetaStore) -> None:
        self._meta = meta

    async def load(self) -> list[DecisionRecord]:
        """All decided items, by target and version."""
        rows = await self._meta.connection.fetch(
            "SELECT target, version, statement, owner, member, transaction_key, decision, state"
            f" FROM {self._meta.table(DDL_TABLE)} WHERE decision <> '' ORDER BY target, version"
        )
        return [
            DecisionRecord(
                target=TableName(*target.split(".", 1)),
                version=version,
                statement=statement,
                member=Member(owner, TableName(*member.split(".", 1))),
                transaction=transaction,
                decision=decision,
                done=state == "done",
            )
            for target, version, statement, owner, member, transaction, decision, state in rows
        ]

    async def decide(self, record: DecisionRecord) -> None:
        """Save a decision, before anything is executed."""
        await self._meta.connection.execute(
            f"INSERT INTO {self._meta.table(DDL_TABLE)} (target, version, statement, owner, member,"
            " transaction_key, state, fingerprint, decision)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, '', %s)",
            (
                str(record.target),
                record.version,
                record.statement,
                record.member.source,
                str(record.member.name),
                record.transaction,
                DECIDED,
                record.decision,
            ),
        )

    async def pass_over(self, target: TableName, version: int) -> None:
        """An item that is not to be executed is done."""
        await self._meta.connection.execute(
            f"UPDATE {self._meta.table(DDL_TABLE)} SET state = 'done'"
            " WHERE target = %s AND version = %s",
            (str(target), version),
        )
