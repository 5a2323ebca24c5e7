"""What is checked, as plain data."""

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
    """What the checks need of `replicator.routing.Router`."""

    def route(self, schema: str, table: str) -> TargetName | None:
        """The target of a table; None when it is not replicated."""


@dataclass(frozen=True, slots=True)
class SourceToCheck:
    """One upstream server.

    ``server_id`` is the one that we register with there. ``start`` is the position that reading
    starts from, from the task file or a checkpoint, None for the current one; its ``gtid`` decides
    where it is not empty, its file may then be empty. ``reads_binlog`` is false when only a full
    copy is made; ``copies_rows`` is true when one is. ``registered_as`` is the host name that our
    own reader registers with there: an entry under that name is a reader of ours that the server
    has not noticed to be gone. ``columns``: the rules about columns. ``allowed``: patterns of
    schema and table in the lists of what is to be replicated. ``followed``: ``start`` is that of a
    checkpoint, which has these ``members``. ``read_here``: this process reads it by its id already.
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

    ``writes_nothing``: what would have to be written to be tried is left out, with a warning.
    """

    address: DatabaseAddress
    meta_schema: str
    task_name: str
    writes_nothing: bool = False


@dataclass(frozen=True, slots=True)
class TaskToCheck:
    """A whole task.

    ``resuming``: the task has a checkpoint, so the members of its ``followed`` sources may rightly
    be in the middle of a schema change; only the structures of other sources are compared.
    ``equal_structures``: all shards of a target must have the same structure; ``joins_structures``:
    the target has the least one that takes the rows of all.
    ``retired``: shards that the task does not follow any more, whose rows the target keeps.
    ``keeps_duplicates``: the full copy takes rows of two shards with one key for one row.
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
