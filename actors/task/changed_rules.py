"""Rules of the task file that have changed since rows were written by them.

Rows that are there stay as they were. Other values in their columns (mapped, extracted) would keep
them from being found: that is a fault. Which changes of rows are left out may change, and that it
has is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog

from actors.faults import FatalError
from actors.task_setup import SourceSetup
from replicator.downstream.meta import Checkpoint, MetaStore
from replicator.downstream.rule_texts import RuleTextStore
from replicator.mysql.names import Member, TableName
from replicator.routing.rule_set import MemberRuleTexts, RuleSet, dump_rules, load_rules

_SHOWN = 5
"""How many shards a message names."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChangedRules:
    """The shards for which rules have changed, each with what they said and say.

    ``columns``: what is made of columns, ``rows``: which changes of rows are left out.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]


async def note_rules(setups: Mapping[str, SourceSetup], meta: MetaStore) -> None:
    """Compare the rules of each source with those that are saved, and save them.

    Raises FatalError where the rows that are there would not be found again.
    """
    store = RuleTextStore(meta)
    saved = await store.load()
    new: dict[str, str] = {}
    for source, setup in setups.items():
        text = dump_rules(setup.rules)
        former = saved.get(source)
        if former == text:
            continue
        new[source] = text
        checkpoint = await meta.load(source)
        if former is None or checkpoint is None:
            continue
        changed = changed_rules(load_rules(former), setup, checkpoint)
        if changed.columns:
            raise _fault(source, changed.columns)
        if changed.rows:
            log.warning(
                "task.filters-changed",
                source=source,
                shards=len(changed.rows),
                examples=changed.rows[:_SHOWN],
            )
    # Only when there is no fault: until then, all is compared with what rows were written by.
    for source, text in new.items():
        await store.put(source, text)


def changed_rules(former: RuleSet, setup: SourceSetup, checkpoint: Checkpoint) -> ChangedRules:
    """What has changed for the shards of a checkpoint that go where they went."""
    before, now = MemberRuleTexts(former), MemberRuleTexts(setup.rules)
    columns, rows = [], []
    for record in checkpoint.members:
        name = record.member.name
        routed = setup.router.route(name.schema, name.table)
        if routed is None or TableName(routed.schema, routed.table) != record.target:
            continue
        old, new = before.of(name.schema, name.table), now.of(name.schema, name.table)
        if old.columns != new.columns:
            columns.append(_shown(record.member, old.columns, new.columns))
        if old.rows != new.rows:
            rows.append(_shown(record.member, old.rows, new.rows))
    return ChangedRules(tuple(columns), tuple(rows))


def _shown(member: Member, before: str, now: str) -> str:
    return f"{member.name}: {before or 'nothing'} before, {now or 'nothing'} now"


def _fault(source: str, changed: Sequence[str]) -> FatalError:
    more = f"; and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    return FatalError(
        "task.rules-changed",
        f"what the task file makes of columns (column-mappings, extract-table and the like) has"
        f" changed for shards of source {source} since their rows were written:"
        f" {'; '.join(changed[:_SHOWN])}{more}. The rows that are there would not be found again:"
        " they would stay as they were, and come a second time when they are changed",
        where=f"source {source}",
        ways_out=(
            "put the former rules back: `replicator stop`, change the task file, run the task"
            " again; it goes on where it was",
            "copy anew by the new rules: `replicator stop`, `replicator remove`, empty the"
            " targets, run the task with task-mode: all",
            "if the rows on the target have been changed by hand to what the new rules make of"
            " them, up to the saved positions: `replicator run --remove-meta` with task-mode:"
            " incremental, and meta: of every instance at its saved position",
        ),
    )
