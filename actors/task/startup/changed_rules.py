"""Rules of the task file that changed between two runs, and the operator's decision about the rows.

Routes and the block-allow-list decide a shard's target; column-mappings and `extract-…` the values
of its rows there; expression filters which of its rows are there. The rows on the target were
written by the saved rules, and new rules do not change them. So a task continues with other rules
only if the operator has decided about those rows. Event filters decide which changes arrive;
changes of event filters are only logged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from actors.control.arguments import OnChangedRules
from actors.errors.faults import FatalError, fault
from actors.setup.task_setup import SourceSetup
from actors.sharding.modes import SHARD_MODES
from actors.task.startup.changed_task import Move, moved, moves_of, refuse_unfinished
from actors.task.startup.recopy import to_recopy
from replicator.downstream.meta.checkpoint import Checkpoint, MetaStore
from replicator.downstream.meta.chunks import CopyStore
from replicator.downstream.meta.decisions import DecisionStore
from replicator.downstream.meta.retirements import read_retirements
from replicator.downstream.meta.rule_texts import RuleTextStore
from replicator.failpoints import Failpoint, reach
from replicator.mysql.names import Member, TableName
from replicator.routing.columns.rule_set import MemberRuleTexts, RuleSet, dump_rules, load_rules
from replicator.schema.registry.registry import CopyState

_SHOWN = 5
"""Maximum number of shards that a message names."""

_NOT_THERE = frozenset({CopyState.LEFT_OUT, CopyState.RECOPY})
"""The states of shards without rows on the target, so without rows by former rules."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChangedRules:
    """The shards of one source for which rules have changed, each with the former and the new rule.

    Attributes:
        moves: shards that go to another target, or to none.
        columns: other shards whose columns get other values.
        rows: other shards with another selection of rows for the target.
        events: other shards with another selection of ignored changes.
        statements: other shards with a possibly different selection of statements.
        targets: targets with rows that the present rules would place or fill differently, or skip.
    """

    moves: tuple[Move, ...]
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    events: tuple[str, ...]
    statements: tuple[str, ...]
    targets: frozenset[TableName]


async def accept_rules(
    setups: Mapping[str, SourceSetup],
    meta: MetaStore,
    answer: OnChangedRules,
    *,
    copies: bool,
) -> None:
    """Compare the rules of each source with the saved ones, and save the present ones.

    ``copies``: whether the task copies, and so can copy a target again. Raises FatalError if the
    present rules would have other rows on a target, unless ``answer`` decides about the present
    ones.
    """
    store = RuleTextStore(meta)
    saved = await store.load()
    texts = {source: dump_rules(setup.rules) for source, setup in setups.items()}
    found: dict[str, ChangedRules] = {}
    for source, setup in setups.items():
        unchanged = saved.get(source) == texts[source]
        if unchanged and not _moves_any(setup, await meta.destinations(source)):
            continue
        checkpoint = await meta.load(source)
        if checkpoint is not None:
            former = load_rules(saved[source]) if source in saved else setup.rules
            found[source] = changed = changed_rules(former, setup, checkpoint)
            if changed.statements and SHARD_MODES[checkpoint.shard_mode].holds_rows:
                # The version of a row counts the statements before it.
                decided = await DecisionStore(meta).load()
                refuse_unfinished(checkpoint, "filters", changed.statements, decided)
    for source, changed in found.items():
        if changed.events:
            log.warning(
                "task.filters-changed",
                source=source,
                shards=len(changed.events),
                examples=changed.events[:_SHOWN],
            )
    concerned = {source: changed for source, changed in found.items() if changed.targets}
    if concerned:
        changes = await _changed_members(concerned, meta)
        if answer is OnChangedRules.STOP:
            targets = {target for changed in concerned.values() for target in changed.targets}
            empties = copies and not await _with_retired_rows(meta, targets)
            raise _fault(concerned, meta.task, copies=copies, empties=empties)
        if answer is OnChangedRules.RECOPY:
            await _recopy(concerned, changes, meta)
        for source, changed in concerned.items():
            await _leave(changed, changes[source][0], meta)
        await meta.save_members(changes.values())
        reach(Failpoint.RULES_ACCEPTED)
        for source, changed in concerned.items():
            for move in changed.moves:
                log.info("member.moved", source=source, move=str(move))
    # Saved only if nothing is refused: until then, rules are compared with those of the written
    # rows.
    for source, text in texts.items():
        if saved.get(source) != text:
            await store.put(source, text)


async def _leave(changed: ChangedRules, checkpoint: Checkpoint, meta: MetaStore) -> None:
    """Save that shards leave their targets; repeated after a crash."""
    leaving: dict[TableName, list[Member]] = {}
    for move in changed.moves:
        leaving.setdefault(move.record.target, []).append(move.record.member)
    for target, members in leaving.items():
        await SHARD_MODES[checkpoint.shard_mode].leave(meta, target, members)


def changed_rules(former: RuleSet, setup: SourceSetup, checkpoint: Checkpoint) -> ChangedRules:
    """Return the changes for the shards of a checkpoint."""
    moves = moves_of(setup, checkpoint)
    targets = {move.record.target for move in moves}
    targets |= {move.to for move in moves if move.to is not None}
    moving = {move.record.member for move in moves}
    before, now = MemberRuleTexts(former), MemberRuleTexts(setup.rules)
    columns, rows, events, statements = [], [], [], []
    for record in checkpoint.members:
        name = record.member.name
        if record.member in moving or record.copying in _NOT_THERE:
            continue
        old, new = before.of(name.schema, name.table), now.of(name.schema, name.table)
        if old.columns != new.columns:
            columns.append(_shown(record.member, old.columns, new.columns))
        if old.rows != new.rows:
            rows.append(_shown(record.member, old.rows, new.rows))
        if old.events != new.events:
            events.append(_shown(record.member, old.events, new.events))
        if old.statements != new.statements:
            statements.append(_shown(record.member, old.statements, new.statements))
        if (old.columns, old.rows) != (new.columns, new.rows):
            targets.add(record.target)
    return ChangedRules(
        moves,
        tuple(columns),
        tuple(rows),
        tuple(events),
        tuple(statements),
        frozenset(targets),
    )


def _moves_any(setup: SourceSetup, destinations: Mapping[TableName, TableName]) -> bool:
    for name, target in destinations.items():
        routed = setup.router.route(name.schema, name.table)
        if routed is None or TableName(routed.schema, routed.table) != target:
            return True
    return False


async def _changed_members(
    found: Mapping[str, ChangedRules], meta: MetaStore
) -> dict[str, tuple[Checkpoint, Checkpoint]]:
    """Return, by source, the saved checkpoint and the one with the shards' present targets.

    Raises FatalError if events read under the former rules must be finished under them.
    """
    decided = await DecisionStore(meta).load()
    changes = {}
    for source, changed in found.items():
        checkpoint = await meta.load(source)
        assert checkpoint is not None, f"{source}: its shards are saved"
        leave = SHARD_MODES[checkpoint.shard_mode].lets_shards_leave
        moves = [str(move) for move in changed.moves if move.to is not None or not leave]
        refuse_unfinished(checkpoint, "routes", moves, decided)
        changes[source] = checkpoint, moved(checkpoint, changed.moves)
    return changes


async def _recopy(
    found: Mapping[str, ChangedRules],
    changes: dict[str, tuple[Checkpoint, Checkpoint]],
    meta: MetaStore,
) -> None:
    """Mark all shards of these targets, at all sources, to be copied again.

    Save it in ``changes``.
    """
    sources = await meta.sources()
    await _refuse_unfinished(meta, sources)
    targets = {target for changed in found.values() for target in changed.targets}
    if kept := await _with_retired_rows(meta, targets):
        raise fault(
            "task.rules-changed",
            "retired-shards",
            kept=", ".join(kept),
            target=kept[0],
            task=meta.task,
            in_place=_corrects_in_place(found),
            options=_target_options(found),
        )
    for source in sources:
        checkpoint = await meta.load(source)
        if checkpoint is not None:
            before, after = changes.get(source, (checkpoint, checkpoint))
            changes[source] = before, to_recopy(after, targets)
    log.info("copy.recopy", targets=sorted(map(str, targets)))


async def _with_retired_rows(meta: MetaStore, targets: Collection[TableName]) -> list[str]:
    """Return the names of the targets among these that keep rows of retired shards."""
    retired = await read_retirements(meta.connection, meta.schema, meta.task)
    return sorted({str(one.target) for one in retired if one.target in targets})


def _corrects_in_place(found: Mapping[str, ChangedRules]) -> bool:
    """Return whether `replicator recopy` can correct rows of targets while readers see them."""
    return not any(changed.moves for changed in found.values())


def _target_options(found: Mapping[str, ChangedRules]) -> str:
    """Return the options of `replicator recopy` for the targets of changed rules."""
    targets = sorted({str(target) for changed in found.values() for target in changed.targets})
    return " ".join(f"--target {target}" for target in targets)


async def _refuse_unfinished(meta: MetaStore, sources: Iterable[str]) -> None:
    """Raise FatalError if a target can't be copied again because the first copy is not done."""
    copies = await CopyStore(meta).copies()
    unfinished = [s for s in sources if s not in copies or not copies[s].done]
    if not unfinished:
        return
    raise fault(
        "task.rules-changed", "unfinished", unfinished=", ".join(unfinished), source=unfinished[0]
    )


def _shown(member: Member, before: str, now: str) -> str:
    return f"{member.name}: {before or 'nothing'} before, {now or 'nothing'} now"


def _listed(texts: Sequence[str]) -> str:
    more = f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return "; ".join(texts[:_SHOWN]) + more


def _fault(
    found: Mapping[str, ChangedRules], task: str, *, copies: bool, empties: bool
) -> FatalError:
    """Return the fault for changed rules.

    ``empties``: whether their targets can be copied again.
    """
    parts = []
    for source, changed in found.items():
        kinds = (
            ("its shards go elsewhere", tuple(map(str, changed.moves))),
            ("its shards' columns get other values", changed.columns),
            ("other rows of its shards belong on the target", changed.rows),
        )
        parts += [f"source {source}: {what}: {_listed(t)}" for what, t in kinds if t]
    targets = sorted({str(target) for changed in found.values() for target in changed.targets})
    return fault(
        "task.rules-changed",
        "asked",
        changes="; ".join(parts),
        source=next(iter(found)),
        targets=", ".join(targets),
        empties=empties,
        task=task,
        in_place=copies and _corrects_in_place(found),
        options=_target_options(found),
    )
