"""The changes of the targets since a switch, as SQL files for the shards.

The target's own binlog is read, from the position in the certificate to its present end.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import anyio
import anyio.to_thread

from actors.setup.task_setup import (
    SEGMENT_MAX_BYTES,
    SEGMENT_TARGET_BYTES,
    address_of,
    source_setups,
)
from actors.switching.switching import SwitchError
from config.models import Task
from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.errors import BinlogError
from replicator.binlog.positions.position import BinlogPosition, SourcePosition
from replicator.binlog.segments.row_events import RowEvents, RowKind
from replicator.binlog.segments.segment import RouteSlot, Statement
from replicator.binlog.segments.segment_builder import SegmentLimits
from replicator.binlog.stream.binlog_stream import BinlogStream
from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.parser.statement_kinds import classify
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import Member, TableName, folded
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.session_context.session_defaults import NATIVE_FOREIGN_KEYS
from replicator.pipeline.compare.repair_sql import HEAD, TRANSACTION_ROWS
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import PlanError, plan_table
from replicator.routing.columns.member_columns import AS_THEY_ARE
from replicator.rows.decoder.reference_decoder import ReferenceDecoder
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.inspection import read_table
from replicator.schema.structure.structure import Table
from replicator.switch.certificate import SwitchCertificate
from replicator.switch.shard_changes import (
    OwningShard,
    RowChanged,
    ShardChanges,
    UnplacedError,
)

UNPLACED = "unplaced.sql"


@dataclass(slots=True)
class ChangesWritten:
    """The rows and statements that were written.

    Attributes:
        statements: by shard, the number of its statements.
        unplaced: the number of changes that no shard gets.
        end: the position up to which the target's binlog was read.
    """

    statements: Counter[Member] = field(default_factory=Counter)
    unplaced: int = 0
    end: str = ""


class _Files:
    """The files in one folder: one for each shard, and one for changes that no shard gets."""

    def __init__(self, folder: Path, stack: ExitStack, written: ChangesWritten) -> None:
        self._folder = folder
        self._stack = stack
        self._open: dict[Member, BinaryIO] = {}
        self._written = written
        self._unplaced: BinaryIO | None = None

    def add(self, member: Member, statement: bytes) -> None:
        if member not in self._open:
            name = f"{member.source}.{member.name.schema}.{member.name.table}.sql"
            self._open[member] = self._begun(name.replace("/", "_"))
        elif self._written.statements[member] % TRANSACTION_ROWS == 0:
            self._open[member].write(b"COMMIT;\nSTART TRANSACTION;\n")
        self._open[member].write(statement + b";\n")
        self._written.statements[member] += 1

    def _begun(self, name: str) -> BinaryIO:
        file = self._stack.enter_context((self._folder / name).open("wb"))
        file.write(HEAD + b"START TRANSACTION;\n")
        return file

    def leave_out(self, reason: str, text: bytes) -> None:
        if self._unplaced is None:
            self._unplaced = self._stack.enter_context((self._folder / UNPLACED).open("wb"))
        words = " ".join(reason.split())
        lines = text.replace(b"\n", b"\n-- ")
        self._unplaced.write(b"-- %s\n-- %s;\n" % (words.encode(), lines))
        self._written.unplaced += 1

    def end(self) -> None:
        for file in self._open.values():
            file.write(b"COMMIT;\n")


@dataclass(slots=True)
class _Target:
    """A target, or a table without shards whose rows foreign keys of targets refer to.

    Attributes:
        changed: why its rows can't be assigned to the shards any more.
        referring: foreign keys of other targets that change rows when rows of this one change, each
            with its target, if the server does not log these changes.
        unseen: its foreign keys with a parent that can't be read, if the server does not log
            changes by them.
    """

    name: TableName
    table: Table
    shards: tuple[OwningShard, ...]
    changed: str = ""
    referring: list[tuple[_Target, ForeignKeyDefinition]] = field(default_factory=list)
    unseen: list[ForeignKeyDefinition] = field(default_factory=list)
    readers: dict[RowKind, tuple[ReferenceDecoder, TablePlan]] = field(default_factory=dict)

    def reader(self, kind: RowKind) -> tuple[ReferenceDecoder, TablePlan]:
        """Return the decoder of rows with a table map, and its plan.

        Raises PlanError, BinlogError.
        """
        if kind not in self.readers:
            own = Member("target", self.name)
            plan = plan_table(own, self.table, kind.table_map, self.table, 0, 1)
            self.readers[kind] = ReferenceDecoder(plan.rows), plan
        return self.readers[kind]


async def write_changes(task: Task, certificate: SwitchCertificate, folder: Path) -> ChangesWritten:
    """Write the changes of all targets since the switch to a folder.

    Raises SwitchError if the binlog can't be read, DatabaseUnavailableError and a server's error.
    """
    start = certificate.target
    if not start.file:
        raise _unreadable(start.remark or "the target wrote no binlog at the time of the switch")
    address = address_of(task.target_database)
    with closing(Connection(address)) as connection:
        end = await binlog_end(connection)
        targets = await _targets(task, certificate, connection)
    if end is None:
        raise _unreadable("the target writes no binlog")
    place = BinlogPosition(end.file, end.offset)
    server_id = 0x40000000 | zlib.crc32(f"since {task.name}".encode()) & 0x3FFFFFFF
    numbers = {(t.name.schema, t.name.table): n for n, t in enumerate(targets)}

    def route(schema: str, table: str, _: bytes) -> RouteSlot | None:
        number = numbers.get((schema, table))
        return None if number is None else RouteSlot(number, number)

    stream = BinlogStream(
        BinlogSource(address, server_id, None),
        SourcePosition(BinlogPosition(start.file, start.offset)),
        route=route,
        limits=SegmentLimits(target_bytes=SEGMENT_TARGET_BYTES, max_bytes=SEGMENT_MAX_BYTES),
    )
    written = ChangesWritten(end=str(place))
    await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
    with closing(stream), ExitStack() as stack:
        files = _Files(folder, stack, written)
        for target in targets:
            for foreign in target.unseen:
                files.leave_out(
                    f"the foreign key {foreign.name} of {target.name} may have changed its rows:"
                    f" the account can't read {parent_of(foreign, target.name.schema)}",
                    b"",
                )
        try:
            await anyio.to_thread.run_sync(_read, stream, place, targets, files)
        except BinlogError as error:
            raise _unreadable(str(error)) from error
        files.end()
    return written


def _read(
    stream: BinlogStream, end: BinlogPosition, targets: tuple[_Target, ...], files: _Files
) -> None:
    numbers = {target.name: target for target in targets}
    stream.open()
    while True:
        segment = stream.read_segment()
        for number, events in segment.rows.items():
            _write_rows(targets[number], events, files)
        if segment.statement is not None:
            _note_statement(segment.statement, numbers, files)
        if segment.caught_up or (segment.complete and segment.end.binlog.key >= end.key):
            return


def _write_rows(target: _Target, events: RowEvents, files: _Files) -> None:
    kinds = events.kind.tolist()
    for kind, event in zip(kinds, events.split(), strict=True):
        try:
            decoder, plan = target.reader(events.kinds[kind])
            block = decoder.decode([event])
        except (PlanError, BinlogError) as error:
            target.changed = target.changed or f"rows of {target.name} can't be read: {error}"
            files.leave_out(target.changed, b"")
            continue
        for before, after in zip(block.before.tolist(), block.after.tolist(), strict=True):
            _write_row(
                target,
                plan,
                RowChanged(
                    block.lines[before] if before >= 0 else None,
                    block.lines[after] if after >= 0 else None,
                ),
                files,
            )


def _write_row(target: _Target, plan: TablePlan, change: RowChanged, files: _Files) -> None:
    key = [column.name for column in plan.key_columns]
    try:
        if target.changed:
            raise UnplacedError(target.changed)
        made = [*ShardChanges(key, plan.target_columns, target.shards).statements(change)]
    except UnplacedError as error:
        itself = OwningShard(Member("", target.name), target.table, AS_THEY_ARE)
        made = [*ShardChanges(key, plan.target_columns, [itself]).statements(change)]
        if target.shards or target.changed:
            files.leave_out(str(error), made[0][1])
            return
    else:
        for member, statement in made:
            files.add(member, statement)
    for child, foreign in target.referring:
        if action := _action(foreign, plan.target_columns, change):
            files.leave_out(
                f"the foreign key {foreign.name} of {child.name} ({action}) changes its rows with"
                f" this row of {target.name}{_in_turn(child)}, and the target's server does not log"
                " it: do the same in the shard",
                b";\n".join(statement for _, statement in made),
            )


def _in_turn(target: _Target) -> str:
    """Return names of the targets whose rows foreign keys change, directly or indirectly.

    This concerns foreign keys that follow changes of rows of the given target.
    """
    found: dict[TableName, _Target] = {}
    waiting = [target]
    while waiting:
        for child, _ in waiting.pop().referring:
            if child.name not in found:
                found[child.name] = child
                waiting.append(child)
    names = ", ".join(sorted(map(str, found)))
    return f", and with these maybe rows of {names}" if names else ""


def _action(key: ForeignKeyDefinition, columns: Sequence[TargetColumn], change: RowChanged) -> str:
    """Return the action of a foreign key at a change of its parent; empty if there is none."""
    if change.before is None:
        return ""
    name, action = "DELETE", key.on_delete
    if change.after is not None:
        wanted = set(map(folded, key.parent_columns))
        pairs = zip(columns, change.before.split(b"\t"), change.after.split(b"\t"), strict=True)
        if all(old == new for column, old, new in pairs if folded(column.name) in wanted):
            return ""
        name, action = "UPDATE", key.on_update
    return f"ON {name} {action}" if action in ("CASCADE", "SET NULL", "SET DEFAULT") else ""


def _note_statement(
    statement: Statement, targets: Mapping[TableName, _Target], files: _Files
) -> None:
    """Write a statement that changes a target; no shard gets it, nor the rows after it."""
    parsed = classify(
        statement.sql,
        default_schema=statement.schema,
        ansi_quotes=statement.context.ansi_quotes,
        no_backslash_escapes=statement.context.no_backslash_escapes,
    )
    named = {TableName(t.schema, t.table) for t in (*parsed.tables, *parsed.mentioned)}
    if parsed.schema is not None:
        named |= {name for name in targets if name.schema == parsed.schema.name}
    if parsed.unbounded:
        named |= targets.keys()
    for name in sorted(named & targets.keys()):
        reason = f"a statement changed {name} ({statement.position})"
        targets[name].changed = targets[name].changed or reason
        files.leave_out(reason, statement.sql.encode("utf-8", "surrogateescape"))


async def _targets(
    task: Task, certificate: SwitchCertificate, connection: Connection
) -> tuple[_Target, ...]:
    setups = {setup.source: setup for setup in source_setups(task)}
    found = []
    with ExitStack() as stack:
        servers = {
            source: stack.enter_context(closing(Connection(setup.address)))
            for source, setup in setups.items()
        }
        for one in certificate.targets:
            name = TableName(one.schema, one.table)
            table = await read_table(connection, name)
            shards = []
            for shard in one.shards:
                own = TableName(shard.schema, shard.table)
                structure = await read_table(servers[shard.source], own)
                if structure is None:
                    raise _unreadable(f"{shard.source}: {own} does not exist")
                rules = setups[shard.source].columns.of(*own)
                shards.append(OwningShard(Member(shard.source, own), structure, rules))
            if table is None:
                raise _unreadable(f"the target {name} does not exist any more")
            found.append(_Target(name, table, tuple(shards)))
    if not await logs_cascades(connection):
        await _note_parents(found, connection)
    return tuple(found)


async def _note_parents(found: list[_Target], connection: Connection) -> None:
    """Add the foreign keys with actions to their parents; also add parents that are no targets."""
    by_name = {target.name: target for target in found}
    for child in found:
        for key in child.table.definition.foreign_keys:
            if not key.acts:
                continue
            name = parent_of(key, child.name.schema)
            if name not in by_name:
                table = await read_table(connection, name)
                if table is None:
                    child.unseen.append(key)
                    continue
                by_name[name] = _Target(name, table, ())
                found.append(by_name[name])
            by_name[name].referring.append((child, key))


async def logs_cascades(connection: Connection) -> bool:
    """Return whether a server logs the rows that its foreign keys change.

    Raises the server's error.
    """
    return [value for _, value in await connection.fetch(NATIVE_FOREIGN_KEYS)] == ["OFF"]


def _unreadable(why: str) -> SwitchError:
    return SwitchError(
        f"the changes since the switch can't be read: {why}",
        "to bring shards up to date without a binlog of the target: export the rows of each shard"
        " from the target (by its extracted or mapped columns, or by the application's rule), and"
        " load them into the emptied shard",
    )
