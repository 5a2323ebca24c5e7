"""The source reader: follows one binlog and sends its segments to the groups."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Never

import anyio
import anyio.to_thread
import structlog

from actors.counting.task_counts import SourceCounts
from actors.errors.faults import FatalError
from actors.jobs.backoff import until_done
from actors.mailboxes.actor import Actor, Mailbox
from actors.mailboxes.messages import Drain, SegmentEnd, TargetSegment, WriterMessage
from actors.reading.cascade_routes import CascadeRoutes
from actors.reading.held_targets import HeldTargets, Route
from actors.reading.idle_streams import IdleStream
from actors.reading.moving_tables import MovingTables
from actors.reading.prepared_transactions import PreparedCheck, PreparedLookup
from actors.reading.side_effects import NOTHING_UNSEEN, SideEffects, Unseen
from actors.reading.source_faults import StreamErrors
from actors.reading.statement_reader import NOTHING, StatementReader, Step
from actors.reading.uncopied_members import UncopiedMemberError
from actors.sharding.group import GroupActor
from actors.sharding.moved_shards import MovedShards
from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.events.event_header import row_event_types
from replicator.binlog.events.xa_events import UnknownTransactionError
from replicator.binlog.positions.gtid import GtidStart
from replicator.binlog.positions.position import SourcePosition
from replicator.binlog.segments.row_events import RowEvents
from replicator.binlog.segments.segment import RouteSlot, Segment, Statement
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.ddl.parser.statement import ParsedStatement
from replicator.downstream.meta.statement_gtids import StatementGtidStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import Member, TableName
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.sequences import has_columns_of_sequence
from replicator.watermark import Place


@dataclass(slots=True)
class ReaderProgress:
    """A reader's progress, for `status`.

    ``reports``: how often the source had no more events.
    """

    state: str = "starting"
    position: SourcePosition | None = None
    timestamp: int = 0
    behind: bool = True
    reports: int = 0
    error: str = ""
    all_read_at: float = 0.0

    def lag(self) -> float | None:
        """Return the seconds between the newest event read and now, by both clocks.

        Return None without one.

        The result is 0 once the source has reported that it has no more events. If the source is no
        longer read, it is the time since then, because the source may continue.
        """
        if not self.behind:
            return 0.0
        newest = max(self.timestamp, self.all_read_at)
        return max(0.0, time.time() - newest) if newest else None

    def leave(self, state: str, error: str = "") -> None:
        """Record that the source is not read at present."""
        if not self.behind:
            self.all_read_at = time.time()
        self.state, self.behind, self.error = state, True, error


RETRY_WAIT = (0.1, 15.0)
"""Seconds before the first attempt to reconnect, and the maximum before later ones."""


@dataclass(frozen=True, slots=True)
class SourceSettings:
    """One source: its name, its binlog, and the limits of one read.

    ``by_gtid``: whether GTIDs can find its position on another server.
    """

    source: str
    binlog: BinlogSource
    limits: SegmentLimits
    by_gtid: bool = False


@dataclass(frozen=True, slots=True)
class ReaderTools:
    """The objects that a source's reader uses in every incarnation.

    ``counts`` gets the numbers of events read.
    """

    registry: SchemaRegistry
    writer: Mailbox[WriterMessage]
    counts: SourceCounts
    side_effects: SideEffects
    statement_gtids: StatementGtidStore
    moved: MovedShards = field(default_factory=MovedShards)


class SourceReader(Actor[Never]):
    """Reads segments in a thread, sends each part to its group and the segment's end to the writer.

    A lost connection is reopened indefinitely, with growing pauses, and reading continues after the
    last event that was sent; after damage, only once. Anything unreadable is a fault.

    ``group_of`` returns the group of a target, by its number. Events of ``held`` targets are not
    sent on.
    """

    def __init__(
        self,
        settings: SourceSettings,
        start: SourcePosition | GtidStart,
        statements: StatementReader,
        tools: ReaderTools,
        group_of: Callable[[int], GroupActor],
        held: HeldTargets,
        *,
        epoch: int,
    ) -> None:
        super().__init__(f"reader {settings.source}", capacity=1)
        self.settings = settings
        self.progress = ReaderProgress()
        self.held = held
        self._start = start
        self._statements = statements
        self._registry = tools.registry
        at = start.binlog.key if isinstance(start, SourcePosition) else None
        self._cascades = CascadeRoutes(settings.source, tools.registry, statements.members, at)
        self._moving = statements.moving = MovingTables(
            settings.source,
            epoch,
            tools.registry,
            tools.moved,
            held.holds,
            statements.target,
            self.family,
        )
        self._writer = tools.writer
        self._group_of = group_of
        self._counts = tools.counts
        self._side_effects = tools.side_effects
        self._statement_gtids = tools.statement_gtids
        self._epoch = epoch
        self._next_segment = 0
        self._resume_after: Place | None = None
        self._unfinished: Statement | None = None
        self._stream: BinlogStream | None = None
        self._make_stream = partial(BinlogStream, settings.binlog, limits=settings.limits)
        self._prepared = PreparedLookup(settings.source, self._make_stream)
        self._prepared_check = PreparedCheck(settings.source)
        self._errors = StreamErrors(settings.source, by_gtid=settings.by_gtid)
        self._limiter = anyio.CapacityLimiter(1)
        # The lock is held while a transaction is sent, which may have several segments.
        self._transaction = anyio.Lock(fast_acquire=True)
        self._inside = False
        self._uncopied: dict[TableName, TableName] = {}
        self._retired: set[TableName] = set()
        self._waiting = anyio.CancelScope()
        self._finishing = False
        self._finished = anyio.Event()
        self._log = structlog.get_logger().bind(source=settings.source)

    async def loop(self) -> None:
        """Connect, and read until the connection is lost; repeat until `finish`."""
        try:
            while not self._finishing:
                with anyio.CancelScope() as self._waiting:
                    await self._connect()
                try:
                    await self._follow()
                except StreamLostError as error:
                    self._counts.reconnects += 1
                    self._lost(error)
        finally:
            self._finished.set()

    @property
    def last_segment(self) -> int:
        """The number of the last segment sent; -1 before the first."""
        return self._next_segment - 1

    @property
    def idle(self) -> IdleStream | None:
        """The stream, if the source has reported that it has no more events."""
        progress = self.progress
        if progress.behind or progress.position is None:
            return None
        return IdleStream(progress.position.binlog, progress.reports, self._reopen)

    def _reopen(self) -> None:
        if self._stream is not None:
            self._stream.close()

    async def finish(self) -> None:
        """Stop reading between two segments; return when the last one is sent."""
        self._finishing = True
        self._waiting.cancel()
        await self._finished.wait()

    async def on_stop(self) -> None:
        """Close the connection, which also ends a read in progress in the thread."""
        # The rows that it has sent are still to be written, perhaps for another start at once.
        self.progress.leave("finishing", self.progress.error)
        self._side_effects.close()
        self._prepared.close()
        if self._stream is not None:
            self._stream.close()

    async def _connect(self) -> None:
        await until_done(self._open, StreamLostError, RETRY_WAIT, self._lost)

    async def _open(self) -> None:
        if self._stream is not None:
            self._stream.close()
        stream = self._stream = self._make_stream(
            self._start, route=self._route, resume_after=self._resume_after
        )
        try:
            server = await anyio.to_thread.run_sync(
                stream.open, limiter=self._limiter, abandon_on_cancel=True
            )
        except StreamLostError:
            raise
        except BinlogError as error:
            raise self._translated(error) from error
        self._prepared.log_purged(stream.purged)
        self._statements.follow(server)
        self.progress.state = "reading"
        self.progress.error = ""
        self._log.info("source.connected", position=str(self._start))

    async def _follow(self) -> None:
        assert self._stream is not None
        while not self._finishing:
            segment: Segment | None = None
            try:
                with anyio.CancelScope() as self._waiting:
                    segment = await anyio.to_thread.run_sync(
                        self._stream.read_segment, limiter=self._limiter, abandon_on_cancel=True
                    )
            except UnknownTransactionError as error:
                await self._look_back(error)
                return
            except BinlogError as error:
                raise self._translated(error) from error
            if segment is None:
                return
            reach(Failpoint.SEGMENT_READ)
            readings = self._readings
            # It is classified once; later questions use the result.
            parsed = self._parsed(segment)
            unseen = NOTHING_UNSEEN if parsed is None else await self._unseen(segment, parsed)
            if not self._inside:
                await self._transaction.acquire()
            await self._deal(segment, parsed, unseen)
            self._inside = not segment.complete
            if not self._inside:
                self._transaction.release()
            await self._prepared_check.look(self._stream, segment, self._limiter)
            if self._readings > readings:
                # The server lets one stream of this id read at a time.
                return

    async def _look_back(self, missing: UnknownTransactionError) -> None:
        """Find a transaction that was prepared before reading began."""
        assert self._stream is not None
        self._stream.close()
        find = partial(self._prepared.find, self._start, missing)
        self._start = await anyio.to_thread.run_sync(
            find, limiter=self._limiter, abandon_on_cancel=True
        )

    def _translated(self, error: BinlogError) -> FatalError | StreamLostError:
        return self._errors.of(error, (self._start, self._resume_after), self._uncopied)

    @property
    def _readings(self) -> int:
        return self._side_effects.readings + self._statements.online.readings

    def _parsed(self, segment: Segment) -> ParsedStatement | None:
        """Return the statement that ends a segment; None if there is none.

        A statement that was sent before the connection was lost in its transaction counts once.
        """
        statement = segment.statement
        if statement is None or statement == self._unfinished:
            return None
        return self._statements.parsed(statement, statement.sql)

    async def _unseen(self, segment: Segment, parsed: ParsedStatement) -> Unseen:
        """Return facts about a segment's statement that the binlog does not have.

        They are determined before any part of the segment is sent on, because the connection may be
        lost.
        """
        statement = segment.statement
        assert statement is not None
        await self._statements.online.look_ahead(parsed, statement, segment.end)
        if self._statements.writes_unseen(statement, parsed):
            return Unseen(await self._side_effects.doubt(statement, parsed, segment.end))
        if self._statements.drops_in_part(parsed):
            return Unseen(left=await self._side_effects.left(statement, parsed, segment.end))
        if names := self._statements.unclear(parsed):
            return Unseen(
                views=await self._side_effects.views(statement, parsed, names, segment.end)
            )
        return NOTHING_UNSEEN

    async def _deal(self, segment: Segment, parsed: ParsedStatement | None, unseen: Unseen) -> None:
        if parsed is None:
            await self._deal_step(NOTHING, segment, segment.rows, complete=segment.complete)
        else:
            if segment.rows:
                # The rows are sent separately: if the statement is refused, they are still applied.
                await self._deal_step(NOTHING, segment, segment.rows, complete=False)
            steps = await self._named_steps(segment, parsed, unseen)
            await self._statements.online.save()
            for step in steps:
                last = step is steps[-1]
                await self._deal_step(step, segment, {}, complete=segment.complete and last)
        self._note(segment)

    async def _named_steps(
        self, segment: Segment, parsed: ParsedStatement, unseen: Unseen
    ) -> list[Step]:
        """Return the steps. The GTID is recorded before anything else of the statement is saved."""
        statement = segment.statement
        assert statement is not None
        try:
            steps = self._steps(segment, statement, parsed, unseen)
        except FatalError:
            # The operator may decide about it.
            self._note_gtid(statement)
            if statement.gtid:
                await self._statement_gtids.save()
            raise
        kept = self._statements.online.unsaved or self._moving.any_waits
        if kept or any(step.effects for step in steps):
            self._note_gtid(statement)
        return steps

    def _note_gtid(self, statement: Statement) -> None:
        if statement.gtid:
            places = statement.transaction, statement.position.key
            self._statement_gtids.note(self.settings.source, places, statement.gtid)

    def _steps(
        self, segment: Segment, statement: Statement, parsed: ParsedStatement, unseen: Unseen
    ) -> list[Step]:
        try:
            steps = self._statements.steps(segment, statement, parsed, unseen)
        except FatalError as error:
            of_table = error.event == "member.not-copied"
            scope = self._statements.scope_of(parsed) if of_table else error.scope
            if not self.held.holds_all(scope, statement):
                raise
            return [Step(statement)]
        route = self._statements.target
        return [self._without_held(step, route) for step in steps]

    def _without_held(self, step: Step, route: Route) -> Step:
        """Return a step without the effects on held targets."""
        effects = [effect for of in step.effects.values() for effect in of]
        self._cascades.follow(effects)
        kept = self.held.without_held_effects(step, route)
        for effect in effects:
            if self.held.holds(effect.target):
                # Its later rows have a structure that is not learned yet.
                children = map(route, self._cascades.below(effect.table))
                self.held.tie(effect.target, {child for child in children if child is not None})
        return kept

    async def _deal_step(
        self, step: Step, segment: Segment, rows: Mapping[int, RowEvents], *, complete: bool
    ) -> None:
        if self._statements.cascades_unlogged:
            rows = self._cascades.added(rows)
        rows = self.held.without_held_rows(rows, segment.timestamp)
        await self._origins_learned(step)
        end = SegmentEnd(
            source=self.settings.source,
            epoch=self._epoch,
            segment=self._next_segment,
            targets=frozenset(rows) | frozenset(step.effects),
            end=segment.end,
            complete=complete,
            timestamp=segment.timestamp,
            bytes=segment.bytes if rows else 0,
        )
        self._next_segment += 1
        await self._writer.put(end)
        for target in sorted(end.targets):
            await self._group_of(target).mailbox.put(
                TargetSegment(
                    source=end.source,
                    epoch=end.epoch,
                    segment=end.segment,
                    target=target,
                    rows=rows.get(target),
                    effects=step.effects.get(target, ()),
                    statement=step.statement,
                )
            )

    async def release(self, target: int, size: int) -> None:
        """Send the group of a target an empty segment, to fill with ``size`` bytes of held rows.

        The segment is between two transactions, so that a row that moves between shards stays
        complete.
        """
        async with self._transaction:
            if self._finishing:
                return
            assert isinstance(self._start, SourcePosition), "rows are held, and none was read"
            number = self._next_segment
            self._next_segment += 1
            end = SegmentEnd(
                source=self.settings.source,
                epoch=self._epoch,
                segment=number,
                targets=frozenset((target,)),
                end=self._start,
                complete=True,
                timestamp=self.progress.timestamp,
                bytes=size,
            )
            await self._writer.put(end)
            empty = TargetSegment(end.source, self._epoch, number, target, rows=None, release=True)
            await self._group_of(target).mailbox.put(empty)

    async def _origins_learned(self, step: Step) -> None:
        """Wait until the tables in other targets that a target's table depends on are known.

        Each target learns the structures of its own shards, at its own pace.
        """
        origins: set[int] = set()
        for number, effects in step.effects.items():
            named = (name for effect in effects for name in effect.origins)
            targets = {target for name in named if (target := self._statements.target(name))}
            origins |= {self._registry.target(t) for t in targets if not self.held.holds(t)}
            origins.discard(number)
        for number in sorted(origins):
            learned = anyio.Event()
            await self._group_of(number).mailbox.put(Drain(learned))
            await learned.wait()

    def _note(self, segment: Segment) -> None:
        self._start = segment.end
        dealt = [rows.last for rows in segment.rows.values()]
        if segment.complete:
            self._resume_after = self._unfinished = None
        else:
            self._resume_after = max(dealt) if dealt else self._resume_after
            self._unfinished = segment.statement or self._unfinished
        progress = self.progress
        progress.position = segment.end
        progress.timestamp = segment.timestamp or progress.timestamp
        progress.behind = not segment.caught_up
        progress.reports += segment.caught_up
        read_until = time.time() if segment.caught_up else segment.timestamp
        self._counts.add(sum(map(len, segment.rows.values())), segment.bytes, read_until)
        for rows in segment.rows.values():
            for member, number in rows.members.items():
                shard = self._counts.shards[self._registry.member(member).name]
                shard.rows += number
                shard.until = segment.timestamp or shard.until

    def _route(self, schema: str, table: str, types: bytes) -> RouteSlot | None:
        """Return the route of a table's rows. The stream calls this method in its thread."""
        name = self._statements.known_as(TableName(schema, table))
        if self._statements.others.is_sequence(name) and has_columns_of_sequence(types):
            return None
        if self._moving.waits(name):
            return None
        target = self._statements.target(name)
        if target is None:
            self._statements.online.log_left_out(name)
            self._log_retired(name)
            return None
        copied = self._statements.is_copied(name)
        if not copied and not self.held.holds(target):
            self._uncopied = {name: target}
            raise UncopiedMemberError(f"rows of {name}, which was never copied")
        member = self._registry.join(Member(self.settings.source, name), target)
        if copied:
            self._statements.members.add(name)
        else:
            # The statement that makes it a member may also be held. Nothing of it is sent on.
            self._registry.leave(member)
        event_filter = self._statements.settings.event_filter
        left_out = event_filter.rows_left_out(name.schema, name.table)
        return RouteSlot(self._registry.target(target), member, row_event_types(left_out))

    def _log_retired(self, name: TableName) -> None:
        """Log once that rows of a retired shard are not applied."""
        _, place = self._registry.retired.get(Member(self.settings.source, name), (None, None))
        at = self._start.binlog.key if isinstance(self._start, SourcePosition) else None
        if place is not None and at is not None and at >= place and name not in self._retired:
            self._retired.add(name)
            self._log.warning("shard.retired-rows", shard=str(name), position=str(self._start))

    def family(self, name: TableName) -> Set[TableName]:
        """Return the tables that foreign keys with unlogged actions connect with a table."""
        return self._cascades.family(name) if self._statements.cascades_unlogged else frozenset()

    def _lost(self, error: StreamLostError, times: str = "", seconds: float = 0.0) -> None:
        """Report a lost connection; ``times`` and ``seconds`` describe an attempt to connect."""
        self.progress.leave("reconnecting", f"{error} ({times})" if times else str(error))
        self._log.warning(
            "source.lost",
            error=str(error),
            position=str(self._start),
            times=times,
            seconds=round(seconds, 1),
        )
