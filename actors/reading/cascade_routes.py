"""Finds row events that may change rows of other tables by foreign keys, and these tables.

InnoDB changes rows of a child without logging the changes. So the changes of a parent's rows also
go to the targets of its children, each in the order of the child's own rows. They are held, applied
and counted like rows of the child, whatever the parent's own target is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from replicator.binlog.events.event_header import row_event_types
from replicator.binlog.segments.row_events import RowEvents, RowKind
from replicator.kernels.compiled import Truths
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import Effect, EffectKind
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.foreign_keys import Keys, declared_keys, keys_after, parent_of

TYPE_AT = 4
"""Offset of the type of an event in its header."""

FLAGS_AT = 19 + 6
"""Offset of the flags of a row event: after its header and its table number."""

NO_FOREIGN_KEY_CHECKS = 2
"""The flag of a row event whose session had foreign_key_checks=0 (MySQL's rows_event.h)."""

_CHANGES = np.zeros(256, np.bool_)
_CHANGES[list(row_event_types({"update", "delete"}))] = True


class CascadeRoutes:
    """The foreign keys with actions that tables of one source have, had, or may get.

    A key that a table does not have at an event does no harm, because the plans of the events
    decide (`actors.writing.cascade_plans`). `members` are the source's tables, which their owner
    keeps up to date. `start` is the position at which reading starts; None if only its GTIDs are
    known.
    """

    def __init__(
        self,
        source: str,
        registry: SchemaRegistry,
        members: Collection[TableName],
        start: int | None = None,
    ) -> None:
        self._source = source
        self._registry = registry
        self._members = members
        self._children: dict[TableName, set[TableName]] = {}
        self._keys: dict[TableName, Keys] = {}
        """The present keys of the tables whose keys are known."""
        # Includes tables renamed since: the binlog is read again from an earlier position.
        for number in registry.known_in(source):
            name = registry.member(number).name
            for at in registry.places(number):
                if (table := registry.held(number, at).structure) is not None:
                    keys = (key for key in table.definition.foreign_keys if key.acts)
                    self._add(name, (parent_of(key, table.schema) for key in keys))
            now = registry.held(number, start).certain if start is not None else None
            if now is not None and name in members:
                self._keys[name] = now.definition.foreign_keys

    def _add(self, child: TableName, parents: Iterable[TableName]) -> None:
        for parent in parents:
            self._children.setdefault(parent, set()).add(child)

    def follow(self, effects: Iterable[Effect]) -> None:
        """Record the foreign keys that a statement adds, and its renames of tables."""
        for effect in effects:
            for statement in filter(None, (effect.statement, effect.made, effect.created)):
                keys = (key for key in declared_keys(statement) if key.acts)
                self._add(effect.table, (parent_of(key, effect.table.schema) for key in keys))
            if effect.renamed_to is not None:
                self._rename(effect.table, effect.renamed_to)
                self._rename(effect.renamed_to, effect.table)
        self._change_keys([*effects])

    def _change_keys(self, effects: Sequence[Effect]) -> None:
        """Update the present keys of tables with the effects of one statement."""
        names: dict[TableName, TableName] = {}
        for effect in effects:
            table = effect.table
            match effect.kind:
                case EffectKind.MOVE_IN if effect.renamed_to is not None:
                    names[effect.renamed_to] = table
                case EffectKind.RENAME if effect.renamed_to is not None:
                    names[table] = effect.renamed_to
                case EffectKind.DROP:
                    self._keys[table] = ()
                case EffectKind.CREATE if not effect.statement.only_if_missing:
                    self._keys[table] = keys_after((), effect.statement)
                case EffectKind.CREATE if table in self._keys:
                    # The table may have existed already.
                    self._keys[table] += keys_after((), effect.statement)
                case EffectKind.ALTER if table in self._keys:
                    self._keys[table] = keys_after(self._keys[table], effect.statement)
        moved = {new: self._keys.pop(old) for old, new in names.items() if old in self._keys}
        unknown = set(names.values()) - moved.keys()
        self._keys |= dict.fromkeys(names, ()) | moved
        for name in unknown:
            self._keys.pop(name, None)
        for table, keys in self._keys.items():
            parents = ((key, names.get(parent_of(key, table.schema))) for key in keys)
            renamed = (
                replace(key, parent_schema=now.schema, parent=now.table)
                for key, now in parents
                if now is not None
            )
            # A server may leave the former name in the key.
            self._keys[table] = (*keys, *renamed)

    def _rename(self, old: TableName, new: TableName) -> None:
        if old in self._children:
            self._children.setdefault(new, set()).update(self._children[old])
        for children in self._children.values():
            if old in children:
                children.add(new)

    def family(self, name: TableName) -> Set[TableName]:
        """Return the tables that such keys may connect with a table now, directly or indirectly.

        The result is empty if the table has no such key.
        """
        found: set[TableName] = set()
        left = [name]
        while left:
            new = set(self._next_to(left.pop())) - found
            found |= new
            left += new
        return found

    def _next_to(self, name: TableName) -> Iterator[TableName]:
        """Yield the parents and children of a table by keys that may act now."""
        for child in self._children.get(name, set()) & set(self._members):
            if self._acts(child, name):
                yield child
        for parent, children in self._children.items():
            if name in children and self._acts(name, parent):
                yield parent

    def _acts(self, child: TableName, parent: TableName) -> bool:
        """Return whether a table that had such a key to a parent may have one now."""
        keys = self._keys.get(child)
        return keys is None or any(
            key.acts and parent_of(key, child.schema) == parent for key in keys
        )

    def added(self, rows: Mapping[int, RowEvents]) -> Mapping[int, RowEvents]:
        """Return a segment's rows by target, with the changes of parents for their children."""
        if not self._children:
            return rows
        more: dict[int, list[RowEvents]] = {}
        for events in rows.values():
            for target, found in self._of_children(events):
                more.setdefault(target, []).append(found)
        if not more:
            return rows
        return {**rows, **{target: _merged(rows.get(target), of) for target, of in more.items()}}

    def _of_children(self, events: RowEvents) -> Iterable[tuple[int, RowEvents]]:
        registry = self._registry
        chosen: Truths | None = None
        for index, kind in enumerate(events.kinds):
            children = self.below(registry.member(kind.member).name)
            if not children:
                continue
            chosen = _changing(events) if chosen is None else chosen
            found = events.where(chosen & (events.kind == index))
            if found is None:
                continue
            for child in children:
                number = registry.number(Member(self._source, child))
                if number is not None:
                    own = RowKind(number, kind.table_map, kind.member)
                    zeros = np.zeros(len(found), np.int64)
                    yield registry.target_of(number), found.of_kinds(zeros, (own,))

    def below(self, parent: TableName) -> list[TableName]:
        """Return the tables that a change of a parent's row may reach."""
        found: set[TableName] = set()
        left = [parent]
        while left:
            children = self._children.get(left.pop(), set()) - found
            found |= children
            left += children
        return sorted(found & set(self._members)) if found else []


def _changing(events: RowEvents) -> Truths:
    """Return for each event whether it changes or deletes rows with foreign keys checked."""
    unchecked = (events.data[events.begin + FLAGS_AT] & NO_FOREIGN_KEY_CHECKS) != 0
    changing: Truths = _CHANGES[events.data[events.begin + TYPE_AT]] & ~unchecked
    return changing


def _merged(own: RowEvents | None, others: list[RowEvents]) -> RowEvents:
    """Return the events of one segment in the order of the binlog, with its one buffer."""
    tables = [*([own] if own is not None else []), *others]
    kinds: list[RowKind] = []
    numbers = []
    for table in tables:
        numbers.append(table.kind + len(kinds))
        kinds += table.kinds
    begin, end, transaction, ordinal = (
        np.concatenate([getattr(table, name) for table in tables])
        for name in ("begin", "end", "transaction", "ordinal")
    )
    every = replace(
        tables[0],
        begin=begin,
        end=end,
        kind=np.concatenate(numbers),
        transaction=transaction,
        ordinal=ordinal,
        kinds=tuple(kinds),
    )
    return every.at(np.lexsort((ordinal, transaction)))
