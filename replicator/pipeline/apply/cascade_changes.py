"""Applies the effects of foreign keys with actions to the rows of targets, by statements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from replicator.downstream.meta.late_cascades import Change, LateCascade
from replicator.downstream.meta.tracked_keys import track_keys
from replicator.downstream.rows.key_lookup import key_conditions, locked_fields
from replicator.downstream.rows.literals import NULL_FIELD, identifier, key_literal
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.downstream.rows.write_session import Session
from replicator.mysql.names import Member, TableName, folded
from replicator.pipeline.plans.cascade import CASCADE, CascadeEdge, CascadeGraph, CascadeTable

Fields = tuple[bytes, ...]
"""Values of referenced columns, as fields of row lines."""


class KeylessChildError(Exception):
    """Rows of a child can't be found in its shards, because the child has no key."""

    def __init__(self, child: CascadeTable) -> None:
        super().__init__(
            f"foreign keys changed rows of {child.member} while a lock held rows of it or of a"
            f" table that it refers to, and {child.target} has no key: the task can't find out"
            " which of its rows the shard still has"
        )
        self.member = child.member


@dataclass(slots=True)
class CascadeChanges:
    """Changes the rows of the tables that depend on one row event of a parent.

    Attributes:
        session: a session with foreign_key_checks=0, inside a transaction.
        reached: the tables whose rows may be changed now. Other children are changed at another
            time.
        tracked_table: the quoted name of the table of tracked keys.
        uncertain: the targets of children whose rows may differ from the shards' rows after the
            changes; an update of a key is ignored if the new key exists already.
        reconciles: whether the targets of children may be reconciled afterwards.
        late: changes of children that are made later, when their own rows are applied.
        tracked: number of deleted rows that may be newer than the event. Their keys are tracked, so
            that the task restores the rows that a shard has.
    """

    session: Session
    graph: CascadeGraph
    reached: Set[Member]
    tracked_table: str
    uncertain: set[TableName]
    reconciles: bool
    late: list[LateCascade] = field(default_factory=list)
    tracked: int = 0

    def deleted(self, parent: int, rows: Sequence[Fields], only: Member | None = None) -> None:
        """Apply the effects of deleted rows of a table. Raises the driver's error.

        Args:
            only: change only rows of this child.
        """
        for edge in self.graph[parent].edges:
            keys = list(self._keys(edge, rows))
            if not edge.on_delete or not keys:
                continue
            if not self._is_reached(parent, edge, [(row, None) for row in rows], keys, only):
                continue
            child = self.graph[edge.child]
            for condition in self._conditions(child, edge, keys):
                if edge.on_delete == CASCADE:
                    found = self._referenced(child, condition)
                    self._run(b"DELETE FROM ", child, b"", condition)
                    if found:
                        self.deleted(edge.child, found)
                else:
                    self._set(edge, condition, (NULL_FIELD,) * len(edge.columns))

    def updated(self, parent: int, old: Fields, new: Fields, only: Member | None = None) -> None:
        """Apply the effects of an updated row of a table. Raises the driver's error."""
        for edge in self.graph[parent].edges:
            former = list(self._keys(edge, [old]))
            values = tuple(new[place] for place in edge.parent_columns)
            if not edge.on_update or former in ([], [values]):
                continue
            if not self._is_reached(parent, edge, [(old, new)], former, only):
                continue
            if edge.on_update != CASCADE:
                values = (NULL_FIELD,) * len(values)
            for condition in self._conditions(self.graph[edge.child], edge, former):
                self._set(edge, condition, values)

    def resume(self, late: LateCascade) -> None:
        """Make the changes of a child that were postponed when rows of its parent were changed."""
        for number, table in enumerate(self.graph[1:], 1):
            if table.member.name != late.parent:
                continue
            names = [folded(column.name) for column in table.referenced]
            places = [late.columns.index(name) for name in names if name in late.columns]
            for old, new in late.changes:
                before = tuple(old[place] for place in places)
                if new is None:
                    self.deleted(number, [before], late.child)
                else:
                    after = tuple(new[place] for place in places)
                    self.updated(number, before, after, late.child)

    def _is_reached(
        self,
        parent: int,
        edge: CascadeEdge,
        changes: list[Change],
        keys: Sequence[Fields],
        only: Member | None,
    ) -> bool:
        """Whether rows of a child are changed now. If they are changed later, this is recorded."""
        table, child = self.graph[parent], self.graph[edge.child]
        if only is not None:
            return child.member == only
        if child.member in self.reached:
            return True
        if not parent:
            # The child's own rows reach this event at another time.
            return False
        columns = tuple(folded(column.name) for column in table.referenced)
        late = LateCascade(child.member, table.member.name, columns, tuple(changes))
        if late not in self.late:
            self.late.append(LateCascade(child.member, table.member.name, columns, tuple(changes)))
        for condition in self._conditions(child, edge, keys):
            self._take_away(child, edge.child, condition)
        return False

    def _take_away(self, child: CascadeTable, number: int, condition: bytes) -> None:
        """Delete rows of a child that may be newer than this event, and track their keys."""
        lines = [b"\t".join(row) for row in self._selected(child, child.key, condition)]
        if not lines:
            return
        if child.key:
            track_keys(self.session, self.tracked_table, child.target, child.key, lines)
            self.tracked += len(lines)
        elif self.reconciles:
            self.uncertain.add(child.target)
        else:
            raise KeylessChildError(child)
        found = self._referenced(child, condition)
        self._run(b"DELETE FROM ", child, b"", condition)
        for edge in self.graph[number].edges:
            keys = list(self._keys(edge, found))
            for below in self._conditions(self.graph[edge.child], edge, keys) if keys else ():
                self._take_away(self.graph[edge.child], edge.child, below)

    def _keys(self, edge: CascadeEdge, rows: Sequence[Fields]) -> Iterator[Fields]:
        for row in rows:
            key = tuple(row[place] for place in edge.parent_columns)
            if NULL_FIELD not in key:
                yield key

    def _conditions(
        self, child: CascadeTable, edge: CascadeEdge, keys: Sequence[Fields]
    ) -> Iterator[bytes]:
        own = b"".join(
            b" AND %s=%s" % (identifier(column.name), key_literal(column, value))
            for column, value in child.constants
        )
        fields = (list(zip(edge.columns, key, strict=True)) for key in keys)
        yield from (condition + own for condition in key_conditions(fields))

    def _set(self, edge: CascadeEdge, condition: bytes, values: Fields) -> None:
        """Set the columns of a key in the rows of a child."""
        child = self.graph[edge.child]
        found = self._referenced(child, condition)
        names = {folded(column.name) for column in edge.columns}
        sets = [
            b"%s=%s" % (identifier(column.name), key_literal(column, value))
            for column, value in zip(edge.columns, values, strict=True)
        ]
        sets += [
            b"%s=%s" % (identifier(name), identifier(name))
            for name in child.kept
            if folded(name) not in names
        ]
        verb = b"UPDATE IGNORE " if child.target in self.uncertain else b"UPDATE "
        self._run(verb, child, b" SET " + b",".join(sets), condition)
        changed = {folded(c.name): v for c, v in zip(edge.columns, values, strict=True)}
        for row in found:
            new = tuple(
                changed.get(folded(column.name), value)
                for column, value in zip(child.referenced, row, strict=True)
            )
            self.updated(edge.child, row, new)

    def _referenced(self, child: CascadeTable, condition: bytes) -> list[Fields]:
        return self._selected(child, child.referenced, condition) if child.edges else []

    def _selected(
        self, child: CascadeTable, columns: Sequence[TargetColumn], condition: bytes
    ) -> list[Fields]:
        return locked_fields(self.session, child.target.quoted, columns, condition)

    def _run(self, verb: bytes, child: CascadeTable, sets: bytes, condition: bytes) -> None:
        table = child.target.quoted.encode()
        self.session.run(b"%s%s%s WHERE %s" % (verb, table, sets, condition))
