"""The faults of tables that can't become shards of a target that foreign keys tie to others."""

from __future__ import annotations

from actors.faults import COPY_AGAIN, DdlEvent, FatalError, of_target
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import TableName
from replicator.schema.effects.ddl_effects import Effect
from replicator.schema.effects.overridden_effects import OverrideAction


def not_taken(source: str, effect: Effect, statement: Statement, reason: str) -> FatalError:
    """The fault of a table that can't become a shard of a tied target."""
    target = effect.target
    return FatalError(
        "ddl.not-supported",
        f"{effect.table} comes as a shard of {target}, which foreign keys tie to other targets,"
        f" and the task can't take it: {reason}",
        "if other shards change to this structure by statements that the task has still to"
        " read: `replicator resume`",
        "if it has got no rows: DROP it at the source, `binlog skip` this statement,"
        " then `replicator resume`. Then CREATE it with the structure and the foreign keys"
        " of the other shards",
        COPY_AGAIN,
        where=f"source {source}, target {target}, statement: {statement.sql[:2000]}",
        scope=of_target(target),
        about=DdlEvent(source, statement.position, (OverrideAction.SKIP,)),
    )


def untied(source: str, name: TableName, target: TableName) -> FatalError:
    """The fault of a table of which the task does not know what keys connected it with."""
    return FatalError(
        "target.keys-differ",
        f"{name} changes, which was dropped before the task first read the tables of its"
        f" source: foreign keys tie its target {target} to others, and the task does not know"
        " which tables they connected it with",
        COPY_AGAIN,
        where=f"source {source}, {name}, target {target}",
        scope=of_target(target),
    )
