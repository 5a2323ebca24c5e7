"""The shape of a table: the part that its rows depend on, and the join of shapes.

The join is the smallest shape into which every row of each member fits. The join has each column
that one of the members has. It has a key only if each member has one that is at least as strict,
and a CHECK only if all have the same. Rows do not depend on order, defaults, comments and plain
indexes. A shape still includes the plain indexes, and the target gets an index if all members have
the same.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from replicator.ddl.parser.tokens import TokenKind, tokenise
from replicator.mysql.names import folded
from replicator.schema.effects.check_constraints import check_constraints, json_column
from replicator.schema.effects.column_values import formula, formula_form, items_of, text_of
from replicator.schema.structure.shown_values import converts_unchanged, shown_value
from replicator.schema.structure.structure import Column, Table, UniqueKey
from replicator.sharding.optimistic.column_order import (
    charset,
    collation_way,
    joined_column,
    kind,
    loses,
    narrowed,
    takes,
)
from replicator.sharding.optimistic.fills import Fill
from replicator.sharding.optimistic.partitions import partitions

Key = frozenset[str]
"""The folded columns of a unique key, in no order because order does not affect uniqueness.

For a key over a part of a column, or over an expression, the text of this part (`` `v`(10)``).
"""


class NoJoinError(Exception):
    """No shape accepts the rows of all members; `column` is the column that prevents it."""

    def __init__(self, column: str, one: Column, other: Column, why: str) -> None:
        super().__init__(why)
        self.column = column
        self.one = one
        self.other = other


@dataclass(frozen=True)
class ShapeColumn:
    """A column of a shape.

    Attributes:
        formula: the form by which the formula of a generated column is compared.
        way: the collation, without its charset, if a unique key compares rows by it.
    """

    column: Column
    formula: str = ""
    way: str = ""

    @cached_property
    def sense(self) -> tuple[object, ...]:
        """All properties that rows depend on, the same for all servers."""
        column = self.column
        return kind(column), charset(column), column.nullable, column.generated, self.formula

    @property
    def whole(self) -> tuple[object, ...]:
        """The sense, and how a unique key compares the column."""
        return *self.sense, self.way


@dataclass(frozen=True)
class Shape:
    """The shape of a table.

    A key is the same whatever its name is, and two keys over the same columns are one.

    Attributes:
        columns: by their folded names.
        primary: the primary key.
        unique: the other unique keys over whole columns.
        partial: the unique keys over parts of columns.
        indexes: the other indexes, with their definitions.
        checks: the CHECK constraints, in a form for comparison.
    """

    columns: Mapping[str, ShapeColumn]
    primary: Key | None
    unique: frozenset[Key]
    indexes: frozenset[tuple[str, str]]
    checks: frozenset[str] = frozenset()
    partial: frozenset[Key] = frozenset()

    @cached_property
    def sense(self) -> tuple[object, ...]:
        """The value by which two shapes are compared."""
        columns = tuple(sorted((name, found.whole) for name, found in self.columns.items()))
        return columns, self.primary, self.unique, self.indexes, self.checks, self.partial

    @cached_property
    def parts(self) -> frozenset[str]:
        """Its parts, each as a text that is the same for all servers."""
        keys = [_key_part("unique", key) for key in self.unique | self.partial]
        if self.primary is not None:
            keys.append(_key_part("primary", self.primary))
        columns = (_column_part(name, column) for name, column in self.columns.items())
        indexes = (_index_part(index) for index in self.indexes)
        return frozenset((*columns, *keys, *indexes, *map(_check_part, self.checks)))

    @property
    def keys(self) -> frozenset[Key]:
        """All unique keys over whole columns."""
        return self.unique | ({self.primary} if self.primary is not None else set())

    @property
    def constraints(self) -> frozenset[Key]:
        """All unique keys."""
        return self.keys | self.partial

    @property
    def identifies(self) -> bool:
        """Whether a key identifies its rows."""
        return any(
            all(not self.columns[name].column.nullable for name in key if name in self.columns)
            for key in self.keys
        )

    @property
    def identifying(self) -> frozenset[str]:
        """The columns that identify its rows: all of them if no key does."""
        if not self.identifies:
            return frozenset(self.columns)
        keys = self.unique if self.primary is None else {self.primary}
        return frozenset().union(*keys)


@lru_cache(maxsize=4096)
def shape_of(table: Table) -> Shape:
    """Return the shape of a table."""
    return _shape_of(table.unnamed)


@lru_cache(maxsize=1024)
def _shape_of(table: Table) -> Shape:
    columns = {
        folded(column.name): ShapeColumn(
            column, formula_form(table, column.name) if column.generated else ""
        )
        for column in table.columns
    }
    whole = [key for key in table.keys if not key.prefix]
    primary = next(
        (frozenset(map(folded, key.columns)) for key in whole if key.name == "PRIMARY"), None
    )
    unique = frozenset(
        frozenset(map(folded, key.columns)) for key in whole if key.name != "PRIMARY"
    )
    names = {folded(key.name) for key in table.keys}
    texts = index_texts(table)
    indexes = frozenset((name, _one_way(text)) for name, text in texts.items() if name not in names)
    checks = frozenset(check.form for check in check_constraints(table))
    partial = frozenset(key_parts(table, key) for key in table.keys if key.prefix)
    return with_ways(Shape(columns, primary, unique - {primary}, indexes, checks, partial))


def with_ways(shape: Shape) -> Shape:
    """Return a shape with the collation by which its keys compare each column."""
    compared = {n: c for n, c in shape.columns.items() if _compares(shape, n, shape)}
    ways = {n: replace(c, way=collation_way(c.column)) for n, c in compared.items()}
    return replace(shape, columns={**shape.columns, **ways})


def key_parts(table: Table, key: UniqueKey) -> Key:
    """Return the columns or parts that a unique key of a table makes unique, without its name."""
    text = index_texts(table).get(folded(key.name), "")
    if not key.prefix or not text:
        return frozenset(map(folded, key.columns))
    tokens = tokenise(text)
    places = [n for n, token in enumerate(tokens) if token.text == "("]
    parts, depth, words = [], 0, list[str]()
    for token in tokens[places[0] + 1 :]:
        depth += (token.text == "(") - (token.text == ")")
        if depth < 0 or (depth == 0 and token.text == ","):
            parts.append(" ".join(words))
            words = []
            if depth < 0:
                break
        elif token.keyword not in ("ASC", "DESC"):
            words.append(f"`{folded(token.name)}`" if token.is_name else token.text)
    # A whole column is written as in the other keys.
    return frozenset(p[1:-1] if re.fullmatch("`[^`]*`", p) else p for p in parts)


_PREFIX = re.compile(r"`(.*)` \( (\d+) \)", re.DOTALL)


def implies(own: Key, key: Key) -> bool:
    """Return whether rows that satisfy the unique key ``own`` also satisfy ``key``.

    They do if each part of ``own`` is in ``key``, or ``key`` has a longer part of the same column.
    """
    return all(part in key or any(_begins(part, other) for other in key) for part in own)


def _begins(part: str, longer: str) -> bool:
    """Return whether two texts that differ in a part of a column also differ in a longer one."""
    one, other = _PREFIX.fullmatch(part), _PREFIX.fullmatch(longer)
    if one is None:
        return False
    if other is None:
        return one[1] == longer
    return one[1] == other[1] and int(one[2]) <= int(other[2])


def _columns_of(key: Key) -> frozenset[str]:
    """Return the columns that a key compares, as far as they are known."""
    matches = {part: _PREFIX.fullmatch(part) for part in key}
    return frozenset(part if match is None else match[1] for part, match in matches.items())


def _compares(shape: Shape, name: str, joint: Shape) -> bool:
    """Return whether rows of a shape may differ only in this column of a key of ``joint``."""
    return any(
        name in _columns_of(key)
        and all(name in _columns_of(own) for own in shape.constraints if implies(own, key))
        for key in joint.constraints
    )


def may_exclude_rows(before: Table | None, after: Table | None) -> bool:
    """Return whether rows of one structure may violate constraints of another.

    The constraints are unique keys, CHECKs and partitions. ALTER IGNORE removes such rows, and
    tools that copy with INSERT IGNORE leave them out.
    """
    if before is None or after is None:
        return False
    old, new = shape_of(before), shape_of(after)
    same = {n for n, c in new.columns.items() if n in old.columns and c == old.columns[n]}
    keys = {key for key in old.constraints if _columns_of(key) <= same}
    return (
        not all(any(implies(key, wider) for key in keys) for wider in new.constraints)
        or bool(new.checks - old.checks)
        or partitions(before) != partitions(after)
    )


def join(shapes: Sequence[Shape], without_values: Collection[str] = ()) -> Shape:
    """Return the smallest shape that accepts the rows of all of these. Raises NoJoinError.

    ``without_values``: columns that are NULL in rows of shapes without them.
    """
    empty = {name for name in without_values if any(name not in s.columns for s in shapes)}
    primary = _primary(shapes, empty)
    unique = _unique(shapes, primary)
    partial = _partial(shapes)
    keys = Shape({}, primary, unique, frozenset(), partial=partial)
    columns: dict[str, ShapeColumn] = {}
    for name in sorted({name for shape in shapes for name in shape.columns}):
        having = [shape for shape in shapes if name in shape.columns]
        # If no key of a member compares a column, its collation does not matter for the join.
        ways = [s for s in having if s.columns[name].way]
        compared = [s.columns[name].column for s in ways if _compares(s, name, keys)]
        columns[name] = _joined(name, [s.columns[name] for s in having], compared)
        if name in empty and not columns[name].column.generated:
            nullable = replace(columns[name].column, nullable=True)
            columns[name] = replace(columns[name], column=nullable)
    indexes = frozenset.intersection(*(shape.indexes for shape in shapes))
    checks = {check for shape in shapes for check in shape.checks}
    kept = frozenset(check for check in checks if all(_keeps(s, check, shapes) for s in shapes))
    return Shape(columns, primary, unique, indexes, kept, partial)


def _keeps(shape: Shape, check: str, shapes: Sequence[Shape]) -> bool:
    """Return whether all rows of a shape pass a CHECK.

    Rows without a column of MariaDB's JSON type have NULL in it, which is valid.
    """
    if check in shape.checks:
        return True
    name = json_column(check)
    having = [other.columns[name].column for other in shapes if name in other.columns]
    return bool(having) and name not in shape.columns and all(c.nullable for c in having)


def joined_names(tables: Iterable[Table | None]) -> frozenset[str]:
    """Return the folded names of all columns of these tables."""
    return frozenset(folded(c.name) for table in tables if table is not None for c in table.columns)


def parts_of_step(before: Shape, after: Shape) -> frozenset[str]:
    """Return the parts that a step from one shape to another gives the target, as texts."""
    gone = before.columns.keys() - after.columns.keys()
    return frozenset((after.parts - before.parts) | {f"{_NO_COLUMN}{name}" for name in gone})


def wanted_parts(shape: Shape, parts: Iterable[str]) -> frozenset[str]:
    """Return the parts of a step that a shape has."""
    return frozenset(
        part
        for part in parts
        if part in shape.parts
        or (part.startswith(_NO_COLUMN) and part.removeprefix(_NO_COLUMN) not in shape.columns)
    )


def columns_among(shape: Shape, parts: Collection[str]) -> frozenset[str]:
    """Return the folded names of the columns that these parts of a step are about."""
    gone = (part.removeprefix(_NO_COLUMN) for part in parts if part.startswith(_NO_COLUMN))
    has = (n for n, column in shape.columns.items() if _column_part(n, column) in parts)
    return frozenset((*gone, *has))


def without_parts(shape: Shape, parts: Collection[str], present: Shape) -> Shape:
    """Return a shape without these parts.

    Columns and the primary key get their form in ``present``, the target's present shape.
    """
    primary, about = shape.primary, columns_among(shape, parts)
    if primary is not None and _key_part("primary", primary) in parts:
        primary = present.primary
    return Shape(
        {**shape.columns, **{n: c for n, c in present.columns.items() if n in about}},
        primary,
        frozenset(key for key in shape.unique if _key_part("unique", key) not in parts),
        frozenset(index for index in shape.indexes if _index_part(index) not in parts),
        frozenset(check for check in shape.checks if _check_part(check) not in parts),
        frozenset(key for key in shape.partial if _key_part("unique", key) not in parts),
    )


_NO_COLUMN = "no column "


def _column_part(name: str, column: ShapeColumn) -> str:
    return f"column {name} {column.whole}"


def _key_part(kind: str, key: Key) -> str:
    return f"{kind} {sorted(key)}"


def _index_part(index: tuple[str, str]) -> str:
    return f"index {index[1]}"


def _check_part(check: str) -> str:
    return f"check {check}"


def unfit_column(
    before: Shape, after: Shape, members: Sequence[Table], fills: Mapping[str, Fill]
) -> str:
    """Return why a narrower type would change the value of rows whose members lack the column.

    Empty if they keep their value. Otherwise a server would round or refuse the value, and the
    member may still add the wider column.
    """
    having = [shape_of(member).columns.keys() for member in members]
    for name, found in after.columns.items():
        former, fill = before.columns.get(name), fills.get(name)
        if former is None or fill is None or fill.null:
            continue
        if not (fill.constant or fill.shows_less):
            continue
        if all(name in names for names in having) or takes(found.column, former.column):
            continue
        if not converts_unchanged(fill.sql, former.column, found.column):
            shown = fill.sql if fill.constant else fill.text
            return (
                f"rows of shards without column {found.column.name} get {shown}, which"
                f" {described(found.column)} can't store unchanged"
            )
    return ""


def unfindable(
    shape: Shape, found_by: Collection[str], members: Sequence[Table], fills: Mapping[str, Fill]
) -> frozenset[str]:
    """Return the columns that some members lack and by whose values their rows can't be found.

    The value that the target's server returns for these rows is not known. ``found_by``: the
    columns that identify rows.
    """
    having = [shape_of(member).columns.keys() for member in members]
    return frozenset(
        name
        for name, found in shape.columns.items()
        if name in found_by
        and not (found.column.generated or all(name in names for names in having))
        and (fill := fills.get(name)) is not None
        and not fill.null
        and shown_value(found.column, fill.sql) is None
    )


def fits(narrow: Shape, wide: Shape) -> bool:
    """Return whether every row of one shape fits into another."""
    try:
        return join([narrow, wide]).sense == wide.sense
    except NoJoinError:
        return False


def _joined(name: str, having: Sequence[ShapeColumn], compared: Sequence[Column]) -> ShapeColumn:
    first = having[0]
    for other in having[1:]:
        if (other.column.generated, other.formula) != (first.column.generated, first.formula):
            raise NoJoinError(
                name,
                first.column,
                other.column,
                f"column {first.column.name} is computed otherwise",
            )
    different = [*{found.sense: found.column for found in reversed(having)}.values()]
    joined = joined_column(different, compared)
    if joined is None:
        one, two = _apart(different, ())
        why = (
            f"no type takes the values of both {described(one)} and {described(two)}"
            f" of column {one.name}"
        )
        if joined_column(different) is not None:
            one, two = _apart(compared, compared)
            why = (
                f"a unique key has column {one.name}, which shards compare by different"
                f" collations, {one.collation} and {two.collation}"
            )
        raise NoJoinError(name, one, two, why)
    way = collation_way(joined) if compared else ""
    return replace(first, column=joined, way=way)


def _apart(columns: Sequence[Column], compared: Sequence[Column]) -> tuple[Column, Column]:
    """Return two columns that can't be joined; collations count unless ``compared`` is empty."""
    for place, one in enumerate(columns):
        for other in columns[place + 1 :]:
            pair = [one, other]
            if joined_column(pair, pair if compared else ()) is None:
                return one, other
    return columns[0], columns[-1]


def described(column: Column) -> str:
    """Return a column's type for a message."""
    text = f" CHARACTER SET {column.charset}" if column.charset else ""
    return f"{column.type}{text}"


def described_apart(table: Table, column: Column) -> str:
    """Return a column, with collation and formula, for a message about tables that differ in it."""
    collation = f" COLLATE {column.collation}" if column.collation else ""
    text = formula(table, column.name)
    computed = f" AS {text}" if text else ""
    return f"{described(column)}{collation}{computed}"


def _primary(shapes: Sequence[Shape], empty: Collection[str]) -> Key | None:
    found: set[str] = set()
    for shape in shapes:
        if shape.primary is None:
            return None
        found |= shape.primary
    nullable = any(
        name in empty or (name in shape.columns and shape.columns[name].column.nullable)
        for shape in shapes
        for name in found
    )
    return None if nullable else frozenset(found)


def _unique(shapes: Sequence[Shape], primary: Key | None) -> frozenset[Key]:
    """Return the keys that all rows satisfy, as each member has a key over a subset of columns."""
    candidates = {key for shape in shapes for key in shape.keys}
    kept = {key for key in candidates if all(any(own <= key for own in s.keys) for s in shapes)} - {
        primary
    }
    stricter = kept | ({primary} if primary is not None else set())
    return frozenset(
        key
        for key in kept
        if all(key in shape.unique for shape in shapes)
        or not any(other < key for other in stricter)
    )


def _partial(shapes: Sequence[Shape]) -> frozenset[Key]:
    """Return the keys over parts of columns that each member's rows satisfy."""
    candidates = {key for shape in shapes for key in shape.partial}
    return frozenset(
        key
        for key in candidates
        if all(any(implies(own, key) for own in shape.constraints) for shape in shapes)
    )


def _one_way(text: str) -> str:
    """Return the definition of an index in a form that is the same for all servers."""
    words = [token.name.lower() for token in tokenise(text)]
    return " ".join(words).replace(" using btree", "")


_INDEX_WORDS = frozenset({"PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR"})


def index_texts(table: Table) -> dict[str, str]:
    """Return the definitions of a table's indexes, including unique ones, by their folded names."""
    found = {}
    for item in items_of(table.create_sql):
        text = text_of(table.create_sql, item)
        if item[0].kind is TokenKind.QUOTED or item[0].keyword not in _INDEX_WORDS:
            continue
        if item[0].keyword == "PRIMARY":
            found["primary"] = text
        else:
            named = next((t for t in item if t.kind is TokenKind.QUOTED), None)
            if named is not None:
                found[folded(named.name)] = text
    return found


def definitions(table: Table) -> Sequence[tuple[str, ...]]:
    """Return a table's definitions in a normal form, for tables that one server has written."""
    return [tuple(token.name for token in item) for item in items_of(table.create_sql)]


def rounded_apart(
    before: Table | None, after: Table, shape: Shape, *, strict: bool
) -> frozenset[str]:
    """Return the columns that a statement makes narrower while the target stays wider.

    The values of these columns in the shard may have changed. ``shape``: the target's shape.
    """
    return frozenset(
        name
        for name in narrowed(before, after, strict=strict)
        if (own := after.column(name))
        and name in shape.columns
        and loses(shape.columns[name].column, own, strict=False)
    )
