"""The entry of a shard's event in the history of its target: structures as input of the rule. Pure.

The rule (`replicator.sharding.uncoordinated.change_history`) knows parts and levels, no columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from replicator.ddl.parser.statement import TableReference, TableRole
from replicator.ddl.rewrite.normalise import normalise
from replicator.mysql.context.statement_context import StatementContext
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.added_keys import has_all_added
from replicator.schema.effects.carried_change import MemberChange, lacking
from replicator.schema.effects.ddl_effects import Effect, EffectKind, target_statement
from replicator.schema.effects.session_settings import settings_of
from replicator.schema.effects.touched_parts import (
    Touched,
    columns_of,
    fitting_parts,
    foreign_parts,
    index_part,
    touched_parts,
)
from replicator.schema.structure.structure import Table
from replicator.sharding.uncoordinated.change_history import (
    ChangeHistory,
    Comparison,
    Entry,
    HistoryChange,
    Reading,
    StatementVerdict,
)


@dataclass(frozen=True, slots=True)
class ChangeContext:
    """The state that an event finds: the history of its target, the target's structure (None: there
    is no table), and the structures of its other members, as far as they are known."""

    history: ChangeHistory[Member]
    present: Table | None
    others: Sequence[Table] = ()


def plain_entry(member: Member, effect: Effect) -> Entry[Member] | None:
    """The entry of an event that no structure is needed for; None where there is none."""
    match effect.kind:
        case EffectKind.RENAME:
            pairs = tuple(
                (_member(member.source, old), _member(member.source, new))
                for old, new in effect.statement.renames
            )
            return Entry(member, ran=False, renamed=pairs)
        case EffectKind.MOVE_IN if effect.moved_by_other or not effect.skipped:
            return Entry(member, reset=True)
        case EffectKind.DROP if effect.discards_rows:
            return Entry(member, reset=True)
    return None


def created_entry(
    member: Member, effect: Effect, change: MemberChange, context: ChangeContext
) -> Entry[Member] | None:
    """The entry of a CREATE TABLE; None where the table was there."""
    if effect.statement.only_if_missing and change.before is not None:
        return None
    replaced = bool(effect.clears) and effect.clears in (effect.instead or ())
    if replaced:
        context = ChangeContext(ChangeHistory(()), None)
    entry = joined_entry(member, change.after, context)
    return replace(entry, ran=not effect.skipped, reset=replaced)


def moved_entry(member: Member, change: MemberChange, context: ChangeContext) -> Entry[Member]:
    """The entry of a member that comes from another target, its rows moved by the operator."""
    return replace(joined_entry(member, change.after, context), ran=False)


def joined_entry(member: Member, structure: Table | None, context: ChangeContext) -> Entry[Member]:
    """The entry of a member that is new: it has brought what its structure shows."""
    mine = columns_of(structure)
    if context.present is None:
        levels = context.history.levels_of_new(mine, frozenset())
    else:
        theirs = columns_of(context.present)
        unlike = (mine ^ theirs) | foreign_parts(structure, context.present, context.others)
        if structure is not None:
            unlike |= _index_parts(context.present) - _index_parts(structure)
        levels = context.history.levels_of_new(mine & theirs, unlike)
    return Entry(member, levels=levels, joined=True)


def _index_parts(table: Table) -> frozenset[str]:
    return frozenset(index_part(key.name) for key in table.definition.keys)


def altered_entry(
    member: Member,
    effect: Effect,
    change: MemberChange,
    context: ChangeContext,
    session: StatementContext,
) -> tuple[Entry[Member], StatementVerdict | None]:
    """The entry of an ALTER, and its verdict, unless the operator has said what to execute.

    ``session``: that of the statement. If the verdict is UNCLEAR, the entry must not be saved.
    """
    own = target_statement(effect, session)
    # Each shard names the parents of its foreign keys in a schema of its own.
    text = normalise(own if own.named(TableRole.REFERENCED) else effect.statement)
    touched = touched_parts(effect.statement, change)
    parts = touched.all or frozenset({f"statement {text}"})
    entry = Entry(
        member,
        text,
        parts,
        dropped=frozenset(touched.dropped),
        exchanged=frozenset(touched.renamed | touched.named),
        settings=settings_of(effect.statement, change.before, session),
    )
    if effect.skipped:
        # The operator says that it is settled, or it would take rows of others away. What the task
        # file filters is the same for all members: nobody comes to be elsewhere by it.
        levels = () if effect.filtered else context.history.tops(parts)
        return replace(entry, ran=False, levels=levels), None
    if effect.instead is not None or context.present is None:
        return replace(entry, changed=True), None
    verdict = context.history.read(
        member,
        HistoryChange(text, parts, touched.taken, frozenset(touched.added)),
        _compared(change, context, context.present, touched),
    )
    repeated = any(context.history.last(part) is not None for part in parts)
    if (
        verdict.reading is not Reading.APPLIED
        and change.before is not None
        and has_all_added(own, change.before, context.present, repeated=repeated)
    ):
        levels = verdict.levels or context.history.tops(parts)
        verdict = StatementVerdict(Reading.APPLIED, levels, verdict.same)
    if verdict.reading is Reading.NEW:
        return replace(entry, changed=True), verdict
    ran = verdict.reading is not Reading.APPLIED
    return replace(entry, ran=ran, levels=verdict.levels), verdict


def _compared(
    change: MemberChange, context: ChangeContext, present: Table, touched: Touched
) -> Comparison:
    before, after = change.before, change.after
    first = columns_of(present) if context.history.first is None else context.history.first
    fitting = fitting_parts(touched, after, present)
    if before is None or after is None:
        return Comparison(present=columns_of(present), fitting=fitting)
    return Comparison(
        lacking=bool(lacking(change, present)),
        telling=(before.columns, before.keys) != (after.columns, after.keys),
        present=columns_of(present),
        missing=first - columns_of(before),
        foreign=foreign_parts(before, present, context.others),
        fitting=fitting,
    )


def _member(source: str, table: TableReference) -> Member:
    return Member(source, TableName(table.schema, table.table))
