"""The definition of a table after an ALTER TABLE, computed from its actions.

A server that refuses the change may still accept the changed table if it is created again. A result
is returned only if it is certain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replicator.ddl.model.actions import (
    Action,
    AddColumn,
    AddConstraint,
    AddKey,
    ColumnPlace,
    Convert,
    DropColumn,
    DropConstraint,
    DropKey,
    Execution,
    Redefine,
    RenameColumn,
    RenameKey,
    SetDefault,
    SetOption,
)
from replicator.ddl.model.table import (
    CheckDefinition,
    ColumnDefinition,
    DefaultKind,
    ForeignKeyDefinition,
    IndexPart,
    KeyDefinition,
    KeyKind,
    TableDefinition,
    TableOption,
)
from replicator.ddl.rewrite.altered_charsets import (
    CHARSET_OPTIONS,
    UnknownCharsetError,
    converted,
    pinned,
    with_defaults,
)
from replicator.mysql.names import folded

_SIZED = re.compile(r"\s*(?:var)?(?:char|binary)\s*\((\d+)\)", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_OPTIONS = ("COMMENT", "AUTO_INCREMENT")
_KEYS = {"UNIQUE": KeyKind.UNIQUE, "PRIMARY": KeyKind.PRIMARY, "KEY": KeyKind.PRIMARY}
"""First words of a key in a column's definition."""


class UncertainTableError(Exception):
    """The table after an ALTER TABLE is not certain; the text is the reason."""


@dataclass(frozen=True, slots=True)
class AlteredTable:
    """A table after an ALTER TABLE.

    Attributes:
        origins: the former name of each column whose values are kept or converted, by its new name.
            New and generated columns are not included.
    """

    definition: TableDefinition
    origins: Mapping[str, str]


def altered_table(before: TableDefinition, actions: Sequence[Action]) -> AlteredTable:
    """Return a table after an ALTER TABLE with these actions. Raises UncertainTableError.

    Actions refer to columns by their names before the statement, so two columns can exchange names.
    """
    for unknown in before.all_unknown:
        raise UncertainTableError(f"a part of the definition is not understood: {unknown}")
    altering = _Altering(before)
    for action in actions:
        altering.apply(action)
    return altering.result()


@dataclass(slots=True)
class _Column:
    """A column during the statement.

    Attributes:
        former: the column's name before the statement; None for a new column.
        defined: whether the statement defines the column.
    """

    former: str | None
    definition: ColumnDefinition
    defined: bool = False

    @property
    def name(self) -> str:
        return folded(self.definition.name)


class _Altering:
    """A table to which actions are applied, one after the other."""

    def __init__(self, before: TableDefinition) -> None:
        self._before = before
        self._columns = [_Column(folded(c.name), c) for c in before.columns]
        self._moves: list[tuple[_Column, ColumnPlace | None]] = []
        self._keys = list(before.keys)
        self._new_keys: list[KeyDefinition] = []
        self._checks = list(before.checks)
        self._foreign_keys = list(before.foreign_keys)
        self._options = {option.name: option.value for option in before.options}
        self._conversion: Convert | None = None
        self._defaults: dict[str, str] = {}

    def apply(self, action: Action) -> None:
        match action:
            case AddColumn() | Redefine() | DropColumn() | RenameColumn() | SetDefault():
                self._change_column(action)
            case AddKey(key=key):
                self._add_key(action, key)
            case DropKey(name=name) | RenameKey(former=name):
                self._change_key(action, name)
            case AddConstraint(constraint=CheckDefinition() as check):
                self._checks.append(check)
            case AddConstraint(constraint=ForeignKeyDefinition() as foreign_key):
                self._foreign_keys.append(foreign_key)
            case DropConstraint(name=name):
                self._drop_constraint(action, name)
            case SetOption(option=option) if option.name in CHARSET_OPTIONS:
                self._defaults[option.name] = option.value
            case SetOption(option=option) if option.name in _OPTIONS:
                self._options[option.name] = option.value
            case Convert() if self._conversion is None:
                self._conversion = action
            case Execution():
                pass
            case _:
                raise _uncertain(action)

    def _change_column(
        self, action: AddColumn | Redefine | DropColumn | RenameColumn | SetDefault
    ) -> None:
        if isinstance(action, AddColumn):
            there = self._column(action.column.name)
            if there is None:
                new = _Column(None, self._defined(action.column), defined=True)
                self._moves.append((new, action.place))
            elif not action.if_missing:
                raise _uncertain(action)
            return
        former = action.former if isinstance(action, Redefine | RenameColumn) else action.name
        column = self._column(former)
        if column is None:
            if not action.if_there:
                raise _uncertain(action)
            return
        match action:
            case Redefine(column=definition, place=place):
                column.definition, column.defined = self._defined(definition), True
                if place is not None:
                    self._columns.remove(column)
                    self._moves.append((column, place))
            case DropColumn():
                self._columns.remove(column)
            case RenameColumn(name=name):
                column.definition = replace(column.definition, name=name)
            case SetDefault(default=default):
                column.definition = replace(column.definition, default=default)

    def _column(self, name: str) -> _Column | None:
        return next((c for c in self._columns if c.former == folded(name)), None)

    def _defined(self, column: ColumnDefinition) -> ColumnDefinition:
        """Return a definition without the keys in it, which become keys of the table."""
        left = []
        words = {attribute.upper().split()[0] for attribute in column.attributes}
        if {column.type.upper(), *words} & {"SERIAL", "REFERENCES"}:
            raise UncertainTableError(f"the definition of a column makes more: {column.text}")
        for attribute in column.attributes:
            kind = _KEYS.get(attribute.upper().split()[0])
            if kind is None:
                left.append(attribute)
            elif kind is KeyKind.UNIQUE or not self._has_primary_of(column):
                self._new_keys.append(KeyDefinition(kind, "", (IndexPart(column.name),)))
        return replace(column, attributes=tuple(left))

    def _has_primary_of(self, column: ColumnDefinition) -> bool:
        parts = [key.parts for key in self._keys if key.kind is KeyKind.PRIMARY]
        return parts == [(IndexPart(column.name),)]

    def _add_key(self, action: AddKey, key: KeyDefinition) -> None:
        if key.unknown:
            raise _uncertain(action)
        there = {folded(other.name) for other in (*self._keys, *self._new_keys) if other.name}
        if folded(key.name) not in there:
            self._new_keys.append(key)
        elif not action.if_missing:
            raise _uncertain(action)

    def _change_key(self, action: DropKey | RenameKey, name: str) -> None:
        found = [
            number
            for number, key in enumerate(self._keys)
            if (folded(key.name) == folded(name) if name else key.kind is KeyKind.PRIMARY)
        ]
        if not found:
            if isinstance(action, DropKey) and action.if_there:
                return
            raise _uncertain(action)
        if isinstance(action, RenameKey):
            self._keys[found[0]] = replace(self._keys[found[0]], name=action.name)
        else:
            del self._keys[found[0]]

    def _change_charsets(self, columns: Sequence[_Column]) -> None:
        """Convert all columns, or let them keep the table's former default charset."""
        conversion, before = self._conversion, dict(self._options)
        try:
            if conversion is None and self._defaults:
                self._options = with_defaults(before, self._defaults)
                for column in columns:
                    if not column.defined:
                        column.definition = pinned(column.definition, before)
            elif conversion is not None:
                if self._defaults:
                    raise _uncertain(conversion)
                changed = {"CHARSET": conversion.charset, "COLLATE": conversion.collation}
                self._options = with_defaults(before, changed)
                for column in columns:
                    column.definition = converted(
                        column.definition, before, conversion, defined=column.defined
                    )
        except UnknownCharsetError as error:
            raise UncertainTableError(str(error)) from error

    def _drop_constraint(self, action: DropConstraint, name: str) -> None:
        checks = [c for c in self._checks if folded(c.name) != folded(name)]
        foreign_keys = [k for k in self._foreign_keys if folded(k.name) != folded(name)]
        gone = (len(self._checks) - len(checks), len(self._foreign_keys) - len(foreign_keys))
        wanted = {"CHECK": ((1, 0),), "FOREIGN KEY": ((0, 1),), "CONSTRAINT": ((1, 0), (0, 1))}
        if gone not in wanted.get(action.kind, ()):
            raise _uncertain(action)
        self._checks, self._foreign_keys = checks, foreign_keys

    def result(self) -> AlteredTable:
        """Return the table after all actions."""
        columns = list(self._columns)
        for column, place in self._moves:
            names = [other.name for other in columns]
            if place is None:
                columns.append(column)
            elif not place.after:
                columns.insert(0, column)
            elif folded(place.after) in names:
                columns.insert(names.index(folded(place.after)) + 1, column)
            else:
                raise UncertainTableError(f"there is no column {place.after}")
        self._change_charsets(columns)
        renamed = {c.former: c.definition.name for c in columns if c.former is not None}
        self._refuse_formulas(renamed)
        self._refuse_renewed(columns)
        types = {column.name: column.definition.type for column in columns}
        kept = (_followed(key, renamed, types) for key in self._keys)
        keys = (*(key for key in kept if key.parts), *self._new_keys)
        if sum(key.kind is KeyKind.PRIMARY for key in keys) > 1:
            raise UncertainTableError("two primary keys")
        primary = {folded(p.column) for k in keys if k.kind is KeyKind.PRIMARY for p in k.parts}
        definitions = [
            _not_null(c.definition) if c.name in primary else c.definition for c in columns
        ]
        if len({folded(d.name) for d in definitions}) < len(definitions):
            raise UncertainTableError("two columns of one name")
        names_before = {folded(c.name): c.name for c in self._before.columns}
        return AlteredTable(
            replace(
                self._before,
                columns=tuple(definitions),
                keys=keys,
                checks=tuple(self._checks),
                foreign_keys=tuple(self._foreign_keys),
                options=tuple(TableOption(n, value) for n, value in self._options.items() if value),
            ),
            {
                column.definition.name: names_before[column.former]
                for column in columns
                if column.former is not None and column.definition.generated is None
            },
        )

    def _refuse_renewed(self, columns: Sequence[_Column]) -> None:
        """Raise UncertainTableError if a key has a column that is dropped and added again.

        MySQL keeps such a key for the new column.
        """
        new = {column.name for column in columns if column.former is None}
        parts = {folded(part.column) for key in self._keys for part in key.parts}
        for name in sorted(new & parts):
            raise UncertainTableError(f"a key has column {name}, which is dropped and added")

    def _refuse_formulas(self, renamed: Mapping[str, str]) -> None:
        """Raise UncertainTableError if a remaining part may use a dropped or renamed column.

        Column names may also be other words of a formula.
        """
        names = (folded(c.name) for c in self._before.columns)
        changed = {name for name in names if folded(renamed.get(name, "")) != name}
        if not changed:
            return
        texts = [check.text for check in self._checks]
        texts += [part.expression for key in self._keys for part in key.parts]
        texts += [column for key in self._foreign_keys for column in key.columns]
        for column in self._columns:
            parts = (column.definition.generated, column.definition.default)
            texts += [name for part in parts if part for name in part.names]
            texts += [column.definition.check.text] if column.definition.check else []
        if self._before.partitioning:
            texts.append(self._before.partitioning.by)
        used = folded(" ".join(texts))
        words = set(_WORD.findall(used))
        for name in sorted(changed):
            if name in words or (not _WORD.fullmatch(name) and name in used):
                raise UncertainTableError(f"a formula or a foreign key may have column {name}")


def _followed(
    key: KeyDefinition, renamed: Mapping[str, str], types: Mapping[str, str]
) -> KeyDefinition:
    """Return a key without the dropped columns, and with the new names of the others.

    MySQL also removes a dropped column from a key of several columns (its manual, "ALTER TABLE
    Statement"). It indexes a complete column if the column is no longer than the former prefix.
    """
    parts = []
    for part in key.parts:
        name = renamed.get(folded(part.column), "")
        if part.expression:
            parts.append(part)
        elif name:
            prefix = part.prefix if _has_prefix(types[folded(name)], part.prefix) else 0
            parts.append(replace(part, column=name, prefix=prefix))
    return replace(key, parts=tuple(parts))


def _has_prefix(column_type: str, prefix: int) -> bool:
    found = _SIZED.match(column_type)
    if found is None:
        return "text" in column_type.lower() or "blob" in column_type.lower()
    return int(found[1]) > prefix


def _not_null(column: ColumnDefinition) -> ColumnDefinition:
    null = column.default is not None and column.default.kind is DefaultKind.NULL
    return replace(column, nullable=False, default=None if null else column.default)


def _uncertain(action: Action) -> UncertainTableError:
    return UncertainTableError(f"it is not known what this does to the table: {action.text}")
