"""Members that change one after the other, and a target that follows them by the rule alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import count

from pydantic import TypeAdapter

from actors.sharding.uncoordinated.change_entries import (
    ChangeContext,
    altered_entry,
    created_entry,
    plain_entry,
)
from replicator.ddl.parser.classify import classify
from replicator.mysql.context.statement_context import StatementContext
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.ddl_effects import Effect, effects_of
from replicator.schema.effects.touched_parts import columns_of
from replicator.schema.structure.structure import Column, Table
from replicator.sharding.uncoordinated.change_history import ChangeHistory, Entry, Reading

TARGET = TableName("m", "t")
_ENTRY = TypeAdapter(Entry[Member])
_fresh = count()


@dataclass(frozen=True, slots=True)
class Values:
    """A column: its type, and the change that its values come from."""

    type: str
    made: object = field(default_factory=lambda: next(_fresh))


Columns = dict[str, Values]


def columns(text: str) -> Columns:
    """``a int, b bigint``."""
    pairs = (column.split() for column in text.split(", ") if column)
    return {name: Values(kind) for name, kind in pairs}


def table(found: Columns) -> Table:
    return Table("s", "t", tuple(Column(n, v.type) for n, v in found.items()), (), "")


def altered(found: Columns, actions: str, at: object = None) -> Columns | None:
    """The columns behind an ALTER; None where a server would refuse it.

    What is added has the values of the change that is called ``at``, if one is given.
    """
    kept, came = dict(found), Columns()
    for action in actions.split(", "):
        verb, *words = action.split()
        match verb, words:
            case "ADD" | "DROP", ["INDEX", *_]:
                continue
            case "ADD", [name, kind]:
                came[name] = Values(kind) if at is None else Values(kind, (at, name))
            case "DROP", [name] if name in kept:
                del kept[name]
            case "MODIFY", [name, kind] if name in kept:
                kept[name] = replace(kept[name], type=kind)
            case "CHANGE", [old, new, kind] if old in kept:
                came[new] = replace(kept.pop(old), type=kind)
            case "DROP" | "MODIFY" | "CHANGE", _:
                return None
    return None if kept.keys() & came.keys() else kept | came


class Followed:
    """A target, the entries of its history, and members with their structures."""

    def __init__(self, target: str) -> None:
        self.target = columns(target)
        self.members: dict[Member, Columns] = {}
        self.executed: list[str] = []
        self._entries: list[str] = []

    def member(self, name: str, found: str | Columns | None = None) -> Member:
        """A shard, as it is when the task first sees it: like the target unless given."""
        source, _, name = name.rpartition(".")
        member = Member(source, TableName("s", name))
        self.members[member] = (
            columns(found) if isinstance(found, str) else dict(self.target | (found or {}))
        )
        return member

    def create(self, name: str, found: str | None = None) -> Member:
        """A shard that is created while the task follows."""
        member = self.member(name, found)
        change = MemberChange(None, table(self.members[member]), creates=True)
        effect = self._effect(f"CREATE TABLE {member.name.table} (id INT)")
        self._save(created_entry(member, effect, change, self._context(member)))
        return member

    def rename(self, member: Member, name: str) -> Member:
        new = Member(member.source, TableName("s", name))
        self._save(plain_entry(member, self._effect(f"RENAME TABLE {member.name.table} TO {name}")))
        self.members[new] = self.members.pop(member)
        return new

    def alter(
        self, member: Member, actions: str, instead: str | None = None, at: object = None
    ) -> Reading | None:
        """A shard's statement; what the operator wants in its place may be given."""
        before = self.members[member]
        after = altered(before, actions, at)
        assert after is not None, f"{member} can't {actions}"
        effect = self._effect(f"ALTER TABLE {member.name.table} {actions}")
        if instead is not None:
            effect = replace(effect, instead=(instead,) if instead else ())
        change = MemberChange(table(before), table(after))
        session = StatementContext()
        entry, verdict = altered_entry(member, effect, change, self._context(member), session)
        if verdict is not None and verdict.reading is Reading.UNCLEAR:
            return verdict.reading
        self._save(entry)
        self.members[member] = after
        run = actions if instead is None else instead
        changed = altered(self.target, run, at) if entry.ran and run else None
        if changed is not None:
            self.target = changed
            self.executed.append(run)
        return verdict.reading if verdict else None

    def former(self, member: Member) -> dict[str, bool]:
        """Columns that are other ones in the target, and whether a rename made them so."""
        parts = columns_of(table(self.members[member])) & columns_of(table(self.target))
        found = self._history().former(member, parts)
        return {former.part.removeprefix("column "): former.exchanged for former in found}

    def _context(self, member: Member) -> ChangeContext:
        others = [table(found) for other, found in self.members.items() if other != member]
        return ChangeContext(self._history(), table(self.target), others)

    def _history(self) -> ChangeHistory[Member]:
        # From what is saved, each time: nothing else may decide.
        entries = map(_ENTRY.validate_json, self._entries)
        return ChangeHistory(enumerate(entries, 1))

    def _save(self, entry: Entry[Member] | None) -> None:
        assert entry is not None
        if self._history().first is None:
            entry = replace(entry, first=columns_of(table(self.target)))
        self._entries.append(_ENTRY.dump_json(entry).decode())

    def _effect(self, sql: str) -> Effect:
        statement = classify(re.sub(r"\s+", " ", sql), default_schema="s")
        [effect] = effects_of(statement, lambda name: TARGET if name.table else None, ())
        return effect
