"""The objects to check, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from replicator.binlog.positions.position import SourcePosition
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.member_columns import NO_COLUMN_RULES, ColumnRules
from replicator.routing.event_filter import NO_FILTER, EventFilter
from replicator.routing.expression.expression_filter import NO_EXPRESSIONS, ExpressionFilters
from replicator.routing.routes import Routes, TargetName


class RoutesTables(Protocol):
    """The part of `replicator.routing.Router` that the checks use."""

    def route(self, schema: str, table: str) -> TargetName | None:
        """Return the target of a table; None if it is not replicated."""


@dataclass(frozen=True, slots=True)
class SourceToCheck:
    """One upstream server.

    Attributes:
        server_id: the id with which our reader registers.
        start: the position to read from, of the task file or a checkpoint; None for the current
            one. Its ``gtid`` is used unless it is empty; its file may then be empty.
        reads_binlog: False if only a full copy is made; ``copies_rows``: whether one is made.
        registered_as: the host name with which our reader registers: a replica of that name is a
            reader of ours whose end the server has not noticed.
        columns: the rules for columns.
        allowed: patterns of schema and table in the lists of tables to replicate.
        followed: whether ``start`` is from a checkpoint, which has these ``members``.
        read_here: whether this process already reads the source with its id.
    """

    source_id: str
    address: DatabaseAddress
    router: RoutesTables
    routes: Routes
    server_id: int
    start: SourcePosition | None = None
    reads_binlog: bool = True
    copies_rows: bool = False
    registered_as: str = "replicator"
    columns: ColumnRules = NO_COLUMN_RULES
    allowed: tuple[tuple[str, str], ...] = ()
    expression_filters: ExpressionFilters = NO_EXPRESSIONS
    followed: bool = False
    event_filter: EventFilter = NO_FILTER
    members: tuple[TableName, ...] = ()
    read_here: bool = False


@dataclass(frozen=True, slots=True)
class TargetToCheck:
    """The downstream server, the schema of the meta tables and the prefix of their names.

    ``writes_nothing``: whether checks that would have to write are left out, with a warning.
    """

    address: DatabaseAddress
    meta_schema: str
    task_name: str
    writes_nothing: bool = False


@dataclass(frozen=True, slots=True)
class TaskToCheck:
    """A whole task.

    Attributes:
        resuming: whether the task has a checkpoint. If so, the members of its ``followed`` sources
            may be in the middle of a schema change, and only the structures of other sources are
            compared.
        equal_structures: whether all shards of a target must have the same structure.
        joins_structures: whether the target has the smallest structure that accepts the rows of all
            shards.
        retired: shards that the task does not follow any more, whose rows the target keeps.
        keeps_duplicates: whether the full copy treats rows of two shards with the same key as one
            row.
    """

    sources: tuple[SourceToCheck, ...]
    target: TargetToCheck
    task_mode: Literal["full", "incremental", "all"] = "all"
    equal_structures: bool = True
    joins_structures: bool = False
    resuming: bool = False
    spark_master: str = "local[*]"
    keeps_duplicates: bool = False
    retired: frozenset[Member] = frozenset()
