"""The result of a comparison, with the differing rows as Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow

from actors.comparing.target_run import ComparisonView
from replicator.downstream.rows.literals import NULL_FIELD, field_value
from replicator.downstream.rows.target_columns import TargetColumn
from replicator.mysql.column_types import Literal
from replicator.mysql.names import TableName
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.doubts import RowDifference
from replicator.pipeline.compare.findings import TargetComparison

BYTES = (Literal.BINARY, Literal.BIT, Literal.GEOMETRY, Literal.VECTOR)
"""The types whose values are bytes; the values of all other types are text."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing the targets of a task with their shards.

    Attributes:
        task: the name of the task.
        targets: the findings about each target.
        rows: the differing rows of each target by its name, in the form that `differing_rows`
            returns.
    """

    task: str
    targets: tuple[TargetComparison, ...]
    rows: Mapping[str, pyarrow.Table]

    @property
    def equal(self) -> bool:
        """Whether every target holds exactly the rows of its shards, and no row is held back."""
        return all_equal(self.targets)

    def differing_rows(self, target: str) -> pyarrow.Table:
        """Return the differing rows of a target; ``to_pandas()`` of the result makes a data frame.

        The columns are ``kind`` (``missing`` on the target, ``extra`` on the target, or
        ``different``), ``shard`` (empty if only the target has the row) and ``times`` (more than 1
        for equal rows of tables without a key). Each column of the target has two further columns:
        ``in_shard.NAME`` and ``on_target.NAME``. Their values are text as the server shows it, or
        bytes for binary types; null means NULL or a missing row.

        Raises KeyError if the target was not compared.
        """
        return self.rows[target]


def all_equal(results: Sequence[TargetComparison]) -> bool:
    """Return whether all rows were compared, and none differs or is held back."""
    return not any(r.unequal or r.incomplete or r.held for r in results)


def findings_as_json(task: str, results: Sequence[TargetComparison]) -> dict[str, Any]:
    """Return the findings as `replicator compare --json` prints them."""
    targets = [
        {
            "target": str(result.target),
            "rows": result.rows,
            "shards": result.by_shard,
            "ranges": len(result.ranges),
            "missing": result.missing,
            "extra": result.extra,
            "different": result.different,
            "held": result.held,
            "held_events": result.held_events,
            "unsettled": result.unsettled,
            "retired": result.retired,
            "unowned": result.unowned,
            "remarks": [text for text in (*result.remarks, result.unsettled_remark) if text],
            "repaired": result.repaired,
            "blocked": result.blocked,
            "seconds": round(result.seconds, 3),
            "left_out": [{"column": out.column, "why": out.why} for out in result.left_out],
            "failure": result.failure,
            "structure": result.structure,
            "notes": result.notes,
            "examples": [asdict(example) for example in result.examples],
        }
        for result in results
    ]
    return {"task": task, "equal": all_equal(results), "targets": targets}


class DifferenceCollector(ComparisonView):
    """Keeps the differing rows that a comparison finds, at most ``most_rows`` for each target."""

    def __init__(self, most_rows: int) -> None:
        self._most = most_rows
        self._columns: dict[TableName, Sequence[TargetColumn]] = {}
        self._rows: dict[TableName, list[RowDifference]] = {}

    def begun(self, target: TableName, rows_expected: int) -> None:
        """Forget the rows of a comparison that starts again because its schema has changed."""
        self._columns[target] = ()
        self._rows[target] = []

    def differ(self, comparison: ComparisonPlan, rows: Sequence[RowDifference]) -> None:
        """Add rows that certainly differ."""
        kept = self._rows[comparison.target.name]
        self._columns[comparison.target.name] = comparison.columns
        kept += rows[: self._most - len(kept)]

    def tables(self) -> dict[str, pyarrow.Table]:
        """Return the rows of each target."""
        return {
            str(target): differences_table(self._columns[target], rows)
            for target, rows in self._rows.items()
        }


def differences_table(
    columns: Sequence[TargetColumn], rows: Sequence[RowDifference]
) -> pyarrow.Table:
    """Return differing rows as a table with the columns of `Comparison.differing_rows`."""
    found = {
        "kind": pyarrow.array([row.kind for row in rows], pyarrow.string()),
        "shard": pyarrow.array([row.shard for row in rows], pyarrow.string()),
        "times": pyarrow.array([row.times for row in rows], pyarrow.int64()),
    }
    absent = b"\t".join([NULL_FIELD] * len(columns))
    in_shard = [(row.in_shard or absent).split(b"\t") for row in rows]
    on_target = [(row.on_target or absent).split(b"\t") for row in rows]
    for at, column in enumerate(columns):
        found[f"in_shard.{column.name}"] = _values(column, [fields[at] for fields in in_shard])
        found[f"on_target.{column.name}"] = _values(column, [fields[at] for fields in on_target])
    return pyarrow.table(found)


def _values(column: TargetColumn, fields: Sequence[bytes]) -> pyarrow.Array:
    values = [field_value(field) for field in fields]
    if column.literal in BYTES:
        return pyarrow.array(values, pyarrow.binary())
    texts = [None if v is None else v.decode("utf-8", "backslashreplace") for v in values]
    return pyarrow.array(texts, pyarrow.string())
