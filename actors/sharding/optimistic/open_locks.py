"""Locks for reports: open statements and refused steps, each with its remedies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from actors.saved.lock_state import ShardStatement
from actors.sharding.shard_mode import LockRemedy, OpenLock
from replicator.binlog.segments.segment import Statement
from replicator.mysql.names import Member, TableName
from replicator.sharding.items import Item
from replicator.sharding.open_locks import LockView
from replicator.sharding.optimistic.differences import against
from replicator.sharding.optimistic.shard_states import (
    Action,
    ConflictKind,
    OpenStatement,
    RefusedStep,
    TargetState,
)
from replicator.terminal.figures import some_of
from replicator.watermark import Place

_LACKED = frozenset({ConflictKind.NAME, ConflictKind.ROUNDED, ConflictKind.ROWS})
"""The conflicts that end as soon as the other shards have made the statement, too."""


def statement_lock(
    target: TableName,
    version: int,
    sources: Collection[str],
    state: TargetState[Member],
    member: Member,
    opened: OpenStatement,
    *,
    held: int,
    position: str,
) -> OpenLock:
    """Return the lock of a member's open statement.

    Args:
        held: number of the member's held rows.
        position: position of the statement; empty if unknown.
    """
    others = () if opened.answered else against(state, member, opened)
    lacking = by_source(others) if opened.conflict in _LACKED else {}
    view = LockView(
        target=target,
        version=version,
        item=_item(member, opened.text, opened.sql, opened.at, opened.timestamp),
        owner=member.source,
        ready=tuple(s for s in sources if s != member.source and s not in lacking),
        missing=lacking,
        rows_held=held,
        conflict=None,
        resolving=opened.answered,
    )
    return OpenLock(
        str(target),
        view,
        opened.timestamp or None,
        {member.source: opened.timestamp} if held and opened.timestamp else {},
        reason=f"{member}: {opened.reason}",
        remedies=(*remedies_of(member, opened, others), *_override(member, opened, position)),
        refused=opened.conflict is ConflictKind.REFUSED and not opened.answered,
    )


def refused_lock(
    target: TableName, version: int, sources: Collection[str], step: RefusedStep[Member]
) -> OpenLock:
    """Return the lock of a step that the target has refused because of the target's rows."""
    view = LockView(
        target=target,
        version=version,
        item=_item(step.member, step.sql, step.sql, step.at, step.timestamp),
        owner=step.member.source,
        ready=tuple(sources),
        missing={},
        rows_held=0,
        conflict=None,
        resolving=step.action is not None,
    )
    return OpenLock(
        str(target),
        view,
        step.timestamp or None,
        reason=f"{step.member}: the target has refused the change, so it accepts more than its"
        f" shards; no rows are held: {step.reason}",
        remedies=tuple(_step_remedies(step)),
        holds=False,
    )


def _item(
    member: Member, text: str, sql: str, at: Place, timestamp: int
) -> Item[TableName, ShardStatement]:
    statement = Statement("", sql, at.transaction, timestamp)
    place = Place(at.transaction, 0)
    return Item(text, (sql,), member.name, place, ShardStatement(statement))


def by_source(members: Iterable[Member]) -> Mapping[str, tuple[TableName, ...]]:
    """Return the members by their sources."""
    found = defaultdict[str, list[TableName]](list)
    for member in members:
        found[member.source].append(member.name)
    return {source: tuple(names) for source, names in found.items()}


def listed(members: Iterable[Member]) -> str:
    """Return the members by their sources, as text for a message; empty for none."""
    found = by_source(members)
    return "; ".join(f"{source}: {some_of([*map(str, n)])}" for source, n in found.items())


def remedies_of(
    member: Member, opened: OpenStatement, others: Iterable[Member]
) -> Iterator[LockRemedy]:
    """Yield the remedies of an open statement. ``others``: the members in conflict with it."""
    if opened.answered:
        yield LockRemedy("wait: the task reads the shard's rows again")
        return
    first = _FIRST.get(opened.conflict)
    names = listed(others)
    if first is not None and names and opened.structure is not None:
        yield LockRemedy(first.format(f" ({names})"))
    for action, text in _ANSWERS.get(opened.conflict, {}).items():
        if action not in opened.unfit:
            yield LockRemedy(text, action.value, member.source, str(member.name))


def _override(member: Member, opened: OpenStatement, position: str) -> Iterator[LockRemedy]:
    """Yield the remedy to give other statements instead, if neither exec nor skip may help."""
    answers = _ANSWERS.get(opened.conflict, {}).keys() - opened.unfit.keys()
    if (
        position
        and not opened.answered
        and (not answers or opened.conflict is ConflictKind.REFUSED)
    ):
        skip = opened.conflict is ConflictKind.RETIRED
        yield LockRemedy(
            f"{_SKIP if skip else ''}give other statements for the target, with the shard's"
            " table name",
            owner=member.source,
            shard=str(member.name),
            position=position,
        )


def _step_remedies(step: RefusedStep[Member]) -> Iterator[LockRemedy]:
    if step.action is not None:
        yield LockRemedy("wait: the task tries it again")
        return
    texts = {
        Action.EXEC: "tries again, once the target's rows are corrected (change them in the"
        " shards; rows that no shard has, on the target)",
        Action.SKIP: "the target stays as it is",
    }
    for action, text in texts.items():
        yield LockRemedy(text, action.value, step.member.source, str(step.member.name))


def helpful(member: Member, opened: OpenStatement, others: Iterable[Member]) -> str:
    """Return the remedies as text if no answer can help; ``others`` as in `remedies_of`."""
    remedies = [
        f"{way.action}: {way.text}" if way.action else way.text
        for way in remedies_of(member, opened, others)
    ]
    return f"What helps: {'; or '.join(remedies) or '`replicator show-ddl-locks`'}"


_SKIP = "`replicator binlog skip` with the options below keeps the rows on the target; or "
_FIRST = {
    ConflictKind.NAME: "run the statement on the other shards{}: the last one resolves it",
    ConflictKind.TYPE: "make the column of the other shards{} like this one. If a statement of"
    " theirs converts values, it is open, too: answer it with exec",
    ConflictKind.STALE: "drop the column on the other shards{}: then the task adds it by itself",
    ConflictKind.ROUNDED: "run the statement on the other shards{}: the last one resolves it",
    ConflictKind.ROWS: "run the statement on the other shards{}: the last one resolves it",
}
"""What the operator can do in the shards."""
_VALUES = (
    "the shard's older rows keep other values on the target than in the shard, until"
    " `replicator compare` with --repair-now, or you, correct them"
)
_ROUNDED = (
    "the target follows, and older rows keep other values in this column than in their shards,"
    " until `replicator compare` with --repair-now, or you, correct them"
)
_FORMER = (
    "the shard's older rows keep their former values in it, until `replicator compare` with"
    " --repair-now, or you, correct them"
)
_ANSWERS = {
    ConflictKind.NAME: {
        Action.EXEC: "the target gets the new column beside the old one, until no shard has that;"
        f" {_VALUES}",
    },
    ConflictKind.TYPE: {
        Action.EXEC: "the target's column becomes this one; a value of other shards that does not"
        " fit blocks the target",
        Action.SKIP: "the target's column stays; a value of this shard that does not fit blocks"
        " the target. If both compute the column, its values are the target's. Otherwise"
        f" {_VALUES}",
    },
    ConflictKind.FILL: {
        Action.EXEC: f"rows without the column get this value from now on; {_VALUES}",
        Action.SKIP: f"the target's default stays; {_VALUES}",
    },
    ConflictKind.STALE: {Action.EXEC: _FORMER, Action.SKIP: _FORMER},
    ConflictKind.ROUNDED: {Action.EXEC: _ROUNDED, Action.SKIP: _ROUNDED},
    ConflictKind.LEFT_OUT: {
        Action.EXEC: "the shard's further rows are applied; the target keeps the rows that were"
        " left out, until you delete them (`replicator compare` names them; with --repair-now, it"
        " deletes them if the task has made a full copy and no filter leaves out deletions)",
    },
    ConflictKind.REFUSED: {
        Action.EXEC: "tries again, once the target or its rows are corrected",
    },
}
"""The effects of the operator's answers."""
