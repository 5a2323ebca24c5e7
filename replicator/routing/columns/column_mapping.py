"""Column mapping: adds the numbers in the names of schema and table to the values of a key.

Source of the layout: TiDB Data Migration 1.0, "Column mapping", and its package ``column-mapping``.
Of the 64 bits of a BIGINT, the first is 0 (the sign). The next 4 are for the instance, 7 for the
schema, 8 for the table, and the last 44 for the value. An omitted number leaves no gap: the next
one moves up, so without an instance, the schema's number is in the bits 56 to 62.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from replicator.routing.routes import RouteError, patterns_of
from replicator.routing.wildcards import NamePattern

INSTANCE_BITS, SCHEMA_BITS, TABLE_BITS, VALUE_BITS = 4, 7, 8, 44

VALUE_LIMIT = 1 << VALUE_BITS
"""The first value that can't be mapped; mapped values start at 0."""


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of a member whose values are combined with bits of the member: ``value | upper``."""

    name: str
    upper: int

    def mapped(self, value: int) -> int:
        """Return the value on the target. Raises ValueError if it is too large."""
        if not 0 <= value < VALUE_LIMIT:
            raise ValueError(f"{value} is not between 0 and {VALUE_LIMIT - 1}")
        return value | self.upper

    def original(self, value: int) -> int | None:
        """Return the shard's value for a mapped one; None if the value is not of this member."""
        own = value & ~(VALUE_LIMIT - 1) == self.upper
        return value & (VALUE_LIMIT - 1) if own else None


@dataclass(frozen=True, slots=True)
class MappingRule:
    """One entry of ``column-mappings``; patterns as in `NamePattern`.

    Without ``table_pattern``, it applies to whole schemas. An ``instance`` of None, and an empty
    prefix, use no bits. A name is its prefix, ``separator`` and a number, or the prefix alone.
    """

    name: str
    schema_pattern: str
    table_pattern: str
    column: str
    instance: int | None
    schema_prefix: str
    table_prefix: str
    separator: str


class _CompiledMapping(NamedTuple):
    rule: MappingRule
    schema: NamePattern
    table: NamePattern | None


class ColumnMappings:
    """The mapping rules of one source.

    ``case_sensitive``: whether case counts in patterns and prefixes. Raises `RouteError` for a rule
    with a broken pattern.
    """

    def __init__(self, rules: Iterable[MappingRule], *, case_sensitive: bool) -> None:
        self._case_sensitive = case_sensitive
        self._rules = [_compiled(rule, case_sensitive) for rule in rules]

    def of(self, schema: str, table: str) -> MappedColumn | None:
        """Return the mapped column of a table, if any.

        Rules with a table pattern precede rules for whole schemas. Raises `RouteError` if two rules
        of the same level match, or the names of the table have no number that fits.
        """
        matching = [entry for entry in self._rules if entry.schema.matches(schema)]
        named = [e.rule for e in matching if e.table is not None and e.table.matches(table)]
        found = named or [e.rule for e in matching if e.table is None]
        if not found:
            return None
        if len(found) > 1:
            names = " and ".join(repr(rule.name) for rule in found)
            raise RouteError(
                f"the table {schema}.{table} matches the column mappings {names}, but a table can"
                " have one mapped column: make their schema-pattern or table-pattern narrower"
                " in the task file, or use extract-table, extract-schema or extract-source of the"
                " route."
            )
        (rule,) = found
        return MappedColumn(rule.column, self._upper(rule, schema, table))

    def _upper(self, rule: MappingRule, schema: str, table: str) -> int:
        upper, shift = 0, INSTANCE_BITS + SCHEMA_BITS + TABLE_BITS + VALUE_BITS
        if rule.instance is not None:
            shift -= INSTANCE_BITS
            upper |= _fitting(rule, "the instance", rule.instance, INSTANCE_BITS) << shift
        for what, name, prefix, bits in (
            (f"the schema of {schema}.{table}", schema, rule.schema_prefix, SCHEMA_BITS),
            (f"the table of {schema}.{table}", table, rule.table_prefix, TABLE_BITS),
        ):
            if prefix:
                shift -= bits
                number = self._number(rule, what, name, prefix)
                upper |= _fitting(rule, what, number, bits) << shift
        return upper

    def _number(self, rule: MappingRule, what: str, name: str, prefix: str) -> int:
        text, before = name, prefix + rule.separator
        if not self._case_sensitive:
            text, prefix, before = text.lower(), prefix.lower(), before.lower()
        if text == prefix:
            return 0
        number = text.removeprefix(before)
        if not text.startswith(before) or re.fullmatch("[0-9]+", number) is None:
            raise RouteError(
                f"the column mapping {rule.name!r} can't number {what}: {name!r} is neither"
                f" {prefix!r} nor {before!r} followed by a number, and without a number its keys"
                " would be those of another table. Correct the arguments in the task file, or"
                " leave the table out (schema-pattern, table-pattern)."
            )
        return int(number)


def _fitting(rule: MappingRule, what: str, number: int, bits: int) -> int:
    if number >= 1 << bits:
        raise RouteError(
            f"the column mapping {rule.name!r} can't number {what}: {number} does not fit into"
            f" the {bits} bits for it (0 to {(1 << bits) - 1}). For more shards, use an extracted"
            " column in the target's key (extract-table in `routes`)."
        )
    return number


def _compiled(rule: MappingRule, case_sensitive: bool) -> _CompiledMapping:
    what, names = f"the column mapping {rule.name!r}", (rule.schema_pattern, rule.table_pattern)
    return _CompiledMapping(rule, *patterns_of(what, *names, case_sensitive))
