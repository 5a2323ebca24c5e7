"""Plans that apply a parent's row events to its children, as foreign keys did in the shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from attrs import define, field

from actors.setup.task_setup import ColumnsOf
from replicator.binlog.events.table_map import TableMap
from replicator.binlog.segments.row_events import RowKind
from replicator.ddl.model.table import ForeignKeyDefinition
from replicator.downstream.rows.target_columns import TargetColumn, TargetTable
from replicator.mysql.names import Member, folded
from replicator.pipeline.plans.cascade import (
    CASCADE,
    SET_NULL,
    CascadeEdge,
    CascadeGraph,
    CascadeTable,
)
from replicator.pipeline.plans.plan import TablePlan
from replicator.pipeline.plans.planning import (
    MissingColumnError,
    filled_column,
    parent_rows,
    target_column,
)
from replicator.schema.effects.column_path import ColumnPath
from replicator.schema.registry.registry import SchemaRegistry
from replicator.schema.structure.foreign_keys import parent_of
from replicator.schema.structure.structure import Column, Table


@dataclass(frozen=True, slots=True)
class _Link:
    """A foreign key with an action between two members, which are given by their numbers."""

    child: int
    parent: int
    key: ForeignKeyDefinition


@define(eq=False)
class CascadePlans:
    """Makes the plans. ``tables``: by number, the known structures of targets."""

    _registry: SchemaRegistry
    _columns: ColumnsOf
    _tables: Mapping[int, Table]
    _buckets: int
    _acting: dict[str, tuple[int, tuple[int, ...]]] = field(factory=dict, init=False)
    _plans: dict[object, tuple[TableMap, TablePlan]] = field(factory=dict, init=False)

    def forget(self) -> None:
        """Drop all plans."""
        self._plans.clear()

    def targets(self, kind: RowKind) -> set[int]:
        """Return the targets that a change of the parent may affect."""
        source = self._registry.member(kind.parent).source
        return {self._registry.target_of(number) for number in self._with_keys(source)}

    def plan(self, kind: RowKind, at: int, structure: Table, path: ColumnPath) -> TablePlan | None:
        """Return the plan of a parent's events for a child; None if no key acts at this position.

        Args:
            structure: structure of the parent.
            path: path of the child's columns.

        Raises:
            PlanError: the child's target lacks a column or type that the shard's foreign keys need.
        """
        links = self._links(kind.parent, at)
        if not any(link.child == kind.member for link in links):
            return None
        asked = (kind.member, kind.parent, links, path, structure.columns)
        known = self._plans.get(asked)
        if known is None or (known[0] is not kind.table_map and known[0] != kind.table_map):
            made = self._made(kind, structure, links, path)
            known = self._plans[asked] = kind.table_map, made
        return known[1]

    def _made(
        self, kind: RowKind, structure: Table, links: tuple[_Link, ...], path: ColumnPath
    ) -> TablePlan:
        registry = self._registry
        parent = registry.member(kind.parent)
        names = {
            folded(name)
            for link in links
            if link.parent == kind.parent
            for name in link.key.parent_columns
        }
        fields = [c for c in structure.columns if folded(c.name) in names]
        graph = self._graph(kind, links, fields, path)
        number = registry.target_of(kind.member)
        table = self._tables[number]
        return TablePlan(
            target=TargetTable(
                number,
                table.schema,
                table.name,
                self._buckets,
                replace=True,
                write_rules=table.write_rules,
            ),
            member=registry.member(kind.member),
            rows=parent_rows(parent, structure, kind.table_map, names, self._columns(parent)),
            target_columns=(),
            cascade=graph,
        )

    def _graph(
        self, kind: RowKind, links: tuple[_Link, ...], fields: list[Column], path: ColumnPath
    ) -> CascadeGraph:
        children = list(dict.fromkeys(link.child for link in links))
        places = {number: place for place, number in enumerate(children, 1)}

        def edges(parent: int, columns: list[Column]) -> tuple[CascadeEdge, ...]:
            found = (
                self._edge(
                    link,
                    places[link.child],
                    columns,
                    path if link.child == kind.member else None,
                )
                for link in links
                if link.parent == parent
            )
            return tuple(edge for edge in found if edge is not None)

        member = self._registry.member(kind.parent)
        target = self._registry.target_name(self._registry.target_of(kind.parent))
        event = CascadeTable(
            member, target, tuple(map(target_column, fields)), edges(kind.parent, fields)
        )
        tables = [event]
        for number in children:
            columns = self._referenced(number, links)
            tables.append(self._table(number, columns, edges(number, columns)))
        return tuple(tables)

    def _referenced(self, number: int, links: tuple[_Link, ...]) -> list[Column]:
        table = self._tables[self._registry.target_of(number)]
        names = {
            folded(n) for link in links if link.parent == number for n in link.key.parent_columns
        }
        return [column for column in table.columns if folded(column.name) in names]

    def _table(
        self, number: int, columns: list[Column], edges: tuple[CascadeEdge, ...]
    ) -> CascadeTable:
        member, of = self._registry.member(number), self._registry.target_of(number)
        table = self._tables[of]
        constants = (
            filled_column(str(member), table, made) for made in self._columns(member).extracted
        )
        key = table.row_key.columns if table.row_key is not None else ()
        return CascadeTable(
            member,
            self._registry.target_name(of),
            tuple(map(target_column, columns)),
            edges,
            tuple((target_column(column), value) for column, value in constants),
            tuple(
                column.name
                for column in table.columns
                if not column.generated
                and (defined := table.defined(column.name)) is not None
                and defined.on_update
            ),
            tuple(target_column(c) for name in key if (c := table.column(name)) is not None),
        )

    def _edge(
        self, link: _Link, child: int, columns: list[Column], path: ColumnPath | None
    ) -> CascadeEdge | None:
        """Return the key as the child's target has it; ``path`` is None in another child's plan."""
        key, table = link.key, self._tables[self._registry.target_of(link.child)]
        member = self._registry.member(link.child)
        names = [folded(column.name) for column in columns]
        renamed = dict(path or ())
        parent_columns: list[int] = []
        own: list[TargetColumn] = []
        for mine, its in zip(key.columns, key.parent_columns, strict=True):
            name = renamed.get(folded(mine), mine)
            if not name:
                # The target has dropped the column, so no row of the target refers to another row
                # by it.
                return None
            column = table.column(name)
            lacks = column is None or folded(its) not in names
            if lacks and path is None:
                # The child's own plan has the key.
                return None
            if column is None or folded(its) not in names:
                missing = f"{its} of its parent" if column is not None else name
                raise MissingColumnError(
                    f"{member}: the target lacks column {missing}, which the foreign key"
                    f" {key.name} of the shard has: the task can't change the rows that the"
                    " shard's server has changed by it"
                )
            place = names.index(folded(its))
            parent_columns.append(place)
            own.append(replace(target_column(column), charset=columns[place].charset))
        acts = {CASCADE, SET_NULL}
        on_delete = key.on_delete if key.on_delete in acts else ""
        on_update = key.on_update if key.on_update in acts else ""
        return CascadeEdge(child, tuple(parent_columns), tuple(own), on_delete, on_update)

    def _links(self, parent: int, at: int) -> tuple[_Link, ...]:
        """Return the foreign keys by which changes of a parent affect other rows at a position."""
        found: list[_Link] = []
        known = list(self._links_at(self._registry.member(parent).source, at))
        left, seen = [parent], {parent}
        while left:
            number = left.pop(0)
            own = [link for link in known if link.parent == number]
            found += own
            new = [c for link in own if (c := link.child) not in seen]
            left += dict.fromkeys(new)
            seen.update(new)
        return tuple(found)

    def _links_at(self, source: str, at: int) -> Iterator[_Link]:
        registry = self._registry
        for number in self._with_keys(source):
            table = registry.held(number, at).structure
            if table is None or registry.target_of(number) not in self._tables:
                continue
            for key in table.definition.foreign_keys:
                parent = registry.number(Member(source, parent_of(key, table.schema)))
                if key.acts and parent is not None:
                    yield _Link(number, parent, key)

    def _with_keys(self, source: str) -> tuple[int, ...]:
        registry = self._registry
        changes, numbers = self._acting.get(source, (-1, ()))
        if changes != registry.changes:
            numbers = tuple(m for m in registry.known_in(source) if self._ever_acts(m))
            self._acting[source] = registry.changes, numbers
        return numbers

    def _ever_acts(self, number: int) -> bool:
        held = (self._registry.held(number, at) for at in self._registry.places(number))
        tables = (found.structure for found in held if found.structure is not None)
        return any(key.acts for table in tables for key in table.definition.foreign_keys)
