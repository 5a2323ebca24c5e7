"""The effects of a source's DDL statement on the members and targets of a task.

Computes the effects, in order, from the parsed statement, the routes and the members. A sharding
group decides whether and when an effect is executed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from replicator.ddl.model.table import TableOption
from replicator.ddl.parser.statement import (
    ParsedStatement,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.ddl.parser.tokens import Token, TokenKind
from replicator.ddl.rewrite.constraint_names import constraint_edits
from replicator.ddl.rewrite.normalise import normalise
from replicator.ddl.rewrite.retarget import retarget, retarget_schema
from replicator.ddl.rewrite.storage import (
    foreign_engine,
    foreign_rows,
    merged_tables,
    merges_tables,
    storage_edits,
)
from replicator.mysql.names import TableName, quote
from replicator.mysql.session_context.statement_context import StatementContext
from replicator.schema.structure.sequences import turns_sequence

Route = Callable[[TableName], TableName | None]
"""Returns the target of a table of the source, or None if the table is not replicated."""


class DdlError(Exception):
    """A statement that cannot be replicated; the text gives the reason."""


class EffectKind(StrEnum):
    """The kind of change to one table or database."""

    ALTER = "alter"
    """Columns, keys or options change; ``sql`` makes the same change to the target."""
    STORAGE = "storage"
    """Only the physical storage changes, by ``options``; the target need not have them."""
    CREATE = "create"
    DROP = "drop"
    TRUNCATE = "truncate"
    RENAME = "rename"
    """The member gets the name ``renamed_to``; its target stays the same."""
    MOVE_IN = "move in"
    """A renamed member joins another target."""
    MOVE_OUT = "move out"
    """A renamed member leaves its old target; the new name may not be replicated."""
    CREATE_SCHEMA = "create schema"
    ALTER_SCHEMA = "alter schema"
    DROP_SCHEMA = "drop schema"


_REMOVING = {EffectKind.DROP, EffectKind.TRUNCATE, EffectKind.DROP_SCHEMA}


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect on one target.

    For effects on databases, ``table`` and ``target`` have empty table names.

    Attributes:
        table: the member's name at the source.
        sql: the statement for the target; empty if there is nothing to execute.
        renamed_to: the new name for RENAME and MOVE_OUT (None if it is not replicated); the old
            name for MOVE_IN. Names that the statement uses in between do not count.
        other: the target to which a table moves (None if it is no longer replicated), or from which
            it comes.
        instead: the operator's statements, executed on the target in place of ``sql``; none if
            empty.
        clears: a statement to execute before ``sql``, unless it would remove rows of other members.
            It drops the table that OR REPLACE replaces or that a RENAME overwrites.
        filtered: whether a rule of the task file excludes the statement, so that the target does
            not change.
        undecided: whether such a rule depends on the structures of the table.
        answered: whether the operator has confirmed that the statement may be excluded.
        exchanged: whether an online DDL tool has replaced ``table`` by a ghost table with this
            change.
        made: the ghost table's CREATE TABLE, if it differs from the table's own.
        created: the shard's own CREATE TABLE, if this effect comes from the operator's replacement.
        own: the targets in the database that ``sql`` or ``clears`` drops; the task has no other
            tables there.
    """

    kind: EffectKind
    table: TableName
    target: TableName
    sql: str
    statement: ParsedStatement
    renamed_to: TableName | None = None
    other: TableName | None = None
    instead: tuple[str, ...] | None = None
    clears: str = ""
    filtered: bool = False
    undecided: bool = False
    answered: bool = False
    exchanged: bool = False
    made: ParsedStatement | None = None
    created: ParsedStatement | None = None
    own: tuple[TableName, ...] = ()
    options: tuple[TableOption, ...] = ()

    @property
    def discards_rows(self) -> bool:
        """Whether ``sql`` or ``clears`` removes the rows of all of the target's members."""
        if not self.sql or (self.instead is not None and self.sql not in self.instead):
            return False
        if self.kind is EffectKind.ALTER:
            return self.statement.discards_rows
        return self.kind in _REMOVING or bool(self.clears)

    @property
    def skipped(self) -> bool:
        """Whether the operator has decided that nothing is executed."""
        return self.instead == ()

    @property
    def origins(self) -> tuple[TableName, ...]:
        """The tables whose structure the table copies, or the parents of a created table."""
        if self.kind is EffectKind.MOVE_IN:
            assert self.renamed_to is not None
            return (self.renamed_to,)
        if self.kind is not EffectKind.CREATE:
            return ()
        named = self.statement.named
        return tuple(map(_name, (*named(TableRole.LIKE), *named(TableRole.REFERENCED))))


def target_statement(effect: Effect, context: StatementContext) -> ParsedStatement:
    """Return the statement of an effect with the names of targets.

    Statements of shards are compared in this form, because each shard names the parents of its
    foreign keys in a schema of its own.
    """
    return classify_in(context, effect.sql, default_schema=effect.target.schema)


_NAME_LENGTH = 57
"""Characters of a table's name to keep in a temporary name; servers allow 64 in total."""

_PASSED_OVER = {StatementKind.IGNORED, StatementKind.SEQUENCE, StatementKind.VIEW}

_ONLY_RENAMES = re.compile(r"alter table <table> rename( to| as| =)? <new name>")
"""An ALTER TABLE with no other action, as `normalise` writes it."""

_DROPS_TABLES = {StatementKind.DROP_TABLE, StatementKind.SEQUENCE}

_CHANGES = {StatementKind.ALTER_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX}


def effects_of(
    statement: ParsedStatement, route: Route, members: Iterable[TableName]
) -> tuple[Effect, ...]:
    """Return the effects of a statement; none if it concerns no replicated table.

    `members`: the tables of the source that are replicated now.

    Raises DdlError if the statement changes data or structure but cannot be replicated.
    """
    if statement.error and statement.replaces_table:
        # The old table was dropped, and no new one was created.
        subject = statement.named(TableRole.SUBJECT)
        statement = replace(statement, kind=StatementKind.DROP_TABLE, tables=subject)
    found = _effects_of(statement, route, members)
    if found and statement.error and statement.kind is not StatementKind.DROP_TABLE:
        raise DdlError(
            f"the statement ended with error {statement.error} at the source and was logged all"
            " the same: the task does not know what it did before the error"
        )
    return found


def one_by_one(effects: tuple[Effect, ...]) -> Iterator[tuple[Effect, ...]]:
    """Yield the effects in steps with at most one DROP TABLE or skipped move for each target.

    The tables of one statement may be shards of one target. Whether the target is dropped with its
    last shard is decided table by table, as if each table had its own statement. Tables that get
    other targets, with rows about which the operator decides, also leave and join one by one.
    Tables that exchange names do so in one step.
    """
    rounds: list[list[Effect]] = []
    if all(e.kind is EffectKind.DROP and e.statement.kind in _DROPS_TABLES for e in effects):
        taken: dict[TableName, int] = {}
        for effect in effects:
            number = taken[effect.target] = taken.get(effect.target, -1) + 1
            if number == len(rounds):
                rounds.append([])
            rounds[number].append(effect)
    elif any(e.kind is EffectKind.MOVE_IN and e.skipped for e in effects):
        yield from _moves_apart(effects)
        return
    yield from map(tuple, rounds) if rounds else (effects,)


def _moves_apart(effects: tuple[Effect, ...]) -> Iterator[tuple[Effect, ...]]:
    """Yield the effects of a RENAME for each group of its tables that share names."""
    names: dict[TableName, set[TableName]] = {}
    statement = effects[0].statement
    for pair in renamed_tables(statement):
        joined = set[TableName]().union(*(names.get(name, {name}) for name in pair))
        names |= dict.fromkeys(joined, joined)
    # Several tables may temporarily have the same name.
    origins: dict[TableName, TableName] = {}
    steps = []
    for old, new in statement.renames:
        origin = origins[_name(new)] = origins.pop(_name(old), _name(old))
        steps.append((origin, (old, new)))
    for part in {id(part): part for part in names.values()}.values():
        tables = tuple(t for origin, pair in steps for t in pair if origin in part)
        own = replace(statement, tables=tables)
        wave = tuple(replace(e, statement=own) for e in effects if e.table in part)
        if wave:
            yield wave


def _effects_of(
    statement: ParsedStatement, route: Route, members: Iterable[TableName]
) -> tuple[Effect, ...]:
    kind = statement.kind
    if kind is StatementKind.SEQUENCE and statement.detail == "CREATE" and statement.guard:
        # A sequence can take the name of an existing table only by replacing it.
        replaced = tuple(table for table in statement.tables if _name(table) in set(members))
        statement = replace(statement, kind=StatementKind.DROP_TABLE, tables=replaced)
        return tuple(_table_effects(statement, route))
    if kind is StatementKind.DML:
        written = statement.named(TableRole.SUBJECT)
        if written and not any(route(_name(reference)) for reference in written):
            return ()
        raise DdlError(
            f"{statement.detail} was logged as a statement: the session that ran it did not use"
            " binlog_format=ROW, so its rows are not in the binlog"
        )
    if kind in (StatementKind.UNKNOWN, StatementKind.XA):
        raise DdlError(f"the task does not understand the statement ({statement.detail})")
    if statement.temporary or kind in _PASSED_OVER:
        return ()
    if kind in (StatementKind.CREATE_DATABASE, StatementKind.ALTER_DATABASE):
        return tuple(_schema_effect(statement, route, members))
    if kind is StatementKind.DROP_DATABASE:
        return tuple(_drop_schema(statement, route, members))
    if statement.only_if_there:
        statement = _of_those_there(statement, route, set(members))
    if kind is StatementKind.RENAME_TABLE or statement.renames:
        return tuple(_renames(statement, route))
    return tuple(_table_effects(statement, route))


def _of_those_there(
    statement: ParsedStatement, route: Route, there: set[TableName]
) -> ParsedStatement:
    """Return an ALTER or RENAME with IF EXISTS without replicated tables that do not exist.

    On the target, such a name would be another shard's table.
    """
    tables: list[TableReference] = []
    if statement.kind is StatementKind.ALTER_TABLE:
        (subject,) = statement.named(TableRole.SUBJECT)
        if _name(subject) in there or route(_name(subject)) is None:
            tables += statement.tables
    else:
        for old, new in statement.renames:
            if _name(old) in there or route(_name(old)) is None:
                there.discard(_name(old))
                there.add(_name(new))
                tables += (old, new)
    return replace(statement, tables=tuple(tables))


def _table_effects(statement: ParsedStatement, route: Route) -> Iterator[Effect]:
    kinds = {
        StatementKind.CREATE_TABLE: EffectKind.CREATE,
        StatementKind.DROP_TABLE: EffectKind.DROP,
        StatementKind.TRUNCATE_TABLE: EffectKind.TRUNCATE,
        **dict.fromkeys(_CHANGES, EffectKind.ALTER),
    }
    kind = kinds.get(statement.kind)
    if statement.split_off and not any(route(_name(made)) for made in statement.split_off):
        statement = dropping_split_off(statement)
    if under := [name for name in merged_tables(statement) if route(name) is not None]:
        raise DdlError(
            f"a MERGE table is made over {under[0]}: rows that are written through it are not"
            " logged for that table, and would be missing"
        )
    for reference in statement.named(TableRole.SUBJECT):
        name = _name(reference)
        target = route(name)
        if target is None or kind is None:
            continue
        if statement.named(TableRole.EXCHANGED):
            raise DdlError(
                f"{name} exchanges a partition with another table: this moves rows"
                " without logging them"
            )
        if turns_sequence(statement):
            raise DdlError(f"{name} becomes a sequence, or a table that was one")
        if merges_tables(statement):
            raise DdlError(
                f"{name} is a MERGE table, whose rows are those of other tables: leave it out"
                " (block-allow-list)"
            )
        if statement.as_select:
            raise DdlError(
                f"{name} is created by a query, which was logged as a statement: its session did"
                " not use binlog_format=ROW, so its rows are not in the binlog, and on the target"
                " the query would read other tables"
            )
        if engine := foreign_engine(statement):
            raise DdlError(
                f"{name} gets an engine that may keep its rows elsewhere: its"
                f" {foreign_rows(engine)}. If this binlog has its rows, `binlog replace` it with"
                " the same statement and ENGINE=InnoDB; otherwise leave the table out"
                " (block-allow-list)"
            )
        if statement.imports_rows:
            raise DdlError(f"{name} imports a tablespace: its rows are not in the binlog")
        sql = _target_sql(statement, kind, target, route)
        replaced = kind is EffectKind.CREATE and statement.discards_rows
        clears = _target_sql(statement, EffectKind.DROP, target, route) if replaced else ""
        yield Effect(kind, name, target, sql, statement, clears=clears)


def _target_sql(
    statement: ParsedStatement, kind: EffectKind, target: TableName, route: Route
) -> str:
    if kind is EffectKind.DROP:
        return f"DROP TABLE IF EXISTS {target.quoted}"
    if kind is EffectKind.TRUNCATE:
        return f"TRUNCATE TABLE {target.quoted}"
    return retarget(
        statement,
        lambda schema, table: _routed(route, schema, table),
        [*storage_edits(statement), *constraint_edits(statement, target)],
        guarded=kind is EffectKind.CREATE,
    )


def _routed(route: Route, schema: str, table: str) -> tuple[str, str]:
    target = route(TableName(schema, table))
    return (target.schema, target.table) if target else (schema, table)


def _renames(statement: ParsedStatement, route: Route) -> Iterator[Effect]:
    """Yield the effects on tables that are renamed, all at the same moment.

    A table is identified by its name before the statement, whatever temporary names are used.
    Tables that leave a target are first, tables that join one are last.
    """
    alter = statement.kind is StatementKind.ALTER_TABLE
    if alter and not _ONLY_RENAMES.fullmatch(normalise(statement)):
        raise DdlError(
            "ALTER TABLE renames the table and changes it in one statement: use two statements"
        )
    moved = []
    for name, renamed in renamed_tables(statement):
        left, gained = route(name), route(renamed)
        if left is None and gained is not None:
            raise DdlError(
                f"{name}, which is not replicated, is renamed to {renamed}, which is: the task"
                " does not know the rows that it already has"
            )
        if left is not None:
            moved.append(_RenamedShard(name, renamed, left, gained))
    for move in moved:
        if move.left != move.gained:
            to = None if move.gained is None else move.new
            kind = EffectKind.MOVE_OUT
            yield Effect(kind, move.old, move.left, "", statement, to, move.gained)
    for move in moved:
        if move.left == move.gained:
            yield Effect(EffectKind.RENAME, move.old, move.left, "", statement, move.new)
    yield from _moves_in(statement, moved)


def renamed_tables(statement: ParsedStatement) -> list[tuple[TableName, TableName]]:
    """Return the tables that a statement renames, by their names before and after it."""
    origins: dict[TableName, TableName] = {}
    for old, new in statement.renames:
        # An ALTER may rename a table to itself: servers do nothing, but log it.
        origins[_name(new)] = origins.pop(_name(old), _name(old))
    return [(old, new) for new, old in origins.items() if old != new]


@dataclass(frozen=True, slots=True)
class _RenamedShard:
    """A replicated table that is renamed, and its targets before and after."""

    old: TableName
    new: TableName
    left: TableName
    gained: TableName | None


def _moves_in(statement: ParsedStatement, moved: Iterable[_RenamedShard]) -> Iterator[Effect]:
    """Yield the effects on tables that get other targets.

    A single statement renames all targets; it is the `sql` of the first effect. If a table takes
    the target of one that is no longer replicated, that target is dropped first (`clears`).
    """
    came = [(move.left, gained) for move in moved if (gained := _gained(move)) is not None]
    given_up = {move.left for move in moved if move.gained is None}
    taken = dict.fromkeys(gained.quoted for _, gained in came if gained in given_up)
    sql = f"RENAME TABLE {', '.join(target_renames(came))}"
    clears = f"DROP TABLE IF EXISTS {', '.join(taken)}" if taken else ""
    for move in moved:
        gained = _gained(move)
        if gained is not None:
            kind = EffectKind.MOVE_IN
            yield Effect(kind, move.new, gained, sql, statement, move.old, move.left, clears=clears)
            sql = clears = ""


def _gained(move: _RenamedShard) -> TableName | None:
    return None if move.gained == move.left else move.gained


def target_renames(came: Iterable[tuple[TableName, TableName]]) -> Iterator[str]:
    """Yield the parts of RENAME TABLE that rename targets; each uses only a name that is free.

    Targets that exchange names in a cycle use a temporary name. Groups refuse statements in which a
    target would get two names, or two targets one name.
    """
    left = dict(came)
    while left:
        free = [old for old, new in left.items() if new not in left]
        if free:
            yield f"{free[0].quoted} TO {left.pop(free[0]).quoted}"
        else:
            old, new = next(iter(left.items()))
            between = TableName(old.schema, f"{old.table[:_NAME_LENGTH]}_moving")
            yield f"{old.quoted} TO {between.quoted}"
            del left[old]
            left[between] = new


def _schema_effect(
    statement: ParsedStatement, route: Route, members: Iterable[TableName]
) -> Iterator[Effect]:
    assert statement.schema is not None
    name = TableName(statement.schema.name, "")
    target = route(name)
    replaced = statement.discards_rows
    if replaced:
        yield from _dropped_members(statement, route, members)
    if target is None:
        return
    create = statement.kind is StatementKind.CREATE_DATABASE
    kind = EffectKind.CREATE_SCHEMA if create else EffectKind.ALTER_SCHEMA
    sql = retarget_schema(statement, lambda _: target.schema, guarded=create)
    clears = _drop_database(target.schema) if replaced else ""
    own = _targets_in(target.schema, statement, route, members) if replaced else ()
    yield Effect(kind, name, TableName(target.schema, ""), sql, statement, clears=clears, own=own)


def _drop_schema(
    statement: ParsedStatement, route: Route, members: Iterable[TableName]
) -> Iterator[Effect]:
    assert statement.schema is not None
    yield from _dropped_members(statement, route, members)
    name = TableName(statement.schema.name, "")
    schema_target = route(name)
    if schema_target is not None:
        sql = _drop_database(schema_target.schema)
        target = TableName(schema_target.schema, "")
        own = _targets_in(target.schema, statement, route, members)
        yield Effect(EffectKind.DROP_SCHEMA, name, target, sql, statement, own=own)


def _targets_in(
    database: str, statement: ParsedStatement, route: Route, members: Iterable[TableName]
) -> tuple[TableName, ...]:
    found = {effect.target for effect in _dropped_members(statement, route, members)}
    return tuple(sorted(target for target in found if target.schema == database))


def _dropped_members(
    statement: ParsedStatement, route: Route, members: Iterable[TableName]
) -> Iterator[Effect]:
    assert statement.schema is not None
    for member in sorted(members):
        target = route(member)
        if member.schema == statement.schema.name and target is not None:
            yield Effect(EffectKind.DROP, member, target, "", statement)


def _drop_database(schema: str) -> str:
    return f"DROP DATABASE IF EXISTS {quote(schema)}"


def _name(reference: TableReference) -> TableName:
    return TableName(reference.schema, reference.table)


def dropping_split_off(statement: ParsedStatement) -> ParsedStatement:
    """Return a statement that drops the partition which this statement converts to a table.

    ``ALTER TABLE t CONVERT PARTITION p TO TABLE u`` becomes ``ALTER TABLE t DROP PARTITION p``,
    which removes the same rows from ``t`` (MariaDB's manual, "ALTER TABLE", "Partitions"). The rest
    of the text keeps its positions. A statement is returned unchanged unless it has exactly this
    form and one new table.
    """
    made = statement.split_off
    if len(made) != 1:
        return statement
    (table,) = made
    before = [token for token in statement.tokens if token.end <= table.span.start]
    words = [token.keyword for token in before[-5:]]
    if words[:2] != ["CONVERT", "PARTITION"] or words[3:] != ["TO", "TABLE"]:
        return statement
    convert, to = before[-5], before[-2]
    sql, end = statement.sql, table.span.end
    if "*/" in sql[to.start : end]:
        return statement
    drop = "DROP"
    text = sql[: convert.start] + drop.ljust(convert.end - convert.start)
    text += sql[convert.end : to.start] + " " * (end - to.start) + sql[end:]
    tokens = (
        *before[:-5],
        Token(TokenKind.WORD, drop, convert.start),
        *before[-4:-2],
        *(token for token in statement.tokens if token.start >= end),
    )
    tables = tuple(other for other in statement.tables if other is not table)
    return replace(statement, sql=text, tokens=tokens, tables=tables)
