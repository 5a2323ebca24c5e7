"""Foreign keys, triggers, events, views and privileges of shards that their target lacks.

The task replicates only rows and columns, so the operator creates these objects on the target.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

from pymysql.err import MySQLError

from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.cascading_keys import refers_to_one_row, spreading, widened
from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.ddl.rewrite.table_sql import foreign_key_sql
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import error_text
from replicator.mysql.names import Member, TableName, folded, quote
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.structure import Table

_TARGET = CheckedPart("target")


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of a table."""

    table: TableName
    name: str
    timing: str
    event: str
    statement: str

    @property
    def effect(self) -> tuple[str, str, str]:
        """The properties that two equal triggers have in common."""
        return self.timing, self.event, " ".join(self.statement.split())


@dataclass(slots=True)
class ServerObjects:
    """The objects in some schemas of a server.

    Attributes:
        events, views: CREATE statements by schema and name.
        privileges: by account and schema, the privileges for the schema or tables in it, except
            those of the account that reads them.
        unread: what the account can't read, each with the reason.
    """

    triggers: list[Trigger] = field(default_factory=list)
    events: dict[TableName, str] = field(default_factory=dict)
    views: dict[TableName, str] = field(default_factory=dict)
    privileges: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)


async def read_objects(address: DatabaseAddress, schemas: Collection[str]) -> ServerObjects:
    """Read the objects in some schemas. Raises DatabaseUnavailableError."""
    found = ServerObjects()
    with closing(Connection(address)) as connection:
        # The account has the privileges that the task needs, not those of the application.
        own = (await account_of(connection)).name
        for schema in sorted(schemas):
            for kind, read in (
                ("triggers", _read_triggers),
                ("events", _read_events),
                ("views", _read_views),
                ("privileges", _read_privileges),
            ):
                try:
                    await read(connection, schema, found)
                except MySQLError as error:
                    found.unread.append(f"{kind} of {schema}: {error_text(error)}")
            found.privileges.pop((own, schema), None)
    return found


async def _read_triggers(connection: Connection, schema: str, found: ServerObjects) -> None:
    rows = await connection.fetch(
        "SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, ACTION_TIMING, EVENT_MANIPULATION,"
        " ACTION_STATEMENT FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = %s",
        (schema,),
    )
    found.triggers += [
        Trigger(TableName(schema, table), *map(_text, rest)) for table, *rest in rows
    ]


async def _read_events(connection: Connection, schema: str, found: ServerObjects) -> None:
    rows = await connection.fetch(
        "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE EVENT_SCHEMA = %s", (schema,)
    )
    for (name,) in rows:
        event = TableName(schema, name)
        [row] = await connection.fetch(f"SHOW CREATE EVENT {event.quoted}")
        found.events[event] = _text(row[3])


async def _read_views(connection: Connection, schema: str, found: ServerObjects) -> None:
    rows = await connection.fetch(
        "SELECT TABLE_NAME FROM information_schema.VIEWS WHERE TABLE_SCHEMA = %s", (schema,)
    )
    for (name,) in rows:
        view = TableName(schema, name)
        [row] = await connection.fetch(f"SHOW CREATE VIEW {view.quoted}")
        found.views[view] = _text(row[1])


async def _read_privileges(connection: Connection, schema: str, found: ServerObjects) -> None:
    rows = await connection.fetch(
        "SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES"
        " WHERE %s LIKE TABLE_SCHEMA"
        " UNION SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.TABLE_PRIVILEGES"
        " WHERE TABLE_SCHEMA = %s"
        " UNION SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES"
        " WHERE PRIVILEGE_TYPE IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'EXECUTE')",
        (schema, schema),
    )
    for account, privilege in rows:
        if privilege != "USAGE":
            found.privileges.setdefault((str(account), schema), set()).add(str(privilege))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


def lacking_objects(
    sources: Mapping[str, ServerObjects],
    target: ServerObjects,
    shards: Mapping[TableName, Mapping[Member, Table]],
    tables: Mapping[TableName, Table | None],
) -> list[CheckResult]:
    """Return what the shards have and the target lacks, each with the statement that creates it.

    Args:
        shards: by target, its shards with their structures.
        tables: the targets.
    """
    schemas: dict[tuple[str, str], set[str]] = {}
    for name, members in shards.items():
        for member in members:
            schemas.setdefault((member.source, member.name.schema), set()).add(name.schema)
    unread = [
        _TARGET.warning("objects", f"{where}: {why}", "compare them yourself")
        for where, objects in (*sources.items(), ("target", target))
        for why in objects.unread
    ]
    return [
        *_foreign_keys(shards, tables),
        *_triggers(sources, target, shards),
        *_missing_objects("event", {s: o.events for s, o in sources.items()}, target.events),
        *_missing_objects("view", {s: o.views for s, o in sources.items()}, target.views),
        *_privileges(sources, target, schemas),
        *unread,
    ]


def _foreign_keys(
    shards: Mapping[TableName, Mapping[Member, Table]], tables: Mapping[TableName, Table | None]
) -> Iterator[CheckResult]:
    targets = {member: name for name, members in shards.items() for member in members}
    for name, members in sorted(shards.items()):
        table = tables.get(name)
        there = [_columns(key) for key in table.definition.foreign_keys] if table else []
        found: dict[frozenset[str], tuple[ForeignKeyDefinition, list[Member]]] = {}
        for member, shard in members.items():
            for key in shard.definition.foreign_keys:
                # The key of the target may also contain the extracted columns.
                if not any(_columns(key) <= columns for columns in there):
                    found.setdefault(_columns(key), (key, []))[1].append(member)
        for key, having in found.values():
            parent = parent_of(key, having[0].name.schema)
            target = targets.get(Member(having[0].source, parent))
            lacks = f"{name} lacks the foreign key {key.name} of {_some(list(map(str, having)))}"
            if target is None:
                yield _TARGET.warning("foreign keys", f"{lacks}; the task does not merge {parent}")
                continue
            own = replace(key, parent_schema=target.schema, parent=target.table)
            merged = tables.get(target)
            if table is not None and merged is not None and not refers_to_one_row(own, merged):
                wider = widened(own, table, merged)
                if wider is None:
                    yield _TARGET.warning(
                        "foreign keys", f"{lacks}; no unique key of {target} has its columns"
                    )
                    continue
                own = wider
            yield _TARGET.warning(
                "foreign keys", lacks, f"`ALTER TABLE {name.quoted} ADD {foreign_key_sql(own)}`"
            )
        if table is not None:
            for finding, way_out in spreading(table, tables):
                yield _TARGET.warning("foreign keys", finding, way_out)


def _columns(key: ForeignKeyDefinition) -> frozenset[str]:
    return frozenset(map(folded, key.columns))


def _triggers(
    sources: Mapping[str, ServerObjects],
    target: ServerObjects,
    shards: Mapping[TableName, Mapping[Member, Table]],
) -> Iterator[CheckResult]:
    for name, members in sorted(shards.items()):
        there = {trigger.effect for trigger in target.triggers if trigger.table == name}
        found: dict[tuple[str, str, str], tuple[Trigger, list[str]]] = {}
        for member in members:
            for trigger in sources[member.source].triggers:
                if trigger.table == member.name and trigger.effect not in there:
                    found.setdefault(trigger.effect, (trigger, []))[1].append(str(member))
        for trigger, having in found.values():
            yield _TARGET.warning(
                "triggers",
                f"{name} lacks the trigger {trigger.name} of {_some(having)}",
                f"`CREATE TRIGGER {quote(trigger.name)} {trigger.timing} {trigger.event} ON"
                f" {name.quoted} FOR EACH ROW {trigger.statement}`",
            )


def _missing_objects(
    kind: str, sources: Mapping[str, Mapping[TableName, str]], target: Mapping[TableName, str]
) -> Iterator[CheckResult]:
    """Yield a result for each object whose name exists in no schema of the target."""
    there = {name.table for name in target}
    found: dict[str, tuple[str, list[str]]] = {}
    for source, objects in sources.items():
        for name, create in objects.items():
            if name.table not in there:
                found.setdefault(name.table, (create, []))[1].append(f"{source}: {name}")
    for one, (create, having) in sorted(found.items()):
        yield _TARGET.warning(
            f"{kind}s", f"the target has no {kind} {one}, as {_some(having)}", f"`{create}`"
        )


def _privileges(
    sources: Mapping[str, ServerObjects],
    target: ServerObjects,
    schemas: Mapping[tuple[str, str], Collection[str]],
) -> Iterator[CheckResult]:
    lacking: dict[tuple[str, str], set[str]] = {}
    for source, objects in sources.items():
        for (account, schema), privileges in objects.privileges.items():
            for wanted in schemas.get((source, schema), ()):
                missing = privileges - target.privileges.get((account, wanted), set())
                if missing:
                    lacking.setdefault((account, wanted), set()).update(missing)
    for (account, schema), missing in sorted(lacking.items()):
        listed = ", ".join(sorted(missing))
        yield _TARGET.warning(
            "privileges",
            f"the account {account} has {listed} on shards, and not on the schema {schema}",
            f"`GRANT {listed} ON {quote(schema)}.* TO {account}`",
        )


def _some(names: list[str]) -> str:
    more = len(names) - 1
    return f"{names[0]}" + (f" and {more} more" if more else "")
