"""Online schema changes by gh-ost and pt-online-schema-change, followed by their statements.

Both tools create a ghost table, ALTER it while it is empty, fill it, and exchange it with the real
table by RENAME (manuals of gh-ost and Percona Toolkit). For the real table, all changes of the
ghost take effect at the RENAME. So the changes are recorded, and replayed at the RENAME.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from replicator.ddl.analysis.side_effects import changed_tables, concerns
from replicator.ddl.parser.alter_actions import alter_actions
from replicator.ddl.parser.alter_parser import only_counts
from replicator.ddl.parser.statement import (
    ParsedStatement,
    StatementKind,
    TableReference,
    TableRole,
)
from replicator.mysql.names import TableName
from replicator.mysql.session_context.statement_context import NO_CONTEXT, StatementContext


class OnlineDdlError(Exception):
    """A step of an online schema change cannot be followed; the text is the reason."""


class GhostAct(StrEnum):
    """An event in the life of a ghost table."""

    BEGUN = "begun"
    """Created LIKE the real table."""
    MADE = "made"
    """Created by a definition of its own."""
    CHANGED = "changed"
    ENDED = "ended"
    OVERTAKEN = "overtaken"
    """The real table was changed, so the ghost's changes are not the only difference."""
    AWAITED = "awaited"
    """The real table was dropped to free its name, which the ghost takes next."""
    SAME = "same"
    """The ghost existed before the task, with the structure of its table. ``sql`` rebuilds the
    table; if no change follows, this is the ghost's only effect."""
    UNCLEAR = "unclear"
    """The ghost existed before the task, and its changes are unknown; ``sql`` is the reason."""


@dataclass(frozen=True, slots=True)
class GhostEntry:
    """One event of a ghost table.

    Attributes:
        at: position of the event group.
        sql: the statement as written.
        schema: the schema in effect for the statement.
        timestamp: time of the statement, in seconds.
        context: context in which the statement ran.
    """

    table: TableName
    at: int
    act: GhostAct
    sql: str = ""
    schema: str = ""
    timestamp: int = 0
    context: StatementContext = NO_CONTEXT


@dataclass(frozen=True, slots=True)
class Beside:
    """A table that a tool made for the table ``real``: a ghost, or a trash table if ``trash``."""

    real: TableName
    trash: bool


Online = Callable[[TableName], Beside | None]
"""Returns a table's role in an online schema change; None for an ordinary table, and for a tool's
table whose real table is not replicated."""


@dataclass(frozen=True, slots=True)
class OnlineStep:
    """The meaning of a statement for online schema changes.

    Attributes:
        entries: events to record.
        replayed: None if the statement is processed like any other. Otherwise the statement
            exchanges a ghost with its table, and these changes of the ghost are processed instead.
        made: the ghost's CREATE TABLE, if the ghost has a definition of its own; it shows the
            effect of the first replayed change.
    """

    entries: tuple[GhostEntry, ...] = ()
    replayed: tuple[GhostEntry, ...] | None = None
    made: GhostEntry | None = None


class GhostHistory:
    """The recorded events of one source, in binlog order. Adding an entry again changes nothing."""

    def __init__(self, entries: Iterable[GhostEntry] = ()) -> None:
        self._entries: dict[tuple[TableName, int], GhostEntry] = {}
        for entry in entries:
            self.add(entry)

    def add(self, entry: GhostEntry) -> bool:
        """Record an entry; return whether it is new."""
        key = (entry.table, entry.at)
        new = self._entries.get(key) != entry
        self._entries[key] = entry
        return new

    def last(self, table: TableName, before: int, *acts: GhostAct) -> GhostEntry | None:
        """Return the last entry of a table before a position whose act is one of these."""
        return max(
            (e for e in self._of(table, before) if e.act in acts), key=lambda e: e.at, default=None
        )

    def life(self, ghost: TableName, before: int) -> tuple[GhostEntry, ...]:
        """Return a ghost's beginning and all its events before a position.

        The result is empty if the task has not seen the beginning.
        """
        begun = self.last(ghost, before, GhostAct.BEGUN, GhostAct.MADE, GhostAct.ENDED)
        if begun is None or begun.act is GhostAct.ENDED:
            return ()
        found = [e for e in self._of(ghost, before) if e.at > begun.at]
        return (begun, *sorted(found, key=lambda entry: entry.at))

    def is_awaited(self, ghost: TableName, at: int) -> bool:
        """Whether the statement at exactly this position freed the name that its ghost takes."""
        entry = self._entries.get((ghost, at))
        return entry is not None and entry.act is GhostAct.AWAITED

    def ghosts(self, real: TableName, before: int, online: Online) -> tuple[TableName, ...]:
        """Return the ghosts of a table that exist at a position."""
        found = []
        for name in sorted({name for name, at in self._entries if at < before}):
            beside = online(name)
            if beside == Beside(real, trash=False) and self.life(name, before):
                found.append(name)
        return tuple(found)

    def outdated(self, position: int) -> tuple[GhostEntry, ...]:
        """Return the entries that are not needed to read the binlog from this position on."""
        found = []
        for entry in self._entries.values():
            acts = {GhostAct.BEGUN, GhostAct.MADE, GhostAct.ENDED}
            newer = self.last(entry.table, position, *acts)
            if newer is not None and entry.at < newer.at:
                found.append(entry)
        return tuple(found)

    def _of(self, table: TableName, before: int) -> Iterator[GhostEntry]:
        for (name, at), entry in self._entries.items():
            if name == table and at < before:
                yield entry


def read_online(
    statement: ParsedStatement, event: GhostEntry, online: Online, history: GhostHistory
) -> OnlineStep:
    """Return the meaning of a statement. Raises OnlineDdlError.

    Args:
        event: draft of the statement's entries: its position, text and context.
    """
    if statement.temporary:
        return OnlineStep()
    if statement.renames:
        return _renames(statement, event, online, history)
    gaps = gaps_of(statement, event.at, online, history)
    if gaps:
        return _make_room(statement, gaps, event.at, history)
    return OnlineStep(tuple(_entries(statement, event, online, history)))


def _entries(
    statement: ParsedStatement, event: GhostEntry, online: Online, history: GhostHistory
) -> Iterator[GhostEntry]:
    for reference in statement.named(TableRole.SUBJECT):
        table = _name(reference)
        beside = online(table)
        if beside is None or beside.trash:
            yield from _overtaken(statement, table, beside, event, online, history)
            continue
        match statement.kind:
            case StatementKind.CREATE_TABLE if not statement.only_if_missing:
                templates = [_name(template) for template in statement.named(TableRole.LIKE)]
                act = GhostAct.BEGUN if templates == [beside.real] else GhostAct.MADE
                yield replace(event, table=table, act=act)
            case StatementKind.CREATE_TABLE:
                raise OnlineDdlError(
                    f"{table}, the ghost of {beside.real}, is created with IF NOT EXISTS: the"
                    " task does not know whether it existed"
                )
            case StatementKind.DROP_TABLE | StatementKind.TRUNCATE_TABLE:
                # No tool empties its ghost, so it is unknown which rows the ghost would have
                # afterwards.
                yield replace(event, table=table, act=GhostAct.ENDED, sql="")
            case StatementKind.ALTER_TABLE if only_counts(statement):
                # Each table has its own counter.
                pass
            case StatementKind.ALTER_TABLE | StatementKind.CREATE_INDEX | StatementKind.DROP_INDEX:
                yield replace(event, table=table, act=GhostAct.CHANGED)


_OVERTAKING = (
    StatementKind.ALTER_TABLE,
    StatementKind.CREATE_TABLE,
    # Neither tool truncates the ghost when its table is truncated.
    StatementKind.TRUNCATE_TABLE,
)


def _overtaken(
    statement: ParsedStatement,
    table: TableName,
    beside: Beside | None,
    event: GhostEntry,
    online: Online,
    history: GhostHistory,
) -> Iterator[GhostEntry]:
    if beside is not None or only_counts(statement):
        return
    if statement.kind in _OVERTAKING:
        for ghost in history.ghosts(table, event.at, online):
            yield replace(event, table=ghost, act=GhostAct.OVERTAKEN)


@dataclass(frozen=True, slots=True)
class Gap:
    """A table that is dropped while its ghost remains.

    If the ghost takes the name next, the table still exists, with the ghost's rows:
    ``--alter-foreign-keys-method drop_swap`` of pt-online-schema-change does this.
    """

    real: TableName
    ghost: TableName


def gaps_of(
    statement: ParsedStatement, at: int, online: Online, history: GhostHistory
) -> tuple[Gap, ...]:
    """Return the gaps that a statement leaves."""
    if statement.kind is not StatementKind.DROP_TABLE or statement.temporary:
        return ()
    dropped = [_name(reference) for reference in statement.named(TableRole.SUBJECT)]
    return tuple(
        Gap(table, ghost)
        for table in dropped
        if online(table) is None
        for ghost in history.ghosts(table, at, online)
        if ghost not in dropped
    )


def is_filled(gap: Gap, later: Iterable[ParsedStatement]) -> bool | None:
    """Whether the ghost takes the name next; None if the later statements do not show this."""
    for statement in later:
        if any(concerns(name, own) for name in changed_tables(statement) for own in _both(gap)):
            pairs = [(_name(old), _name(new)) for old, new in statement.renames]
            return pairs == [(gap.ghost, gap.real)]
    return None


def _both(gap: Gap) -> tuple[TableName, TableName]:
    return (gap.real, gap.ghost)


def _make_room(
    statement: ParsedStatement, gaps: tuple[Gap, ...], at: int, history: GhostHistory
) -> OnlineStep:
    """Skip a DROP TABLE if a ghost takes the table's name next.

    Raise an error if this is unknown.
    """
    only = len(statement.named(TableRole.SUBJECT)) == 1 == len(gaps)
    if only and history.is_awaited(gaps[0].ghost, at):
        return OnlineStep(replayed=())
    raise OnlineDdlError(
        f"{gaps[0].real} is dropped while there is a ghost of it, {gaps[0].ghost}, and the binlog"
        " does not show yet that the ghost takes its place. If it will (drop_swap of"
        " pt-online-schema-change), `replicator resume` after that. If the table is to be"
        " dropped, `binlog replace` the statement with the same statement"
    )


def _renames(
    statement: ParsedStatement, event: GhostEntry, online: Online, history: GhostHistory
) -> OnlineStep:
    pairs = [(_name(old), _name(new)) for old, new in statement.renames]
    known = {name: online(name) for pair in pairs for name in pair}
    if not any(known.values()):
        return OnlineStep()
    if statement.kind is StatementKind.ALTER_TABLE and len(alter_actions(statement)) > 1:
        raise OnlineDdlError("ALTER TABLE renames a ghost table and changes it in one statement")
    entries: list[GhostEntry] = []
    replayed: list[GhostEntry] = []
    made: GhostEntry | None = None
    taken = 0
    for old, new in pairs:
        ghost, target = known[old], known[new]
        if target is not None and not target.trash:
            raise OnlineDdlError(
                f"{old} is renamed to {new}, which is the ghost of {target.real} by its name"
            )
        if ghost is not None and not ghost.trash:
            entries.append(replace(event, table=old, act=GhostAct.ENDED, sql=""))
            if target is None and new == ghost.real:
                begun, *changes = _life(old, new, event.at, history)
                made = begun if begun.act is GhostAct.MADE else None
                replayed += [c for c in changes if c.act is GhostAct.CHANGED] or changes
                others = [name for name in history.ghosts(new, event.at, online) if name != old]
                entries += [replace(event, table=name, act=GhostAct.OVERTAKEN) for name in others]
                taken += 1
        elif ghost is not None:
            _refuse_return(old, new, ghost)
        elif target is not None and target.real == old:
            taken += 1
    if taken and taken < len(pairs):
        raise OnlineDdlError("one RENAME exchanges a ghost table and renames other tables, too")
    return OnlineStep(tuple(entries), tuple(replayed) if taken else None, made)


def _refuse_return(old: TableName, new: TableName, trash: Beside) -> None:
    """Raise an error if a trash table becomes the real one again.

    Row events of trash tables are not read, so it is unknown whether the table still has its rows.
    """
    if new == trash.real:
        raise OnlineDdlError(
            f"{old} becomes {new}: the task does not know what happened to its rows while it had"
            " the name of a trash table. If it was this table before and nothing has changed it"
            " since, skip the statement"
        )


def _life(
    ghost: TableName, real: TableName, at: int, history: GhostHistory
) -> tuple[GhostEntry, ...]:
    """Return a ghost's beginning and changes until it takes the real table's name."""
    life = tuple(entry for entry in history.life(ghost, at) if entry.act is not GhostAct.AWAITED)
    way_out = (
        f"Replace the statement by the ALTER TABLE of {real.table} that the tool was told to make"
    )
    if not life:
        raise OnlineDdlError(
            f"{ghost} becomes {real}, but its changes are unknown: it was created before the"
            f" position at which this task began to read. {way_out}"
        )
    unclear = [entry.sql for entry in life if entry.act is GhostAct.UNCLEAR]
    if unclear:
        raise OnlineDdlError(
            f"{ghost} becomes {real}. It was created before this task began to read, and its"
            f" changes do not follow from the structures of the two tables: {unclear[0]}."
            f" {way_out}"
        )
    if len(life) == 1 and life[0].act is GhostAct.MADE:
        raise OnlineDdlError(
            f"{ghost} becomes {real} and no ALTER TABLE has changed it, but it was created from a"
            f" column list: its changes are unknown. {way_out}"
        )
    if len(life) == 1:
        raise OnlineDdlError(
            f"{ghost} becomes {real} without any change: no tool does this, and the task does not"
            " know whether it has the rows of that table"
        )
    overtaken = [entry.sql for entry in life if entry.act is GhostAct.OVERTAKEN]
    if overtaken:
        raise OnlineDdlError(
            f"{ghost} becomes {real}, which was changed while the ghost was there"
            f" ({overtaken[0][:200]}): the resulting structure is unknown. {way_out}"
        )
    return life


def _name(reference: TableReference) -> TableName:
    return TableName(reference.schema, reference.table)


def exchanged_ghost(
    real: TableName, trash: TableName, statements: Iterable[ParsedStatement], online: Online
) -> TableName | None:
    """Return the ghost that took the name ``real`` when the real table became ``trash``.

    So ``trash`` is now the former real table, and ``real`` the former ghost. Returns None if the
    statements may have changed one of the three tables in another way.
    """
    ghost: TableName | None = None
    before: list[TableName] = []
    for statement in statements:
        changed = list(changed_tables(statement))
        if ghost is not None:
            if any(concerns(name, own) for name in changed for own in (real, trash)):
                return None
        elif any(concerns(name, real) for name in changed):
            ghost = _exchanged(statement, real, trash)
            if ghost is None or online(ghost) != Beside(real, trash=False):
                return None
            if any(concerns(name, ghost) for name in before):
                return None
        before += changed
    return ghost


def _exchanged(statement: ParsedStatement, real: TableName, trash: TableName) -> TableName | None:
    pairs = [
        (TableName(old.schema, old.table), TableName(new.schema, new.table))
        for old, new in statement.renames
    ]
    if len(pairs) != 2 or pairs[0] != (real, trash) or pairs[1][1] != real:
        return None
    return pairs[1][0]
