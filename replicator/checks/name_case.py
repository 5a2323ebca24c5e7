"""Names that a server does not tell apart by their case (`replicator.mysql.server.identity`)."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.checks.checked_task import SourceToCheck
from replicator.checks.result import CheckedPart, CheckResult
from replicator.mysql.names import TableName
from replicator.schema.registry.registry import TargetNames

_ITEM = "lower_case_table_names"


def check_source_names(source: SourceToCheck, *, folds: bool) -> list[CheckResult]:
    """Whether the task file counts the case of names that the source knows in lower case only."""
    if not (folds and source.routes.case_sensitive):
        return []
    return [
        CheckedPart(source.source_id).warning(
            _ITEM,
            "names of tables have no case at this server (lower_case_table_names), and are taken in"
            " lower case: under case-sensitive, a pattern with a capital letter in routes or the"
            " block-allow-list matches none of them",
            "Leave out `case-sensitive: true` for this source, or write its patterns in lower case",
        )
    ]


def check_target_names(targets: Iterable[TableName], *, folds: bool) -> list[CheckResult]:
    """Whether two targets are one table to their server."""
    names = TargetNames(folds=folds)
    return [
        CheckedPart("target").failed(
            _ITEM,
            f"{name} and {other} are two targets of the task and one to the server"
            " (lower_case_table_names): their schema changes and rows would be counted apart and"
            " get into one table",
            "Spell both alike in target-schema and target-table under 'routes:'; a table or"
            " database without a route goes under its own name, so give it one",
        )
        for name in targets
        if (other := names.clash(name)) is not None
    ]
