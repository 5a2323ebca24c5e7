"""A target table that does not exist: who makes it, and what it is made without."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace

from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.agreement import Shard
from replicator.checks.schema.table_fit import rule_differences
from replicator.ddl.rewrite.target_table import Collations, target_table
from replicator.mysql.names import TableName, quote

_PLACE = CheckedPart("target")


def check_missing(
    name: TableName, shards: Sequence[Shard], available: Set[str], *, copies: bool
) -> list[CheckResult]:
    """Tell what becomes of a target that is not there; the full copy makes it like the first.

    ``available`` are the collations of the target's server.
    """
    first = shards[0]
    qualified = name.quoted
    try:
        made = target_table(
            first.table.create_sql,
            name.schema,
            name.table,
            Collations(first.collations, available),
        )
    except ValueError as error:
        return [
            _PLACE.failed(
                "table_schema",
                f"{name} does not exist, and how to make it can't be told from {first.member}: "
                f"{error}",
                f"Create {name} by hand, with columns and keys that take the shards' rows",
            )
        ]
    lacking = _lacking(name, first, made.sql)
    if lacking is not None:
        return [lacking]
    if not copies:
        return [
            _PLACE.warning(
                "table_schema",
                f"{name} does not exist, and without a full copy only a CREATE TABLE in the binlog "
                "makes it: rows that come before one stop the task",
                f"CREATE DATABASE IF NOT EXISTS {quote(name.schema)}; {made.sql};",
            )
        ]
    engine = f", with the engine InnoDB in place of {made.engine}" if made.engine else ""
    results = [
        _PLACE.passed(
            "table_schema",
            f"{name} does not exist: the full copy makes it as {first.member}{engine}",
        )
    ]
    if made.collations:
        others = ", ".join(f"{mine} becomes {its}" for mine, its in made.collations)
        results.append(
            _PLACE.warning(
                "table_schema",
                f"the target's server lacks collations of {first.member}: in {name} {others}, in "
                "which texts that differ in case or accents are different, also in unique keys",
                f"If it should be another one, create {name} by hand before the copy: {made.sql};",
            )
        )
    if made.foreign_keys:
        finding = f"the full copy makes {name} without the foreign keys of {first.member}: " + (
            "; ".join(made.foreign_keys)
        )
        added = " ".join(f"ALTER TABLE {qualified} ADD {key};" for key in made.foreign_keys)
        way_out = (
            f"If they are wanted, after the copy, with the parents' names in the target: {added}"
        )
        results.append(_PLACE.warning("foreign_keys", finding, way_out))
    return results


def _lacking(name: TableName, first: Shard, made: str) -> CheckResult | None:
    """A target that would not do, made as its first shard, for what is made of columns."""
    like_it = replace(first.table, schema=name.schema, name=name.table)
    lacking = rule_differences(first.table, like_it, first.rules)
    if not lacking:
        return None
    reasons = "; ".join(difference.text for difference in lacking)
    statements = " ".join(difference.way_out for difference in lacking)
    return _PLACE.failed(
        "table_schema",
        f"{name} does not exist, and made as {first.member} it would not do: {reasons}",
        f"CREATE DATABASE IF NOT EXISTS {quote(name.schema)}; {made}; {statements}"
        " Where shards have equal keys, an extracted column belongs into the key, too",
    )
