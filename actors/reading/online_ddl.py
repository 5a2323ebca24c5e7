"""Follows a source's online schema changes: recorded at the ghost, replayed at the exchange."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import structlog
from attrs import define, field

from actors.reading.table_gaps import TableGaps
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.online.online_ddl import (
    Beside,
    GhostAct,
    GhostEntry,
    GhostHistory,
    OnlineDdlError,
    gaps_of,
    read_online,
)
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.retarget import retarget
from replicator.downstream.meta.online_ddl_records import OnlineDdlStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import TableName
from replicator.routing.online_tables import OnlineUse
from replicator.routing.routes import Router
from replicator.schema.effects.ddl_effects import DdlError
from replicator.schema.effects.touched_parts import copied_otherwise

_HAPPENED = {
    GhostAct.BEGUN: "online-ddl.started",
    GhostAct.MADE: "online-ddl.made",
    GhostAct.CHANGED: "online-ddl.changed",
    GhostAct.ENDED: "online-ddl.ended",
    GhostAct.OVERTAKEN: "online-ddl.overtaken",
    GhostAct.AWAITED: "online-ddl.awaited",
}

Recogniser = Callable[[Statement, str], ParsedStatement]
"""Parses a text like that of a statement of the source."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A statement to process in place of an exchange.

    ``made`` is the definition of the table that it changed, if it differs from the real table's.
    """

    statement: Statement
    parsed: ParsedStatement
    made: ParsedStatement | None = None


@define(eq=False)
class OnlineDdl:
    """The ghosts of one source. New entries must be saved before reading continues."""

    _source: str
    _router: Router
    _history: GhostHistory
    _store: OnlineDdlStore | None
    _gaps: TableGaps
    _unsaved: list[GhostEntry] = field(factory=list, init=False)
    _told: set[TableName] = field(factory=set, init=False)
    _log: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._log = structlog.get_logger().bind(source=self._source)

    @property
    def readings(self) -> int:
        """The number of times that the binlog was read ahead; each disconnects the reader."""
        return self._gaps.readings

    async def look_ahead(
        self, parsed: ParsedStatement, statement: Statement, boundary: SourcePosition
    ) -> None:
        """Find out, for `take`, whether a table is dropped so that its ghost can replace it.

        ``boundary`` is a position at or before the statement's end. Raises BinlogError,
        DatabaseUnavailableError or FatalError.
        """
        at = statement.transaction
        for gap in gaps_of(parsed, at, self._beside, self._history):
            if self._history.is_awaited(gap.ghost, at):
                continue
            if await self._gaps.is_filled(gap, at, boundary):
                entry = GhostEntry(gap.ghost, at, GhostAct.AWAITED, statement.sql)
                self._history.add(entry)
                self._unsaved.append(entry)
                self._log.info(
                    "online-ddl.awaited", table=str(gap.ghost), statement=statement.sql[:500]
                )

    def take(
        self, parsed: ParsedStatement, statement: Statement, classify: Recogniser
    ) -> list[Replay] | None:
        """Return the statements to process in place of an exchange of a ghost and its table.

        Return None for any other statement, which is then processed itself. Raises DdlError.
        """
        found = self._taken(parsed, statement, classify)
        why = copied_otherwise(replay.parsed for replay in found or ())
        if why:
            raise DdlError(
                f"{why}, and tools differ in what they copy then: the task does not know which"
                " values the rows of the shard have now. Look at them, and replace the statement"
                " by an ALTER TABLE that gives the target the same: one with CHANGE or MODIFY where"
                " they have kept their values, or one that drops the column and adds it"
            )
        return found

    def _taken(
        self, parsed: ParsedStatement, statement: Statement, classify: Recogniser
    ) -> list[Replay] | None:
        event = GhostEntry(
            TableName("", ""),
            statement.transaction,
            GhostAct.CHANGED,
            statement.sql,
            statement.schema,
            statement.timestamp,
            statement.context,
        )
        try:
            step = read_online(parsed, event, self._beside, self._history)
        except OnlineDdlError as error:
            raise DdlError(str(error)) from error
        self._unsaved += [entry for entry in step.entries if self._history.add(entry)]
        for entry in step.entries:
            self._log.info(_HAPPENED[entry.act], table=str(entry.table), statement=entry.sql[:500])
        if step.replayed is None:
            return None
        if step.replayed:
            self._log.info(
                "online-ddl.exchanged",
                statement=statement.sql[:500],
                replayed=[entry.sql[:500] for entry in step.replayed],
            )
        found = [self._replay(entry, statement, classify) for entry in step.replayed]
        if step.made is not None:
            found[0] = replace(found[0], made=self._replay(step.made, statement, classify).parsed)
        return found

    def known(
        self, parsed: ParsedStatement, statement: Statement, classify: Recogniser
    ) -> list[Replay]:
        """Do the same as `take`, for a statement that the operator has decided about.

        The result is empty if it is not an exchange, or the changes of its ghost are not known.
        """
        try:
            return self._taken(parsed, statement, classify) or []
        except DdlError:
            return []

    @property
    def unsaved(self) -> bool:
        """Return whether there are new entries since the last call of `save`."""
        return bool(self._unsaved)

    async def save(self) -> None:
        """Save the new entries since the last call."""
        while self._unsaved:
            assert self._store is not None
            reach(Failpoint.GHOST_READ)
            await self._store.put(self._source, self._unsaved[0])
            del self._unsaved[0]
            reach(Failpoint.GHOST_RECORDED)

    def log_left_out(self, table: TableName) -> None:
        """Log once that the rows of a table are skipped, if it is a ghost or trash table."""
        beside = self._beside(table)
        if beside is not None and table not in self._told:
            self._told.add(table)
            self._log.info("online-ddl.left-out", table=str(table), real=str(beside.real))

    def knows(self, table: TableName) -> bool:
        """Return whether a name belongs to a ghost or trash table."""
        return self._beside(table) is not None

    def _beside(self, table: TableName) -> Beside | None:
        found = self._router.online(table.schema, table.table)
        if found is None:
            return None
        return Beside(TableName(table.schema, found.real), found.use is OnlineUse.TRASH)

    def _replay(self, entry: GhostEntry, exchange: Statement, classify: Recogniser) -> Replay:
        """Return a ghost's statement for its real table, at the place of the exchange."""
        beside = self._beside(entry.table)
        assert beside is not None
        real = beside.real
        ghost = (entry.table.schema, entry.table.table)

        def renamed(schema: str, table: str) -> tuple[str, str]:
            return (real.schema, real.table) if (schema, table) == ghost else (schema, table)

        own = replace(exchange, schema=entry.schema, sql=entry.sql)
        if entry.timestamp:
            own = replace(own, timestamp=entry.timestamp, context=entry.context)
        else:
            # The statement was derived at the start from the server's texts, and runs when the
            # exchange does.
            own = replace(own, context=own.context.of_server_text())
        own_statement = replace(own, sql=retarget(classify(own, own.sql), renamed))
        return Replay(own_statement, classify(own_statement, own_statement.sql))
