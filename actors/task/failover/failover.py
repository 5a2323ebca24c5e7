"""Continues with another server at a source's address: a promoted replica, or a moved proxy.

Positions of two servers can't be compared, but GTIDs can. So a start finds the same transactions in
the new server's binlog, and replaces all saved positions of the source in one transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

import structlog
from pymysql.err import MySQLError

from actors.errors.faults import FatalError, fault
from actors.errors.refusals import refusal
from actors.reading.binlog_lookups import look_up
from actors.reading.source_faults import other_names, source_fault
from actors.saved.lock_state import dump_decision, dump_group, load_decision, load_group
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from actors.sharding.shard_mode import ShardMode
from actors.task.resources.resources import Resources
from actors.task.resources.unavailable_sources import Behind
from replicator.binlog.errors import BinlogError, OtherBinlogError, OtherOrderError
from replicator.binlog.positions.executed_gtids import Shortfall, shortfall
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.stream.gtid_positions import GtidPlaces, GtidSearch, find_places
from replicator.binlog.stream.nameless_transactions import refuse_nameless
from replicator.binlog.stream.other_node import is_other_node
from replicator.downstream.meta.checkpoint import GROUP_TABLE, Checkpoint, MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.ddl_overrides import DdlOverride, DdlOverrideStore
from replicator.downstream.meta.decisions import DDL_TABLE
from replicator.downstream.meta.failover_positions import (
    FailoverPositions,
    MarkedPlace,
    UnknownPlaceError,
    failovers,
    last_before,
    last_place,
    marked_places,
    move_checkpoint,
    move_places,
    move_texts,
    named_places,
    save_failover,
)
from replicator.downstream.meta.reconciliations import ReconciliationStore
from replicator.downstream.meta.statement_gtids import StatementGtidStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.asyncio_connection import Connection, Transaction
from replicator.mysql.names import TableName
from replicator.mysql.server.identity import ServerIdentity, server_identity
from replicator.schema.registry.registry import CopyState
from replicator.sharding.items import Cutover
from replicator.sharding.optimistic.history import MovedPlaces
from replicator.watermark import Place


@dataclass(frozen=True, slots=True)
class Failover:
    """A source whose ``former`` server is replaced: ``server`` answers at ``address``.

    The task has read the source up to ``position`` of the former server's binlog, with the GTID set
    ``executed``.
    """

    source: str
    address: str
    former: ServerIdentity
    server: ServerIdentity
    position: str
    executed: str

    def lacks(self, gtids: str) -> FatalError:
        """Return the fault that the server lacks transactions that the task has read before."""
        return self._fault("source.lacks-transactions", "lost", gtids=gtids)

    def unlogged(self, gtids: str) -> FatalError:
        """Return the fault that the server has applied these transactions without logging them."""
        return self._fault("source.lacks-transactions", "unlogged", gtids=gtids)

    def purged(self, gtids: str) -> FatalError:
        """Return the fault that the server's binlog no longer has the next transactions."""
        return self._fault("source.purged", "failover", gtids=gtids)

    def other_order(self, reason: str) -> FatalError:
        """Return the fault that the server's binlog has the transactions in another order."""
        return self._fault("source.other-order", reason=reason)

    def no_gtids(self) -> FatalError:
        """Return the fault that the source was followed by file and position."""
        return self._fault("source.failover-position-unknown", "no-gtids")

    def unknown(self, reason: str) -> FatalError:
        """Return the fault that a saved position can't be found by GTIDs."""
        return self._fault("source.failover-position-unknown", "not-found", reason=reason)

    def in_copy(self) -> FatalError:
        """Return the fault that the tables are being copied."""
        return self._fault("source.failover-in-copy", "behind")

    def _fault(
        self, failover_event: str, case: str = "", *, gtids: str = "", reason: str = ""
    ) -> FatalError:
        executed = f" ({self.executed})" if self.executed else ""
        return fault(
            failover_event,
            case,
            source=self.source,
            place=f"{self.position}{executed}",
            address=self.address,
            server=self.server,
            former=self.former,
            gtids=gtids,
            reason=reason,
        )


log = structlog.get_logger()


async def follow_moved_sources(resources: Resources) -> dict[str, Behind]:
    """Move the saved positions of sources with ``enable-gtid`` to the servers that answer now.

    Return the sources whose new server does not yet have all transactions, and whose positions are
    unchanged. Raises DatabaseUnavailableError, and FatalError if the move is not certain to be
    exact.
    """
    found: dict[str, Behind] = {}
    for source, setup in resources.setups.items():
        if not setup.use_gtid or source in resources.blocked.sources:
            continue
        checkpoint = await resources.meta.load(source)
        if checkpoint is None or not checkpoint.file:
            continue
        with closing(Connection(setup.address)) as upstream:
            try:
                server = await server_identity(upstream)
                if not checkpoint.server.is_same(server) or await _is_other_node(
                    setup, checkpoint, server, upstream
                ):
                    mode = SHARD_MODES[resources.task.shard_mode]
                    move = _Move(setup, resources.meta, checkpoint, server, mode)
                    behind = await move.run(upstream)
                    if behind is not None:
                        found[source] = behind
            except MySQLError as error:
                raise refusal(setup.address, error, source=source) from error
    return found


SavedToo = Callable[[Transaction], Awaitable[None]]
"""Saves more data in the transaction that moves the positions."""


async def begin_at(
    setup: SourceSetup,
    meta: MetaStore,
    checkpoint: Checkpoint,
    server: ServerIdentity,
    position: SourcePosition,
    also: SavedToo,
) -> None:
    """Rewrite everything saved of a source so that reading starts at a position.

    ``server`` has the position, and its anchor event is known. Raises DatabaseUnavailableError and
    FencedError.
    """
    move = _Move(setup, meta, checkpoint, server, SHARD_MODES[meta.shard_mode])
    await move.begin_at(position, also)


async def _is_other_node(
    setup: SourceSetup, checkpoint: Checkpoint, server: ServerIdentity, upstream: Connection
) -> bool:
    """Return whether another node with the same `server_id` answers (Galera).

    Raises FatalError if the binlog is not the one that was read.
    """
    if checkpoint.anchor is None:
        return False
    if not server.server_uuid:
        with suppress(MySQLError):
            # The node then shows the state that all nodes had at the time of the request.
            await upstream.fetch("SET SESSION wsrep_sync_wait = 1")
    executed = "" if server.server_uuid else checkpoint.gtid
    find = partial(is_other_node, anchor=checkpoint.anchor, executed=executed)
    try:
        return bool(await look_up(setup, server, upstream, find))
    except OtherBinlogError as error:
        place = BinlogPosition(checkpoint.file, checkpoint.offset)
        raise source_fault(setup.source, place, error) from error
    except BinlogError:
        # The reader finds this error again, and reports it.
        return False


async def _behind(setup: SourceSetup, executed: str, later: Collection[str], mariadb: bool) -> str:
    """Return why the task can't continue with a replica yet."""
    with closing(Connection(setup.address)) as upstream:
        try:
            has = await shortfall(upstream, executed, later, mariadb=mariadb)
        except MySQLError:
            # The next run finds this error again, and reports it.
            return ""
    if not has.coming:
        return ""
    return (
        f"source {setup.source}: {setup.address} is another server now, a replica that has not"
        f" applied all yet that was read from the server before; it lacks {has.lacking}"
    )


class _Move:
    """A source that another server has replaced."""

    def __init__(
        self,
        setup: SourceSetup,
        meta: MetaStore,
        checkpoint: Checkpoint,
        server: ServerIdentity,
        mode: ShardMode,
    ) -> None:
        self._setup = setup
        self._mode = mode
        self._meta = meta
        self._checkpoint = checkpoint
        self._server = server
        self._source = setup.source
        self._position = BinlogPosition(checkpoint.file, checkpoint.offset)
        self._failover = Failover(
            setup.source,
            str(setup.address),
            checkpoint.server,
            server,
            str(self._position),
            checkpoint.gtid,
        )

    async def run(self, upstream: Connection) -> Behind | None:
        """Find all positions, then rewrite them.

        If the server has not applied all transactions yet, return a function that gives the reason
        to wait.
        """
        saved = self._position.key
        self._refuse_other_kind()
        self._refuse_other_names()
        await self._refuse_in_copy()
        if not self._checkpoint.gtid:
            raise self._failover.no_gtids()
        marks = await marked_places(self._meta, self._source, saved)
        sets = self._sets(marks)
        answers = await self._answers()
        gtids = await self._statements({mark.place for mark in marks}, answers)
        mariadb, later = not self._server.server_uuid, (*sets.values(), *gtids.values())
        has = await shortfall(upstream, self._checkpoint.gtid, later, mariadb=mariadb)
        if has.coming:
            return partial(_behind, self._setup, self._checkpoint.gtid, later, mariadb)
        self._refuse_shortfall(has)
        left = await failovers(self._meta, self._source)
        sought = GtidSearch(
            self._checkpoint.gtid,
            frozenset(sets.values()),
            frozenset(gtids.values()),
            left,
            has.unlogged,
        )
        found = await self._find(upstream, sought)
        moves = FailoverPositions(
            saved,
            found.position.binlog.key,
            {place: found.transactions[gtid] for place, gtid in gtids.items()},
            {place: found.boundaries[gtid] for place, gtid in sets.items()},
        )
        note = partial(save_failover, number=len(left) + 1, logged=has.logged)
        await self._save(moves, found.position, answers, note)
        log.info(
            "source.failed-over",
            source=self._source,
            former=str(self._checkpoint.server),
            server=str(self._server),
            former_position=str(self._position),
            position=str(found.position.binlog),
            gtid=self._checkpoint.gtid,
        )
        return None

    async def begin_at(self, position: SourcePosition, also: SavedToo) -> None:
        """Rewrite all positions, so that they are before this position."""
        last = max(await last_place(self._meta, self._source), self._position.key)

        def note(place: Place) -> Place:
            nonlocal last
            last = max(last, place.transaction)
            return place

        await self._texts(note, note)
        await self._entries(note, note)

        async def save(transaction: Transaction, _: MetaStore, left: Checkpoint) -> None:
            await also(transaction)

        moves = FailoverPositions(last + 1, position.binlog.key)
        await self._save(moves, position, [], save)

    def _refuse_other_kind(self) -> None:
        if bool(self._server.server_uuid) != bool(self._checkpoint.server.server_uuid):
            raise self._failover.unknown("one is a MySQL, the other a MariaDB, with other GTIDs")

    def _refuse_other_names(self) -> None:
        if not self._checkpoint.server.names_alike(self._server):
            raise other_names(
                self._source,
                f"{self._setup.address} is another server now, with another lower_case_table_names",
                f"source {self._source}",
            )

    async def _refuse_in_copy(self) -> None:
        copy = (await CopyStore(self._meta).copies()).get(self._source)
        safe_end = (await ReconciliationStore(self._meta).safe_ends()).get(self._source)
        ends = safe_end, copy.end if copy else None
        behind = any(end and BinlogPosition(*end).key > self._position.key for end in ends)
        deferred = any(r.copying is not CopyState.COPIED for r in self._checkpoint.members)
        if behind or (copy is not None and (deferred or not copy.done)):
            raise self._failover.in_copy()

    def _sets(self, marks: list[MarkedPlace]) -> dict[Place, str]:
        """Return the GTID sets executed at the watermarks after the saved position.

        The sets are by position.
        """
        sets: dict[Place, str] = {}
        for mark in sorted(marks, key=lambda mark: mark.gtid):
            sets[mark.place] = mark.gtid
        for mark in marks:
            if not sets[mark.place]:
                raise self._failover.unknown(
                    f"bucket {mark.bucket} of {mark.target} stands inside a transaction, or its"
                    " GTIDs are not known"
                )
        return sets

    async def _answers(self) -> list[DdlOverride]:
        """Return the operator's overrides for statements after the saved position."""
        answers = await DdlOverrideStore(self._meta).load()
        saved = self._position.key
        return [a for a in answers if a.source == self._source and a.key >= saved]

    async def _statements(self, marked: set[Place], answers: list[DdlOverride]) -> dict[int, str]:
        """Return the GTIDs of the statements after the saved position that saved data names."""
        saved = self._position.key
        known = await StatementGtidStore(self._meta).load(self._source)
        named = await named_places(self._meta, self._source, saved)
        named.update(answer.key for answer in answers if answer.key in known)

        def note(place: Place) -> Place:
            if place not in marked and place.transaction >= saved:
                named.add(place.transaction)
            return place

        def note_before(place: Place) -> Place:
            named.update(last_before(place, saved, known))
            return place

        def note_near(place: Place) -> Place:
            known_here = place.ordinal <= 0 and place.transaction in known
            return note(place) if place in marked or known_here else note_before(place)

        await self._texts(note, note_before)
        await self._entries(note, note_near)
        missing = sorted(place for place in named if place not in known and place != saved)
        if missing:
            places = ", ".join(str(self._position.with_key(place)) for place in missing)
            raise self._failover.unknown(
                "something is saved of statements, or of an unlocked schema change, at places whose"
                f" GTIDs are not known ({places})"
            )
        return {place: known[place] for place in named if place in known}

    def _refuse_shortfall(self, found: Shortfall) -> None:
        if found.lacking and found.applied:
            raise self._failover.unlogged(found.lacking)
        if found.lacking:
            raise self._failover.lacks(found.lacking)
        if found.purged:
            raise self._failover.purged(found.purged)

    async def _find(self, upstream: Connection, sought: GtidSearch) -> GtidPlaces:
        log.info("source.failover-lookup", source=self._source, server=str(self._server))
        find = partial(find_places, sought=sought)
        try:
            found = await look_up(self._setup, self._server, upstream, find)
            if found is not None and self._server.server_uuid:
                certain = partial(refuse_nameless, at=found.position.binlog)
                await look_up(self._setup, self._server, upstream, certain)
        except OtherOrderError as error:
            raise self._failover.other_order(str(error)) from error
        except BinlogError as error:
            raise source_fault(self._source, self._position, error, by_gtid=True) from error
        if found is None:
            raise self._failover.unknown("the new server writes no binlog")
        return found

    async def _save(
        self,
        moves: FailoverPositions,
        position: SourcePosition,
        answers: list[DdlOverride],
        note: Callable[..., Awaitable[None]],
    ) -> None:
        moved = [_moved(answer, moves, position.binlog) for answer in answers]
        try:
            groups, decisions = await self._texts(moves.place, moves.before)
            entries = await self._entries(moves.place, moves.near)
            async with self._meta.saving() as transaction:
                await move_places(transaction, self._meta, self._source, moves)
                await DdlOverrideStore(self._meta).replace(
                    transaction, self._source, filter(None, moved)
                )
                key = ("source", "target_schema", "target_table")
                table = self._meta.table(GROUP_TABLE)
                await move_texts(transaction, table, key, "state", groups)
                key = ("target_schema", "target_table", "version")
                for column, texts in (("decision", decisions), ("entry", entries)):
                    table = self._meta.table(DDL_TABLE)
                    await move_texts(transaction, table, key, column, texts)
                place = (position.binlog.file, position.binlog.offset)
                mark = position.anchor
                assert mark is not None, f"no anchor was found with {position}"
                await move_checkpoint(
                    transaction, self._meta, self._source, place, mark, self._server
                )
                await note(transaction, self._meta, left=self._checkpoint)
                reach(Failpoint.FAILOVER_OPEN)
        except UnknownPlaceError as error:
            raise self._failover.unknown(str(error)) from error
        reach(Failpoint.FAILOVER_SAVED)
        for answer, now in zip(answers, moved, strict=True):
            if now is None:
                log.warning(
                    "ddl.override-forgotten",
                    source=self._source,
                    position=f"{answer.file}:{answer.offset}",
                    action=answer.action.value,
                    given=answer.statements,
                )

    async def _entries(self, exact: Move, near: Move) -> list[_Text]:
        """Return the moved texts of targets' entries that name positions of the source."""
        rows = await self._meta.connection.fetch(
            "SELECT target_schema, target_table, version, entry"
            f" FROM {self._meta.table(DDL_TABLE)} WHERE entry <> '' AND state = 'done'"
            " ORDER BY target_schema, target_table, version"
        )
        low = dict(self._checkpoint.low_watermarks)
        found: list[_Text] = []
        for target, group in groupby(rows, key=lambda row: TableName(row[0], row[1])):
            saved = [(tuple(key), str(text)) for *key, text in group]
            moves = MovedPlaces(self._source, exact, near, low.get(target))
            moved = self._mode.moved_entries([text for _, text in saved], moves)
            pairs = zip(saved, moved, strict=True)
            found += [(key, text) for (key, former), text in pairs if text != former]
        return found

    async def _texts(self, move: Move, back: Move) -> tuple[list[_Text], list[_Text]]:
        """Return the moved texts of the groups and decisions that name positions of the source."""
        fetch = self._meta.connection.fetch
        groups = await fetch(
            "SELECT source, target_schema, target_table, state"
            f" FROM {self._meta.table(GROUP_TABLE)} WHERE source = %s",
            (self._source,),
        )
        decisions = await fetch(
            "SELECT target_schema, target_table, version, decision, owner"
            f" FROM {self._meta.table(DDL_TABLE)} WHERE decision <> ''"
        )
        return (
            [(tuple(key), moved_group(text, move)) for *key, text in groups],
            [
                (tuple(key), moved_decision(text, self._source, owner, move, back))
                for *key, text, owner in decisions
            ],
        )


def _moved(
    override: DdlOverride, moves: FailoverPositions, now: BinlogPosition
) -> DdlOverride | None:
    """Return an override at its statement's position in the new binlog; None if unknown.

    ``now`` is the saved position in the new binlog.
    """
    try:
        key = moves.key(override.key)
    except UnknownPlaceError:
        return None
    at = now.with_key(key)
    return replace(override, file=at.file, offset=at.offset, key=key)


_Text = tuple[tuple[object, ...], str]
"""The key of a row, and its new text."""


Move = Callable[[Place], Place]
"""Maps a position in the former binlog to the new one."""


def moved_group(text: str, move: Move) -> str:
    """Return the state of a group of the source, with its positions in the new binlog."""
    state = load_group(text)
    members = ((name, replace(state, since=move(state.since))) for name, state in state.members)
    return dump_group(replace(state, members=tuple(members)))


def moved_decision(text: str, source: str, owner: str, move: Move, back: Move) -> str:
    """Return a decision with a moved cutover of the source; its ``owner`` may be another source.

    If a cutover is at a row of an unknown transaction, ``back`` moves it to the last statement
    before this row, or to the saved position. This has the same meaning: unless the cutover is
    forced, its members have had the item since then, because the last one got it by a statement.
    """
    decision = load_decision(text)

    def moved(cutover: Cutover) -> Cutover:
        at_a_row = cutover.at.ordinal > 0 and not cutover.forced
        return replace(cutover, at=(back if at_a_row else move)(cutover.at))

    cutovers = {
        name: moved(cutover) if name == source else cutover
        for name, cutover in decision.cutovers.items()
    }
    event = decision.event
    if owner == source:
        at = move(Place(event.statement.transaction, 0))
        event = replace(event, statement=replace(event.statement, transaction=at.transaction))
    shown = tuple(
        (name, move(at) if name == source else at, numbers) for name, at, numbers in decision.shown
    )
    return dump_decision(replace(decision, cutovers=cutovers, event=event, shown=shown))
