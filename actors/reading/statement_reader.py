"""Determines the effects of a binlog's statements on the targets, with the operator's overrides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

import structlog
from pymysql.constants import ER

from actors.errors.faults import TaskParts, of_source, of_target, refuse_clash
from actors.reading.ddl_overrides import DdlOverrides
from actors.reading.foreign_keys import refuse_unrepeatable
from actors.reading.moving_tables import MovingTables, at_moments
from actors.reading.online_ddl import OnlineDdl, Replay
from actors.reading.ruled_columns import refuse_ruled
from actors.reading.side_effects import NOTHING_UNSEEN, Unseen
from actors.reading.uncopied_members import uncopied_members
from actors.schema.statement_filter import (
    ForbiddenStatementError,
    StatementFilter,
    forbidden,
    unsupported,
)
from replicator.binlog.connection.server_info import ServerInfo
from replicator.binlog.segments.segment import Segment, Statement
from replicator.checks.schema.cascading_keys import SourceRules
from replicator.ddl.analysis.side_effects import acts_on_rows
from replicator.ddl.parser.statement import ParsedStatement, StatementKind, TableRole
from replicator.ddl.parser.statement_kinds import classify
from replicator.ddl.parser.unknown_statements import mentioned_tables
from replicator.ddl.rewrite.column_references import references_apart
from replicator.ddl.rewrite.default_collations import DefaultCollations
from replicator.ddl.rewrite.ignored_foreign_keys import named_engine, without_ignored_keys
from replicator.ddl.rewrite.retarget import splice
from replicator.ddl.rewrite.single_changes import change_and_rename
from replicator.ddl.rewrite.storage import physical_edits, physical_options
from replicator.downstream.meta.ddl_overrides import DdlOverride
from replicator.mysql.names import Member, TableName, folded
from replicator.mysql.session_context.session_defaults import SessionDefaults
from replicator.routing.columns.member_columns import NO_COLUMN_RULES, ColumnRules
from replicator.routing.event_filter import NO_FILTER, EventFilter
from replicator.routing.routes import Router
from replicator.schema.effects.ddl_effects import DdlError, Effect, EffectKind, effects_of
from replicator.schema.effects.idle_changes import is_idle
from replicator.schema.effects.overridden_effects import (
    OverrideAction,
    overridden_effects,
    overridden_exchange,
)
from replicator.schema.registry.registry import SchemaRegistry, guess
from replicator.schema.structure.other_objects import OtherObjects


@dataclass(frozen=True, slots=True)
class Step:
    """One statement to process, and its effects by the number of the target."""

    statement: Statement | None = None
    effects: Mapping[int, tuple[Effect, ...]] = field(default_factory=dict)


NOTHING = Step()

_DEFINING = (EffectKind.CREATE, EffectKind.ALTER)
_ANY_TABLE = (StatementKind.XA, StatementKind.DML)
"""Kinds of statements whose text does not show which tables they change."""


@dataclass(frozen=True, slots=True)
class StatementSettings:
    """The settings for reading one source's statements.

    Attributes:
        target_collations: all collations of the target; None if unknown.
        accepts_cascades: whether the application handles unlogged changes of rows by foreign keys.
        columns: the task file's rules for columns.
        time_zone: time zone of the source's host, if the server can't report it; empty if unknown.
        copied: whether the rows of all members were copied, and of no other table.
        leaves_out_rows: returns whether the task file's filters skip rows of a table.
    """

    source: str
    router: Router
    event_filter: EventFilter = NO_FILTER
    target_collations: Set[str] | None = None
    accepts_cascades: bool = False
    columns: ColumnRules = NO_COLUMN_RULES
    time_zone: str = ""
    copied: bool = False
    leaves_out_rows: Callable[[TableName], bool] = lambda _: False


class StatementReader:
    """Turns the statements of one source into effects.

    Attributes:
        online: must be saved before the events after its steps are sent on.
        members: the source's tables, which are kept up to date with the reader; the groups, and so
            the registry, may lag.
        others: the source's views and sequences, which are not replicated.
        moving: the tables that wait for their target's new name.
    """

    def __init__(
        self,
        settings: StatementSettings,
        registry: SchemaRegistry,
        overrides: DdlOverrides,
        members: Iterable[TableName],
        online: OnlineDdl,
    ) -> None:
        self.settings = settings
        self.members = set(members)
        self.moving: MovingTables | None = None
        self.online = online
        self._columns = settings.columns
        self._filter = StatementFilter(settings.source, settings.event_filter)
        self.others = OtherObjects()
        self._told: set[TableName] = set()
        self._collations = DefaultCollations(settings.target_collations)
        self._accepts_cascades = settings.accepts_cascades
        columns = settings.columns
        self._rules = SourceRules(
            lambda name: self.target(self.known_as(name)),
            lambda name: columns.of(name.schema, name.table),
            settings.leaves_out_rows,
        )
        self._copied = settings.copied
        self._defaults: SessionDefaults | None = None
        self._folds_names = False
        self._heeds_references: bool | None = None
        self._source = settings.source
        self._router = settings.router
        self._registry = registry
        self._overrides = overrides
        self._log = structlog.get_logger().bind(source=settings.source)

    def follow(self, server: ServerInfo) -> None:
        """Use the properties of this server from the next statement on."""
        self._folds_names = server.folds_names
        self._heeds_references = server.heeds_column_references
        defaults = server.session
        zone = defaults.system_zone or self.settings.time_zone
        self._defaults = defaults = replace(defaults, system_zone=zone)
        databases = defaults.databases
        if server.folds_names:
            databases = {folded(name): collation for name, collation in databases.items()}
        self._collations.know(databases, defaults.charsets)
        # A table may have been replaced by a sequence of its name after the statement.
        present = {self.known_as(name) for name in defaults.sequences} - self.members
        self.others.know(present, map(self.known_as, defaults.views))
        self._tell(present)

    @property
    def cascades_unlogged(self) -> bool:
        """Whether the task repeats the source's unlogged row changes by foreign keys."""
        logs = self._defaults is not None and self._defaults.logs_cascades
        return not (logs or self._accepts_cascades)

    def known_as(self, name: TableName) -> TableName:
        """Return the name by which the task knows a table of the source."""
        return name.folded if self._folds_names else name

    def target(self, name: TableName) -> TableName | None:
        """Return the target of a table, or (with an empty table name) of a database.

        Raises FatalError if another table has this target in another spelling.
        """
        if name.table:
            routed = self._router.route(name.schema, name.table)
            target = None if routed is None else TableName(routed.schema, routed.table)
        else:
            schema = self._router.route_schema(name.schema)
            target = None if schema is None else TableName(schema, "")
        if target is not None:
            refuse_clash(self._registry, target, f"source {self._source}, {name}")
        return target

    def is_copied(self, name: TableName) -> bool:
        """Return whether a replicated table's former rows are on the target.

        They are not if the table is no member although its source was copied, unless the operator
        has declared it.
        """
        if not self._copied or name in self.members:
            return True
        return self._registry.is_declared(Member(self._source, name))

    def writes_unseen(self, statement: Statement, parsed: ParsedStatement) -> bool:
        """Return whether a statement, by its text, changes rows of an unreplicated table.

        Return False if the operator has decided about it.
        """
        named = parsed.named(TableRole.SUBJECT)
        if parsed.kind is not StatementKind.DML or not named:
            return False
        routed = any(self.target(TableName(table.schema, table.table)) for table in named)
        if routed or self._overrides.find(self._source, statement) is not None:
            return False
        default = self.known_as(TableName(statement.schema, "")).schema
        return not self._filter.leaves_out(parsed, default, self.target)

    def drops_in_part(self, parsed: ParsedStatement) -> bool:
        """Return whether a DROP TABLE may have kept replicated tables that it names.

        Return False if all tables that it did not drop did not exist.
        """
        if parsed.kind is not StatementKind.DROP_TABLE or parsed.temporary:
            return False
        named = {TableName(t.schema, t.table) for t in parsed.named(TableRole.SUBJECT)}
        failed = parsed.error not in (0, ER.BAD_TABLE_ERROR)
        return failed and not named.isdisjoint(self.members)

    def unclear(self, parsed: ParsedStatement) -> list[TableName]:
        """Return the names in a statement that may be views, and would be replicated as tables.

        Ghosts of online DDL tools are tables.
        """
        if parsed.temporary:
            return []
        routed = {
            self.known_as(TableName(t.schema, t.table))
            for pair in parsed.renames or [(table, table) for table in parsed.tables]
            for t in pair[:1]
            if any(self.target(TableName(one.schema, one.table)) for one in pair)
        }
        names = self.others.unclear(parsed, self.members)
        waits = self.moving.waits if self.moving else lambda _: False
        names = [name for name in names if not self.online.knows(name) and not waits(name)]
        return [name for name in names if name in routed]

    def steps(
        self,
        segment: Segment,
        statement: Statement,
        parsed: ParsedStatement,
        unseen: Unseen = NOTHING_UNSEEN,
    ) -> list[Step]:
        """Return the steps of the statement that ends a segment, or of its override; at least one.

        ``unseen`` has effects of a statement that `writes_unseen` or `drops_in_part`. Raises
        FatalError if the statement can't be replicated.
        """
        if doubt := unseen.doubt:
            error = DdlError(
                "a change of a table that is not replicated was logged as a statement. It may"
                " have written to replicated tables, too, and the binlog does not show this:"
                f" {doubt}"
            )
            raise unsupported(self._source, segment, statement, error, of_source(self._source))
        if self._defaults is not None:
            statement = replace(statement, context=self._defaults.complete(statement.context))
        parsed = self._written_out(statement, parsed)
        parsed = self.others.without(parsed, self.members, unseen.views)
        whole = parsed = self._bounded(statement, parsed)
        parsed = self._without_storage(statement, whole)
        if parsed.kind is StatementKind.SEQUENCE:
            self._tell(TableName(table.schema, table.table) for table in parsed.tables)
        override = self._overrides.find(self._source, statement)
        try:
            if override is None:
                found = self._own(statement, self._dropped(parsed, unseen), whole)
            else:
                found = self._overridden(statement, parsed, override)
        except DdlError as error:
            scope = self.scope_of(parsed)
            raise unsupported(self._source, segment, statement, error, scope) from error
        except ForbiddenStatementError as error:
            scope = self.scope_of(parsed)
            raise forbidden(self._source, statement, error, scope) from error
        found = at_moments(self.moving, found, statement)
        for _, effects in found:
            for effect in effects:
                self._refuse_uncopied(effect, statement)
            self._note(effects)
        if not any(effects for _, effects in found):
            self._log.debug("ddl.not-replicated", statement=statement.sql[:200])
        # The event group spans enough bytes to give each step a position before the next group.
        return [
            Step(
                replace(
                    processed,
                    sql=effects[0].statement.sql if effects else processed.sql,
                    transaction=statement.transaction + number,
                ),
                self._by_target(effects),
            )
            for number, (processed, effects) in enumerate(found)
        ] or [Step(statement)]

    def _bounded(self, statement: Statement, parsed: ParsedStatement) -> ParsedStatement:
        """Ignore an unparsed statement that can't concern a replicated table."""
        if parsed.kind is not StatementKind.UNKNOWN or parsed.unbounded or self._concerned(parsed):
            return parsed
        if self._overrides.find(self._source, statement) is not None:
            return parsed
        self._log.warning(
            "ddl.not-understood",
            position=str(statement.position),
            statement=parsed.sql[:500],
            reason=parsed.detail,
        )
        return replace(parsed, kind=StatementKind.IGNORED)

    def _concerned(self, parsed: ParsedStatement) -> list[TableName]:
        """Return the targets that an unparsed statement may concern."""
        found: set[TableName] = set()
        for name in mentioned_tables(parsed):
            if not name.table:
                found |= {member for member in self.members if member.schema == name.schema}
            elif name in self.members:
                found.add(name)
        subjects = (t for t in parsed.mentioned if t.role is TableRole.SUBJECT)
        found |= {TableName(t.schema, t.table) for t in subjects}
        targets = map(self.target, sorted(found))
        return sorted({target for target in targets if target is not None})

    def _dropped(self, parsed: ParsedStatement, unseen: Unseen) -> ParsedStatement:
        """Return a statement without the tables that it has not dropped. Raises DdlError."""
        if unseen.left is None:
            raise DdlError(
                f"the statement ended with error {parsed.error} at the source and was logged all"
                " the same: the task does not know which of its tables it dropped before the"
                " error"
            )
        if not unseen.left:
            return parsed
        self._log.info(
            "ddl.dropped-in-part",
            statement=parsed.sql[:200],
            left=sorted(map(str, unseen.left)),
        )
        dropped = (t for t in parsed.tables if TableName(t.schema, t.table) not in unseen.left)
        return replace(parsed, tables=tuple(dropped))

    def _own(
        self, statement: Statement, parsed: ParsedStatement, whole: ParsedStatement
    ) -> list[tuple[Statement, tuple[Effect, ...]]]:
        """Return the statement with its effects, or its replacements.

        ``whole`` still has the table's storage options, which ``parsed`` lacks.
        """
        replayed = self.online.take(parsed, statement, self.parsed)
        if replayed is None and (parts := change_and_rename(parsed)):
            # The change comes first, under the former name.
            texts = (self._written_out(statement, self.parsed(statement, sql)) for sql in parts)
            found = [(statement, self._effects(one, statement.schema, one)) for one in texts]
        elif replayed is None:
            effects = self._effects(parsed, statement.schema, whole)
            waves = [effects, self._stored(parsed, effects, whole)]
            # The rest of a statement may be a foreign key, which depends on the new engine.
            altering = parsed.kind is StatementKind.ALTER_TABLE
            found = [(statement, wave) for wave in (waves[::-1] if altering else waves)]
        else:
            found = []
            for one in replayed:
                made = self._written_out(one.statement, one.parsed)
                bare = self._without_storage(one.statement, made)
                effects = self._effects(bare, one.statement.schema, made)
                _refuse_absent(effects, self.members)
                found += [
                    (one.statement, self._exchanged(one, effects)),
                    (one.statement, self._stored(bare, effects, made)),
                ]
        # One of them has the effects; the others are steps without effects.
        found = [step for step in found if step[1]] or found[:1]
        for processed, effects in found:
            _refuse_unread(processed, effects)
        return found

    def _overridden(
        self, statement: Statement, parsed: ParsedStatement, override: DdlOverride
    ) -> list[tuple[Statement, tuple[Effect, ...]]]:
        subject = parsed.tables[0].schema if parsed.tables else statement.schema
        session = replace(statement, schema=subject, error=0)
        given = [
            self._written_out(session, self.parsed(session, text)) for text in override.statements
        ]
        # For its shard, an exchange means the statements on the ghost, whatever the target gets.
        replayed = self.online.known(parsed, statement, self.parsed)
        own = [self._written_out(one.statement, one.parsed) for one in replayed]
        action, route = override.action, self.target
        # The shard has its new name even if nothing is executed on the target.
        separate = change_and_rename(parsed) if action is OverrideAction.SKIP else ()
        parts = [self._written_out(session, self.parsed(session, t)) for t in separate]
        found = [
            (one.statement, self._exchanged(one, effects))
            for one, effects in zip(
                replayed, overridden_exchange(action, own, given, route, self.members), strict=False
            )
        ] or [
            (statement, effects)
            for part in parts or [parsed]
            for effects in overridden_effects(action, part, given, route, self.members)
        ]
        if action is OverrideAction.SKIP:
            found = [(one, self._filter.answered(parsed, effects)) for one, effects in found]
            found = [(one, tuple(map(self._answered, effects))) for one, effects in found]
        if action is OverrideAction.SKIP and not any(effects for _, effects in found):
            self._doubt_renamed(statement, parsed)
        self._log.warning(
            "ddl.override",
            position=str(statement.position),
            action=override.action.value,
            statement=statement.sql[:500],
            given=override.statements,
            targets=sorted({str(effect.target) for _, effects in found for effect in effects}),
        )
        return found

    def _answered(self, effect: Effect) -> Effect:
        """Return a skipped effect; no shard waits for others to lose keys that tie its target."""
        if effect.kind is not EffectKind.ALTER:
            return effect
        try:
            self._refuse_cascades(effect.statement, (effect,))
        except DdlError:
            return replace(effect, filtered=True, answered=True)
        return effect

    def _doubt_renamed(self, statement: Statement, parsed: ParsedStatement) -> None:
        """Mark the structures of tables as guesses after a RENAME that is not followed."""
        at, registry = statement.transaction, self._registry
        names = {
            self.known_as(TableName(table.schema, table.table)): None
            for pair in parsed.renames
            for table in pair
        }
        numbers = [registry.number(Member(self._source, name)) for name in names]
        held = {number: registry.held(number, at - 1) for number in numbers if number is not None}
        there = {h.structure.columns for h in held.values() if h.structure is not None and h.known}
        if len(there) == 1 and all(h.known for h in held.values()) and self._all_replicated(parsed):
            # Their rows are read in the same way, whatever their names.
            return
        doubt = f"a statement that renames tables was skipped: {statement.sql[:500]}"
        for number, before in held.items():
            registry.learn(number, at, guess(before.structure, doubt))

    def _all_replicated(self, parsed: ParsedStatement) -> bool:
        made: set[TableName] = set()
        for pair in parsed.renames:
            old, new = (self.known_as(TableName(t.schema, t.table)) for t in pair)
            if old not in made and self.target(old) is None:
                return False
            made.add(new)
        return True

    def _without_storage(self, statement: Statement, parsed: ParsedStatement) -> ParsedStatement:
        """Return a statement without storage options, unless it has nothing else."""
        edits = physical_edits(parsed)
        if not edits or is_idle(parsed):
            return parsed
        return self.parsed(statement, splice(parsed.sql, edits))

    def _stored(
        self, parsed: ParsedStatement, effects: tuple[Effect, ...], whole: ParsedStatement
    ) -> tuple[Effect, ...]:
        """Return the storage options of a statement, which may have no effects."""
        options = physical_options(whole)
        # A shard's engine decides whether its foreign keys count.
        if not options and not (whole.kind is StatementKind.ALTER_TABLE and named_engine(whole)):
            return ()
        if is_idle(parsed):
            effects = self._filter.apply(whole, effects_of(parsed, self.target, self.members))
        return tuple(
            Effect(EffectKind.STORAGE, e.table, e.target, "", whole, options=options)
            for e in effects
            if e.kind in _DEFINING and e.instead is None
        )

    def _effects(
        self, parsed: ParsedStatement, schema: str, whole: ParsedStatement
    ) -> tuple[Effect, ...]:
        """Return the effects of ``parsed`` that the filters allow by the text of ``whole``.

        Raises DdlError, ForbiddenStatementError.
        """
        try:
            effects = effects_of(parsed, self.target, self.members)
        except DdlError:
            default = self.known_as(TableName(schema, "")).schema
            if self._filter.leaves_out(whole, default, self.target):
                return ()
            raise
        kept = self._filter.apply(whole, effects)
        if kept and is_idle(parsed):
            self._log.info("ddl.idle", statement=parsed.sql[:200])
            return ()
        self._refuse_cascades(parsed, kept)
        refuse_ruled(kept, self._columns)
        return kept

    def _refuse_cascades(self, parsed: ParsedStatement, effects: tuple[Effect, ...]) -> None:
        """Raise DdlError for a new foreign key whose changes of rows the task can't repeat."""
        if not self.cascades_unlogged or not acts_on_rows(parsed.tokens):
            return
        for effect in effects:
            there = effect.statement.only_if_missing and effect.table in self.members
            if effect.kind not in _DEFINING or there:
                continue
            refuse_unrepeatable(parsed, effect.table, self._rules)

    def _written_out(self, statement: Statement, parsed: ParsedStatement) -> ParsedStatement:
        """Return a statement with what the source's server has added to it.

        This is the default collation of the server or database, if needed, and the foreign keys
        that the server and engine have made of it.
        """
        context = statement.context
        sql = self._collations.written_out(
            parsed, context.server_collation, context.charset_collations
        )
        found = parsed if sql is None else self.parsed(statement, sql)
        sql = references_apart(found, heeded=self._heeds_references)
        found = found if sql == found.sql else self.parsed(statement, sql)
        sql = without_ignored_keys(found)
        return found if sql == found.sql else self.parsed(statement, sql)

    def _exchanged(self, replay: Replay, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """Return a ghost table's effects for its real table, with its CREATE TABLE, if any."""
        made = self._written_out(replay.statement, replay.made) if replay.made else None
        made = self._without_storage(replay.statement, made) if made else None
        return tuple(replace(effect, exchanged=True, made=made) for effect in effects)

    def parsed(self, statement: Statement, sql: str) -> ParsedStatement:
        """Classify a text under the SQL mode of a statement's session."""
        parsed = classify(
            sql,
            default_schema=statement.schema,
            ansi_quotes=statement.context.ansi_quotes,
            no_backslash_escapes=statement.context.no_backslash_escapes,
            folds_names=self._folds_names,
        )
        return replace(parsed, error=statement.error)

    def _refuse_uncopied(self, effect: Effect, statement: Statement) -> None:
        """Raise FatalError if a table that was never copied is changed or renamed."""
        changed = effect.kind in (EffectKind.ALTER, EffectKind.RENAME) and not effect.created
        if effect.filtered or not changed or self.is_copied(effect.table):
            return
        raise uncopied_members(
            self._source,
            {effect.table: effect.target},
            "a table that was never copied is changed",
            f"source {self._source}, at {statement.position}: {statement.sql[:500]}",
            self.scope_of(effect.statement),
        )

    def _note(self, effects: tuple[Effect, ...]) -> None:
        """Add and remove members; some may take the names of others at the same moment."""
        gone = (EffectKind.DROP, EffectKind.MOVE_OUT, EffectKind.RENAME)
        self.members -= {effect.table for effect in effects if effect.kind in gone}
        for effect in effects:
            if effect.kind in (EffectKind.CREATE, EffectKind.MOVE_IN) or effect.created:
                self.members.add(effect.table)
            elif effect.kind is EffectKind.RENAME and effect.renamed_to is not None:
                self.members.add(effect.renamed_to)

    def _tell(self, sequences: Iterable[TableName]) -> None:
        """Log once that sequences are not replicated, if tables with their names would be."""
        for name in sorted(set(sequences) - self._told):
            self._told.add(name)
            if (target := self.target(name)) is not None:
                self._log.warning("sequence.not-replicated", sequence=str(name), target=str(target))

    def scope_of(self, parsed: ParsedStatement) -> TaskParts:
        """Return the targets of a statement's tables if they are certain, otherwise its source."""
        if parsed.kind is StatementKind.UNKNOWN:
            targets = self._concerned(parsed)
        else:
            named = (self.target(TableName(table.schema, table.table)) for table in parsed.tables)
            targets = [target for target in named if target is not None]
        if parsed.kind in _ANY_TABLE or parsed.unbounded or not targets:
            return of_source(self._source)
        return of_target(*targets)

    def _by_target(self, effects: tuple[Effect, ...]) -> dict[int, tuple[Effect, ...]]:
        found: dict[int, tuple[Effect, ...]] = {}
        for effect in effects:
            number = self._registry.target(effect.target)
            found[number] = (*found.get(number, ()), effect)
        return found


def _refuse_absent(effects: tuple[Effect, ...], members: Set[TableName]) -> None:
    """Raise DdlError if a ghost replaces a table that is no longer replicated."""
    for effect in effects:
        if effect.table not in members:
            raise DdlError(
                f"a ghost becomes {effect.table}, which was dropped or renamed before: the task"
                " does not know whether the target has the ghost's rows"
            )


def _refuse_unread(statement: Statement, effects: tuple[Effect, ...]) -> None:
    """Raise DdlError for a schema change whose session or names could not be read."""
    code = statement.context.unread_code
    if effects and code is not None:
        raise DdlError(
            f"the event of a schema change has an unknown status variable (code {code}), so the"
            " task can't read the settings of its session (time zone, defaults of TIMESTAMP"
            " columns and others)"
        )
    if effects and statement.context.brackets_quote and "[" in statement.sql:
        raise DdlError(
            "the statement ran with sql_mode MSSQL, where names may be in square brackets, which"
            " the task does not read. Replace it with the same statement, with names in backticks"
        )
