"""Copies one chunk, inside an executor: rows and record in one transaction of the target."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from pymysql.constants import ER
from pymysql.err import MySQLError
from pyspark import SparkContext

from replicator.binlog.errors import BinlogError, OtherServerError
from replicator.binlog.positions.position import BinlogPosition
from replicator.downstream.fence import Fence, FencedError, Mismatch
from replicator.downstream.meta.chunk_records import ReadChunk, lock_chunk, record_chunk
from replicator.downstream.rows.bulk_statements import NotTypedError
from replicator.downstream.rows.key_lookup import KeyFields, key_condition
from replicator.downstream.rows.load_data import InexactLoadError
from replicator.downstream.rows.statements import (
    RowRefusedError,
    TargetChangedError,
    confirm_plan,
    insert_rows,
)
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.downstream.rows.transaction import OutOfPatienceError, transaction, until_done
from replicator.downstream.rows.write_session import Session
from replicator.failpoints import Failpoint, reach, take_settings
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.errors import DUPLICATE_KEY, NO_SUCH_TABLE, ErrorCode, error_code, error_text
from replicator.mysql.names import folded
from replicator.mysql.row_values import without_values
from replicator.mysql.server.binlog_end import BinlogEnd, blocking_binlog_end
from replicator.mysql.server.identity import ServerIdentity
from replicator.pipeline.copy.chunk_progress import ProgressWriter
from replicator.pipeline.copy.copy_plan import (
    CopyChunk,
    SnapshotTable,
    TableCopy,
    TargetShard,
    no_room_query,
)
from replicator.pipeline.copy.copy_reading import (
    SourceFailedError,
    converted,
    read_text,
    read_typed,
)
from replicator.pipeline.copy.copy_writing import (
    Block,
    Counter,
    OnDuplicate,
    Tell,
    Writing,
    tell_nobody,
    write_blocks,
    write_typed,
)
from replicator.pipeline.copy.key_conflicts import key_conditions
from replicator.pipeline.copy.source_stream import SourceStream
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks
from replicator.pipeline.workers.worker_pool import share_slots
from replicator.routing.columns.column_mapping import MappedColumn

ROWS_AT_ONCE = 500

MOVING_SECONDS = (0.2, 0.5, 1.0, 2.0)
"""Seconds of pauses between attempts to find the shard that has a key."""


class OwnRows:
    """Writes rows of one shard over its own earlier rows on the target, never over another shard's.

    If a shard is copied again, the target has rows of it, from an earlier chunk or from the binlog.
    These can't be distinguished from another shard's rows with the same key, which must not be lost
    silently. So if the target has a key, it is searched for in the target's other shards. Call
    `close` at the end.

    Args:
        addresses: the addresses of the shards' servers, by source.
    """

    def __init__(
        self, session: Session, copy: TableCopy, addresses: Mapping[str, DatabaseAddress]
    ) -> None:
        assert copy.other_shards is not None, f"{copy} is not copied once more"
        self._session = session
        self._copy = copy
        self._other_shards = copy.other_shards
        self._addresses = addresses
        self._streams: dict[str, SourceStream] = {}
        self._open = ExitStack()
        names = [folded(column.name) for column in copy.columns]
        self._places = [names.index(folded(column.name)) for column in copy.target_key]

    def close(self) -> None:
        """Close the connections to the other shards."""
        self._open.close()

    def write(self, lines: Sequence[bytes]) -> int:
        """Write rows; return how many were replaced. Raises RowRefusedError, the driver's error."""
        return sum(
            self._write(lines[first : first + ROWS_AT_ONCE])
            for first in range(0, len(lines), ROWS_AT_ONCE)
        )

    def _write(self, lines: Sequence[bytes]) -> int:
        copy, there = self._copy, 0
        target = copy.target.quoted.encode()
        keys = [self._key(line) for line in lines]
        matching = key_condition(keys)
        if self._session.rows(b"SELECT 1 FROM %s WHERE %s LIMIT 1" % (target, matching)):
            own = keys
            if self._held(lines[0], keys):
                own = [k for line, k in zip(lines, keys, strict=True) if not self._held(line, [k])]
            if own:
                answer = self._session.run(
                    b"DELETE FROM %s WHERE %s" % (target, key_condition(own))
                )
                there = answer.affected
        # A row is refused here if the target still has another shard's row with the same key.
        insert_rows(self._session, copy.target, copy.columns, lines, exact=True)
        return there

    def _key(self, line: bytes) -> KeyFields:
        fields = line.split(b"\t")
        return [(self._copy.columns[place], fields[place]) for place in self._places]

    def _held(self, line: bytes, keys: Sequence[KeyFields]) -> bool:
        """Return whether another shard has one of the keys; ``line`` is the first of their rows."""
        # The target may treat a different text as the same key.
        collated = not self._copy.again
        for shard in self._other_shards:
            pages = (key_conditions(_by_name(key), shard.rules, collated=collated) for key in keys)
            found = [b" AND ".join(page) or b"TRUE" for page in pages if page is not None]
            if not found:
                continue
            table, where = shard.table.quoted.encode(), b") OR (".join(found)
            try:
                rows = self._stream(shard).rows(
                    b"SELECT 1 FROM %s WHERE (%s) LIMIT 1" % (table, where)
                )
            except MySQLError as error:
                if error_code(error) == ER.UNKNOWN_COLLATION:
                    return True
                if error_code(error) not in NO_SUCH_TABLE | {ER.BAD_FIELD_ERROR}:
                    raise
                raise RowRefusedError(
                    error_code(error),
                    f"its key is there, and {shard.source}: {shard.table} can't be"
                    f" asked whether it has that key, too: {error_text(error)}",
                    line,
                    0,
                ) from error
            if rows:
                return True
        return False

    def _stream(self, shard: TargetShard) -> SourceStream:
        if shard.source not in self._streams:
            stream = self._streams[shard.source] = SourceStream(self._addresses[shard.source])
            self._open.callback(stream.close)
        return self._streams[shard.source]


def _by_name(key: KeyFields) -> dict[str, tuple[TargetColumn, bytes]]:
    return {folded(column.name): (column, field) for column, field in key}


LOCK_SECONDS = 1
"""Maximum seconds of one attempt to lock a table; new writers of the table wait with it."""

CHANGED = NO_SUCH_TABLE | {ER.BAD_FIELD_ERROR, ER.KEY_DOES_NOT_EXITS}
"""Unknown column, key, table or database: the shard does not have the planned structure."""

_OLD_SNAPSHOT = frozenset({ER.TABLE_DEF_CHANGED})
"""The table was created again after the snapshot began, by a TRUNCATE or another statement: a new
snapshot shows its present rows."""

_SHOWN_BYTES = 400


class CopyOutcome(StrEnum):
    """The outcome of a chunk. Only DONE has changed the target."""

    DONE = "done"
    DUPLICATE = "duplicate"
    """A row has a key that the target already has."""
    REFUSED = "refused"
    """The target refuses a row, or the source refuses the query."""
    CHANGED = "changed"
    """The shard's structure is not the one that the copy was planned for."""
    UNREACHABLE = "unreachable"
    """A server was unreachable, or other transactions held locks, for too long."""
    TARGET_CHANGED = "target-changed"
    """The target's structure is not the one that the copy was planned for."""
    NO_ROOM = "no-room"
    """A value of a mapped column has no room for the shard's number."""
    OTHER_SERVER = "other-server"
    """The server at the source's address is not the one that the copy began on."""
    OUT_OF_STEP = "out-of-step"
    """The target does not have the state that this run committed: another run has taken over the
    task, or commits were lost."""


@dataclass(frozen=True, slots=True)
class CopySettings:
    """How to reach the servers, and how to write.

    Attributes:
        sources: addresses, by source.
        on_duplicate: the treatment of rows whose key exists, by source.
        chunk_table: quoted name of the table of chunk records.
        fence: distinguishes writers of this run from all others.
        followed: the sources whose binlog can be followed after the copy.
        load_data: whether to write with LOAD DATA.
        patience: seconds for which an executor retries to reach a server.
        tracked_table: quoted name of the table for the keys of rows that were already on the target
            (`replicator.downstream.meta.tracked_keys`); empty if they need not be recorded.
        servers: by source, the server from which rows are read, if it is known.
        show_values: whether errors may contain values of rows.
    """

    target: DatabaseAddress
    sources: Mapping[str, DatabaseAddress]
    on_duplicate: Mapping[str, OnDuplicate]
    chunk_table: str
    fence: Fence
    followed: frozenset[str]
    load_data: bool
    patience: float
    tracked_table: str = ""
    servers: Mapping[str, ServerIdentity] = field(default_factory=dict)
    show_values: bool = False


@dataclass(frozen=True, slots=True)
class ChunkOutcome:
    """The result of copying a chunk.

    Attributes:
        rows: number of rows sent.
        size: bytes of the rows sent.
        replaced: number of rows that replaced rows with the same key.
        ignored: number of rows left out because their key was on the target.
        source: the unreachable source; empty if all sources were reachable.
        waited: whole seconds since that server was first unreachable.
        line: the line of the row that the outcome is about.
        mismatch: the state that the fence found on the target instead of the expected one.
    """

    chunk: CopyChunk
    outcome: CopyOutcome
    rows: int = 0
    size: int = 0
    replaced: int = 0
    ignored: int = 0
    code: int = 0
    message: str = ""
    source: str = ""
    waited: int = 0
    line: bytes = b""
    mismatch: Mismatch | None = None

    @property
    def row(self) -> str:
        """The row that the outcome is about, as text for people; a long one is cut."""
        return self.line[:_SHOWN_BYTES].decode("utf-8", "backslashreplace")


class ShardChangedError(Exception):
    """The shard's structure is not the one that the copy was planned for."""


@dataclass(slots=True)
class _Attempts:
    """The state that all attempts at a chunk share.

    Attributes:
        tell: function called with the progress of the present attempt.
        source: the source queried last; empty if it was the target.
    """

    tell: Tell
    source: str = ""


class NoRoomError(Exception):
    """A value of a mapped column in the shard leaves no room for the shard's number."""


def copy_chunk(chunk: CopyChunk, settings: CopySettings, tell: Tell = tell_nobody) -> ChunkOutcome:
    """Copy a chunk exactly once, however often this is called.

    If a connection is lost, even during COMMIT, the chunk is copied again: its record on the target
    shows whether it was committed. A refusal of a server is returned as an outcome.

    Args:
        tell: called with the rows and bytes sent so far.
    """
    attempts = _Attempts(tell)
    try:
        try:
            return _until_done(partial(_copied, chunk, settings, attempts), settings)
        except RowRefusedError as error:
            if (
                error.code not in DUPLICATE_KEY
                or chunk.copy.other_shards is None
                or chunk.copy.exact
            ):
                raise
            return _over_moved(chunk, settings, attempts)
    except RowRefusedError as error:
        duplicate = error.code in DUPLICATE_KEY
        outcome = CopyOutcome.DUPLICATE if duplicate else CopyOutcome.REFUSED
        text = error.shown(values=settings.show_values)
        return ChunkOutcome(chunk, outcome, code=error.code, message=text, line=error.line)
    except ShardChangedError as error:
        return ChunkOutcome(chunk, CopyOutcome.CHANGED, message=str(error))
    except TargetChangedError as error:
        return ChunkOutcome(chunk, CopyOutcome.TARGET_CHANGED, message=str(error))
    except NoRoomError as error:
        return ChunkOutcome(chunk, CopyOutcome.NO_ROOM, message=str(error))
    except FencedError as error:
        return ChunkOutcome(
            chunk, CopyOutcome.OUT_OF_STEP, message=str(error), mismatch=error.mismatch
        )
    except OtherServerError as error:
        return ChunkOutcome(chunk, CopyOutcome.OTHER_SERVER, message=str(error))
    except BinlogError as error:
        return ChunkOutcome(chunk, CopyOutcome.REFUSED, message=str(error))
    except OutOfPatienceError as out:
        failed = _failed(chunk, CopyOutcome.UNREACHABLE, out.error)
        return replace(failed, source=attempts.source, waited=out.waited)
    except (MySQLError, OSError) as error:
        changed = error_code(error) in CHANGED
        failed = _failed(chunk, CopyOutcome.CHANGED if changed else CopyOutcome.REFUSED, error)
        if settings.show_values or not failed.code:
            return failed
        return replace(failed, message=without_values(failed.message, failed.code))


def _until_done(copy: Callable[[bool], ChunkOutcome], settings: CopySettings) -> ChunkOutcome:
    return until_done(copy, patience=settings.patience, passing=_OLD_SNAPSHOT)


def _copied(
    chunk: CopyChunk, settings: CopySettings, attempts: _Attempts, exact: bool
) -> ChunkOutcome:
    try:
        return _copy(chunk, settings, attempts, exact)
    except NotTypedError:
        return _copy(chunk, settings, attempts, exact, typed=False)


def _failed(chunk: CopyChunk, outcome: CopyOutcome, error: Exception) -> ChunkOutcome:
    return ChunkOutcome(chunk, outcome, code=error_code(error), message=error_text(error))


def _copy(
    chunk: CopyChunk,
    settings: CopySettings,
    attempts: _Attempts,
    exact: bool,
    *,
    over_own: bool = False,
    typed: bool = True,
) -> ChunkOutcome:
    copy = chunk.copy
    mode = settings.on_duplicate[copy.source]
    way = Writing(mode, settings.tracked_table, settings.load_data and not exact)
    typed = typed and copy.typed and way.load_data and mode is not OnDuplicate.IGNORE
    table, place = settings.chunk_table, (copy.source, copy.member, chunk.number)
    harmless = InexactLoadError, NotTypedError, ShardChangedError
    attempts.source = ""
    with transaction(settings.target, *harmless, patient=True) as session:
        if lock_chunk(session, table, settings.fence, *place):
            return ChunkOutcome(chunk, CopyOutcome.DONE)
        if copy.gone_at is not None:
            return _gone(session, chunk, table, copy.gone_at)
        positioned = copy.exact and copy.source in settings.followed
        address, server = settings.sources[copy.source], settings.servers.get(copy.source)
        attempts.source = copy.source
        with source_snapshot(address, copy, positioned, server) as (stream, read_at):
            attempts.source = ""
            counter = Counter(attempts.tell)
            blocks = counter.counted(converted(copy, read_text(stream, chunk)))
            try:
                if over_own:
                    replaced, ignored = _over_own(session, copy, blocks, settings.sources)
                elif typed and session.takes_typed_rows:
                    types, typed_blocks = read_typed(stream, chunk)
                    replaced, ignored = write_typed(
                        session, copy, types, typed_blocks, counter, way
                    )
                else:
                    replaced, ignored = write_blocks(session, copy, blocks, counter, way)
            except RowRefusedError:
                # If the shard does not have the planned structure, its rows may be refused although
                # rows of the planned structure would fit. The rest of the result must be read
                # before the connection can run another query.
                for _ in blocks:
                    pass
                check_structure(stream, copy)
                raise
            except SourceFailedError as failed:
                attempts.source = copy.source
                if error_code(failed.error) == ErrorCode.ER_DATA_OUT_OF_RANGE and copy.mapped:
                    _check_room(stream, chunk, copy.mapped, settings.show_values)
                raise failed.error from failed
            attempts.source = copy.source
            check_structure(stream, copy)
            # The table can't be altered during the snapshot, so every ALTER whose result was read
            # is before this position.
            read_by = _key(blocking_binlog_end(stream)) if copy.source in settings.followed else 0
        attempts.source = ""
        confirm_plan(session, copy.target)
        reach(Failpoint.CHUNK_WRITTEN)
        added = counter.rows - replaced - ignored
        read = ReadChunk(counter.rows, counter.size, read_at, copy.known_to, read_by, added)
        record_chunk(session, table, *place, read)
        reach(Failpoint.CHUNK_RECORDED)
        session.run(b"COMMIT")
        reach(Failpoint.CHUNK_COMMITTED)
    done = ChunkOutcome(chunk, CopyOutcome.DONE, replaced=replaced, ignored=ignored)
    return replace(done, rows=counter.rows, size=counter.size)


_streams: dict[tuple[DatabaseAddress, ServerIdentity | None], SourceStream] = {}


def _gone(session: Session, chunk: CopyChunk, table: str, gone_at: int) -> ChunkOutcome:
    copy = chunk.copy
    # Without a key, the binlog's rows from before the shard was emptied can't be distinguished from
    # copied ones.
    read = ReadChunk(0, 0, gone_at if copy.exact else 0, copy.known_to, 0, 0)
    record_chunk(session, table, copy.source, copy.member, chunk.number, read)
    session.run(b"COMMIT")
    return ChunkOutcome(chunk, CopyOutcome.DONE)


@contextmanager
def source_snapshot(
    address: DatabaseAddress,
    copy: TableCopy | SnapshotTable,
    positioned: bool,
    server: ServerIdentity | None = None,
) -> Iterator[tuple[SourceStream, int]]:
    """Open a connection that sees one state of the source, and find the position of that state.

    The position is 0 unless ``positioned``: only a table whose rows have no key must be copied at a
    known position. Other sessions can't write to it while the snapshot is taken or, if its engine
    has no snapshots, while it is read. ``server``: the server that must answer. Raises the driver's
    error and OtherServerError.
    """
    stream = _kept_stream(address, server) or SourceStream(address, server)
    try:
        if positioned:
            read_at = _begin_at_position(stream, partial(SourceStream, address, server), copy)
        else:
            stream.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")
            read_at = 0
        yield stream, read_at
        stream.run(b"COMMIT")
        if not copy.transactional:
            stream.unlock()
    except BaseException:
        stream.close()
        raise
    _streams[address, server] = stream


def _kept_stream(address: DatabaseAddress, server: ServerIdentity | None) -> SourceStream | None:
    """Return the connection of the last read, unless the server has closed it since."""
    stream = _streams.pop((address, server), None)
    if stream is not None and stream.is_gone():
        stream.close()
        return None
    return stream


def _begin_at_position(
    stream: SourceStream, connect: Callable[[], SourceStream], copy: TableCopy | SnapshotTable
) -> int:
    if not copy.transactional:
        # The engine has no snapshots: a query reads the rows that exist when it runs.
        stream.lock(copy.name, LOCK_SECONDS)
        return _key(blocking_binlog_end(stream))
    snapshot = stream.begin_snapshot()
    if snapshot is not None and snapshot.exact:
        return BinlogPosition(snapshot.file, snapshot.offset).key
    stream.run(b"ROLLBACK")
    # Starting a transaction releases a session's own table locks, hence a second one
    # (MySQL manual, "Interaction of Table Locking and Transactions").
    with closing(connect()) as holder:
        holder.lock(copy.name, LOCK_SECONDS)
        stream.run(b"START TRANSACTION WITH CONSISTENT SNAPSHOT")
        end = blocking_binlog_end(holder)
        holder.unlock()
    return _key(end)


def _key(end: BinlogEnd | None) -> int:
    return BinlogPosition(end.file, end.offset).key if end else 0


def check_structure(stream: SourceStream, copy: TableCopy) -> None:
    """Raise ShardChangedError if the structure is not the planned one.

    The snapshot that was read keeps the table from being altered until it ends.
    """
    if stream.fingerprint(copy.name) != copy.fingerprint:
        raise ShardChangedError(f"{copy} has changed since the copy was planned")


def _check_room(
    stream: SourceStream, chunk: CopyChunk, mapped: MappedColumn, show_values: bool
) -> None:
    """Raise NoRoomError if the chunk has a value that can't be mapped."""
    for (value,) in stream.rows(no_room_query(chunk)):
        try:
            mapped.mapped(int(value))
        except ValueError as error:
            shown = str(error) if show_values else "it is negative, or has no room below the number"
            raise NoRoomError(f"a value of {mapped.name} can't be mapped: {shown}") from error


def _over_own(
    session: Session,
    copy: TableCopy,
    blocks: Iterator[Block],
    addresses: Mapping[str, DatabaseAddress],
) -> tuple[int, int]:
    with closing(OwnRows(session, copy, addresses)) as rows:
        replaced = sum(rows.write(bytes(block).split(b"\n")[:-1]) for block, _ in blocks)
    return replaced, 0


def _over_moved(chunk: CopyChunk, settings: CopySettings, attempts: _Attempts) -> ChunkOutcome:
    """Copy a chunk some of whose keys are on the target already.

    While a row moves, it is in two shards for a moment, or only in the snapshot of this shard.
    """
    attempt = partial(_copy, chunk, settings, attempts, over_own=True)
    for seconds in MOVING_SECONDS:
        try:
            return _until_done(attempt, settings)
        except RowRefusedError as error:
            if error.code not in DUPLICATE_KEY:
                raise
        time.sleep(seconds)
    return _until_done(attempt, settings)


_KNOWN = frozenset({"chunk"})
"""Fields of an outcome that the driver already has."""


def copy_chunks(
    spark: SparkContext, chunks: Sequence[CopyChunk], settings: CopySettings, progress: str = ""
) -> tuple[ChunkOutcome, ...]:
    """Copy chunks one after the other in one Spark task; several jobs may run at once.

    Blocks until all are committed or one has failed; a failed chunk's outcome is the last one.
    Copying a chunk again changes nothing. Raises Spark's error if the job itself fails.

    Args:
        progress: path of the file to which the task writes its progress (`ProgressReader`), if any.
    """
    crash = (os.environ.get("REPLICATOR_CRASH_AT", ""), str(os.getpid()))
    share_slots(spark)
    # Use only one task: the load on a source is limited elsewhere.
    answers = run_in_tasks(spark, 1, _copy_all, (tuple(chunks), settings, crash, progress))
    return tuple(
        from_json(ChunkOutcome, answer, chunk=chunk)
        for chunk, answer in zip(chunks, answers, strict=False)
    )


def _copy_all(
    work: tuple[tuple[CopyChunk, ...], CopySettings, tuple[str, str], str], _: int
) -> Iterator[bytes]:
    chunks, settings, crash, path = work
    take_settings(*crash)
    with ProgressWriter(path) as progress:
        for chunk in chunks:
            outcome = copy_chunk(chunk, settings, progress.tell)
            progress.end_chunk(outcome.rows, outcome.size)
            yield to_json(outcome, without=_KNOWN)
            if outcome.outcome is not CopyOutcome.DONE:
                return
