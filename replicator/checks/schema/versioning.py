"""Members that keep their former rows: what of them arrives, and those that can't be followed."""

from __future__ import annotations

from collections.abc import Sequence

from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.agreement import Shard, members_listed
from replicator.mysql.names import TableName
from replicator.schema.structure.hidden_columns import system_period
from replicator.schema.structure.structure import Table

_PLACE = CheckedPart("target")


def check_versioning(shards: Sequence[Shard], name: TableName) -> list[CheckResult]:
    """Tell of members WITH SYSTEM VERSIONING; those by transactions can't be followed."""
    versioned = [shard for shard in shards if system_period(shard.table.create_sql)]
    precise = [shard for shard in versioned if by_transactions(shard.table)]
    results = []
    if precise:
        results.append(
            _PLACE.failed(
                "system_versioning",
                f"{members_listed(precise)} keep their former rows by transactions (the columns of"
                " the period are BIGINT): the server logs the statements that change them, not the"
                " rows",
                "Give them a period of TIMESTAMP(6), or leave them out (block-allow-list)",
            )
        )
    kept = [shard for shard in versioned if shard not in precise]
    if kept:
        results.append(
            _PLACE.warning(
                "system_versioning",
                f"{members_listed(kept)} keep their former rows (WITH SYSTEM VERSIONING): {name}"
                " gets the present ones. What it keeps of former ones, if it keeps any, are those"
                " that it had itself, with its own times",
                "Ask the shards for former rows",
            )
        )
    return results


def by_transactions(table: Table) -> bool:
    """Whether the period of a table that keeps its former rows is one of transactions."""
    period = system_period(table.create_sql)
    column = table.column(period.end) if period else None
    return column is not None and column.base_type != "timestamp"
