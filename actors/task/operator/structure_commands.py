"""The structures by which rows of shards are read: commands to show and to declare them."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Any

import anyio.to_thread
import structlog

from actors.control.protocol import Reply
from actors.errors.faults import UnreadRows
from actors.reading.binlog_lookups import statements_between
from actors.saved.saved_position import saved_position
from actors.setup.task_setup import SourceSetup, address_of, beside, source_setups
from config.models import Task
from replicator.binlog.errors import BinlogError
from replicator.binlog.positions.position import BinlogPosition
from replicator.binlog.segments.segment import Statement
from replicator.ddl.parser.statement import ParsedStatement, StatementKind
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.rewrite.default_collations import DefaultCollations
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.declared_structures import DeclaredStructure, DeclaredStructureStore
from replicator.downstream.meta.lease import Lease
from replicator.downstream.scratch_names import scratch_table
from replicator.mysql.connection.address import CONNECT_TIMEOUT, DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.connection.blocking_connection import connect
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.binlog_end import binlog_end
from replicator.mysql.server.identity import server_identity
from replicator.mysql.session_context.session_defaults import SessionDefaults, session_defaults
from replicator.pipeline.plans.planning import PlanError, misfit
from replicator.schema.registry.past_changes import PastChange, past_changes
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.scratch.scratch_statements import named
from replicator.schema.scratch.scratch_table import ScratchTableError, is_like, structure_after
from replicator.schema.structure.inspection import available_collations, list_tables, read_table
from replicator.schema.structure.structure import Table


@dataclass(frozen=True, slots=True)
class _Saved:
    """The known members, and the saved position of each source (None: not saved yet)."""

    registry: SchemaRegistry
    positions: Mapping[str, BinlogPosition | None]

    def key(self, source: str) -> int:
        """The key of a source's saved position; 0 before it has one."""
        position = self.positions[source]
        return position.key if position is not None else 0


def remedies_of(task: str, unread: UnreadRows) -> tuple[str, ...]:
    """Return the commands by which the operator declares the structure of unreadable rows."""
    name = shlex.quote(task)
    table = f"--source {shlex.quote(unread.member.source)} --table {_typed(unread.member.name)}"
    resume = f"then `replicator resume {name}`"
    return (
        f"`replicator schema set {name} {table} --from-source`, {resume}: where the table has not"
        " been changed since these rows were written",
        f"`replicator schema set {name} {table} --file FILE.sql`, {resume}: FILE.sql has the CREATE"
        " TABLE that these rows were written with; `replicator schema list"
        f" {name} {table}` shows what is held for them",
    )


def _typed(name: TableName) -> str:
    return shlex.quote(str(name))


async def list_structures(
    task: Task,
    lease: Lease,
    registry: SchemaRegistry | None,
    unread: UnreadRows | None,
    arguments: Mapping[str, Any],
) -> Reply:
    """Return the structures of members, from the saved positions on.

    Args:
        registry: the task's registry, from the moment when it follows its sources.
        unread: the rows that pause the task.
        arguments: ``source`` and ``table``, empty for all.
    """
    async with _meta(task, lease) as meta:
        saved = await _saved(task, registry, meta)
    try:
        members = _members(saved.registry, unread, arguments)
    except ValueError as error:
        return Reply(ok=False, error=str(error))
    found = [entry for member in members for entry in _entries(saved, member)]
    return Reply(ok=True, body={"structures": found})


async def declare_structure(
    task: Task,
    lease: Lease,
    registry: SchemaRegistry | None,
    unread: UnreadRows | None,
    arguments: Mapping[str, Any],
) -> Reply:
    """Save a structure for a member of a paused task; the next start uses it.

    The structure applies from the member's rows that pause the task on; without such rows, from the
    saved position on. Raises the errors of the servers.

    Args:
        arguments: ``source``, ``table`` and ``given``: ``sql``, ``source`` or ``target``; with
            ``sql``, the text of a CREATE TABLE.
    """
    async with _meta(task, lease) as meta:
        saved = await _saved(task, registry, meta)
        try:
            member = None if unread else await _uncopied(task, saved.registry, arguments)
            member = member or _one(_members(saved.registry, unread, arguments))
            concerned = unread is not None and unread.member == member
            since = unread.at if unread and concerned else saved.key(member.source)
            structure = await _structure(task, meta.connection, saved.registry, member, arguments)
            if arguments.get("given") == "source":
                await _refuse_changed(task, meta, member, since)
            detail = (
                misfit(str(member), structure, unread.table_map) if unread and concerned else ""
            )
        except (ValueError, PlanError) as error:
            return Reply(ok=False, error=str(error))
        if detail:
            return Reply(
                ok=False,
                error=f"the rows that hold the task up have another structure: {detail}. Nothing"
                f" was set. It would be: {structure.create_sql}",
            )
        await DeclaredStructureStore(meta).put(DeclaredStructure(member, since, structure))
    saved.registry.declare(member, since, structure)
    entry = _entry(saved, member, since)
    structlog.get_logger().info(
        "schema.declared", source=member.source, table=str(member.name), since=entry["since"]
    )
    return Reply(ok=True, body={"structures": [entry]})


@asynccontextmanager
async def _meta(task: Task, lease: Lease) -> AsyncIterator[MetaStore]:
    with closing(Connection(address_of(task.target_database))) as connection:
        yield MetaStore(connection, task.meta_schema, task.name, lease)


async def _saved(task: Task, registry: SchemaRegistry | None, meta: MetaStore) -> _Saved:
    """Return the task's members and positions; the saved ones before it follows its sources."""
    known = registry or SchemaRegistry()
    positions: dict[str, BinlogPosition | None] = {}
    for instance in task.mysql_instances:
        checkpoint = await meta.load(instance.source_id)
        at_all = checkpoint is not None and checkpoint.file
        positions[instance.source_id] = (
            BinlogPosition(checkpoint.file, checkpoint.offset) if checkpoint and at_all else None
        )
        if registry is None and checkpoint is not None:
            for record in checkpoint.members:
                number = known.join(record.member, record.target)
                known.learn(number, record.since, record.held)
            for declared in await DeclaredStructureStore(meta).load(instance.source_id):
                known.declare(declared.member, declared.since, declared.structure)
    return _Saved(known, positions)


def _members(
    registry: SchemaRegistry, unread: UnreadRows | None, arguments: Mapping[str, Any]
) -> list[Member]:
    """Return the members that the request means. Raises ValueError if there is none."""
    source, table = str(arguments.get("source") or ""), str(arguments.get("table") or "")
    known = {registry.member(n) for s in registry.sources() for n in registry.members_in(s)}
    if unread is not None:
        known.add(unread.member)
    found = sorted(m for m in known if source in ("", m.source) and table in ("", str(m.name)))
    if not found and (source or table):
        shown = "; ".join(map(str, sorted(known)[:20])) or "none"
        raise ValueError(
            f"no shard {table or 'at all'} of source {source or '(any)'} is known. Known:"
            f" {shown}{' …' if len(known) > 20 else ''}"
        )
    return found


async def _uncopied(
    task: Task, registry: SchemaRegistry, arguments: Mapping[str, Any]
) -> Member | None:
    """Return the requested table of a source if it is routed but not a member: it was not copied.

    It gets a number in the registry. Raises the errors of the server.
    """
    source, table = str(arguments.get("source") or ""), str(arguments.get("table") or "")
    setup = next((s for s in source_setups(task) if s.source == source), None)
    known = {str(registry.member(number).name) for number in registry.members_in(source)}
    if setup is None or not table or table in known:
        return None
    with closing(Connection(setup.address)) as upstream:
        named = [name for name in await list_tables(upstream) if str(name) == table]
    routed = setup.router.route(named[0].schema, named[0].table) if named else None
    if routed is None:
        return None
    member = Member(source, named[0])
    registry.leave(registry.join(member, TableName(routed.schema, routed.table)))
    return member


def _one(members: list[Member]) -> Member:
    if len(members) != 1:
        raise ValueError(
            "say which shard is meant by --source and --table: " + "; ".join(map(str, members[:20]))
        )
    return members[0]


def _entries(saved: _Saved, member: Member) -> Iterator[dict[str, object]]:
    """Yield the structures at the saved position, and at later ones that were read."""
    registry, key = saved.registry, saved.key(member.source)
    number = registry.number(member)
    assert number is not None
    # As in a checkpoint, a boundary belongs to the event after it.
    first = registry.since(number, key - 1)
    places = [since for since in registry.places(number) if since == first or since >= key]
    for since in places or [key]:
        yield _entry(saved, member, since)


def _entry(saved: _Saved, member: Member, since: int) -> dict[str, object]:
    registry, position = saved.registry, saved.positions[member.source]
    number = registry.number(member)
    assert number is not None
    held = registry.held(number, since)
    return {
        "source": member.source,
        "table": str(member.name),
        "target": str(registry.target_name(registry.target_of(number))),
        "provenance": held.provenance.value,
        "doubt": held.doubt,
        # Positions of a former server, which another server has replaced, are negative.
        "since": str(position.with_key(since)) if position and since > 0 else "",
        "create": held.structure.create_sql if held.structure else None,
    }


async def _structure(
    task: Task,
    target: Connection,
    registry: SchemaRegistry,
    member: Member,
    arguments: Mapping[str, Any],
) -> Table:
    """Return the structure that the operator means. Raises ValueError, and the servers' errors."""
    setup = next(s for s in source_setups(task) if s.source == member.source)
    given = arguments.get("given")
    if given == "sql":
        return await _from_sql(task, setup, member.name, str(arguments.get("sql") or ""))
    if given == "source":
        with closing(Connection(setup.address)) as upstream:
            table, name = await read_table(upstream, member.name), member.name
    else:
        number = registry.number(member)
        assert number is not None
        name = registry.target_name(registry.target_of(number))
        table = await read_table(target, name)
    if table is None:
        raise ValueError(f"there is no table {name} at the {given}")
    return named(table, member.name)


async def _refuse_changed(task: Task, meta: MetaStore, member: Member, since: int) -> None:
    """Raise ValueError if a statement after ``since`` may have changed a table that was just read.

    The table's rows since that position may have had another structure. Raises the errors of the
    servers.
    """
    checkpoint = await meta.load(member.source)
    if checkpoint is None or not checkpoint.file:
        return
    # The task may follow the source at the same time, if only a target is blocked.
    setup = beside({s.source: s for s in source_setups(task)})[member.source]
    with closing(Connection(setup.address)) as upstream:
        server, end = await server_identity(upstream), await binlog_end(upstream)
    if end is None:
        return
    place = BinlogPosition(end.file, end.offset)
    try:
        changes = await statements_between(
            setup, server, saved_position(checkpoint), place, _changes
        )
    except BinlogError as error:
        raise ValueError(
            f"the binlog of source {member.source}, which shows whether the table was changed since"
            f" these rows were written, can't be read: {error}"
        ) from error
    later = [c for c in changes if c.at >= since and c.concerns(member.name) and c.columns]
    if later:
        raise ValueError(
            f"{member} may have been changed since these rows were written: {later[0].sql}."
            " Nothing was set. Write the CREATE TABLE that it had before this statement to a file,"
            " and give it by --file instead of --from-source"
        )


def _changes(statement: Statement, parsed: ParsedStatement) -> tuple[PastChange, ...]:
    return past_changes(parsed, statement.transaction)


async def _from_sql(task: Task, setup: SourceSetup, name: TableName, sql: str) -> Table:
    """Return the result of a CREATE TABLE, tried on an empty table on the target's server."""
    statement = classify(sql, default_schema=name.schema)
    if statement.kind is not StatementKind.CREATE_TABLE or not _plain(statement):
        detail = f" ({statement.detail})" if statement.kind is StatementKind.UNKNOWN else ""
        raise ValueError(
            "one CREATE TABLE with columns is needed, as SHOW CREATE TABLE shows it; this is"
            f" {statement.kind.value}{detail}: {sql[:200]}"
        )
    defaults = await anyio.to_thread.run_sync(_defaults_of, setup.address)
    address = address_of(task.target_database)
    # The statement has its own session, which is set up for it.
    with closing(Connection(address)) as connection:
        try:
            collations = DefaultCollations(await available_collations(connection))
            collations.know(defaults.databases, defaults.charsets)
            written = collations.written_out(statement, "")
            if written is not None:
                statement = classify(written, default_schema=name.schema)
            scratch = scratch_table(task.meta_schema, task.name)
            return named(await structure_after(connection, scratch, None, statement), name)
        except ScratchTableError as error:
            raise ValueError(
                f"the target's server, which tries the statement out on an empty table, refuses it:"
                f" {error}. Rows are read by names, types, signs, labels and charsets of the"
                " columns: collations, keys and options that the server lacks can be left out. Or"
                " take --from-source"
            ) from error


def _plain(statement: ParsedStatement) -> bool:
    return not (statement.temporary or statement.as_select or is_like(statement))


def _defaults_of(address: DatabaseAddress) -> SessionDefaults:
    """Return the source's defaults for tables without a charset. Blocks; call it in a thread."""
    with closing(connect(address, timeout=CONNECT_TIMEOUT)) as connection:
        return session_defaults(connection)
