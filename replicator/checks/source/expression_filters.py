"""Whether each expression filter can be evaluated on the table that it names."""

from __future__ import annotations

from collections.abc import Sequence

import pymysql.err

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.names import TableName
from replicator.pipeline.plans.row_filter import rules_for
from replicator.routing.expression.types import ExpressionError
from replicator.schema.structure.inspection import read_table

_NAME = "expression_filters"
_WAY_OUT = "Correct the expression in the task file, under 'expression-filter:'"


async def check_expression_filters(
    source: SourceToCheck, connection: Connection, replicated: Sequence[TableName]
) -> list[CheckResult]:
    """Check each rule against the structure that its table has now.

    Where the task starts at an earlier place the table may have been another one, so a rule that
    does not fit is only told of. Tables that cannot be read are left to `dump_privilege`.
    """
    filters = source.expression_filters
    if not filters:
        return []
    place = CheckedPart(source.source_id)
    results: list[CheckResult] = []
    concerned = [name for name in replicated if filters.concern(name.schema, name.table)]
    for name in concerned:
        try:
            table = await read_table(connection, name)
            if table is not None:
                rules_for(filters, name, table)
        except pymysql.err.MySQLError:
            continue
        except ExpressionError as error:
            finding = f"{name}: {error}"
            if source.start is None:
                results.append(place.failed(_NAME, finding, _WAY_OUT))
                continue
            results.append(
                place.warning("expression_filters", f"{finding} (as the table is now)", _WAY_OUT)
            )
    unused = filters.without_table((name.schema, name.table) for name in concerned)
    results += [
        place.warning(
            "expression_filters",
            f"the expression filter `{rule.name}` is for {rule.schema}.{rule.table}, and no table"
            " of that name is replicated",
            "Write schema and table as they are at the source; patterns are not taken here",
        )
        for rule in unused
    ]
    if not results:
        results.append(place.passed(_NAME, f"tables with expression filters: {len(concerned)}"))
    return results
