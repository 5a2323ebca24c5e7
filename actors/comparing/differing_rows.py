"""Counts, shows and corrects rows that differ for certain."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

import anyio.to_thread
from attrs import define, field
from pymysql.err import MySQLError

from replicator.downstream.rows.transaction import OutOfPatienceError
from replicator.failpoints import Failpoint, reach
from replicator.mysql.errors import error_code, error_text
from replicator.mysql.row_values import HIDDEN, without_values
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import CompareServers
from replicator.pipeline.compare.doubts import RowDifference, example_of
from replicator.pipeline.compare.findings import TargetComparison
from replicator.pipeline.compare.repair_now import RepairScope, repair_now
from replicator.pipeline.compare.repair_sql import (
    HEAD,
    TRANSACTION_ROWS,
    in_order,
    repair_statements,
)

EXAMPLES = 20
"""Number of rows of each kind that are shown for a target."""

EXAMPLES_OTHERWISE = 5
"""Number of keys that a remark names."""

UNPAIRED = (
    "missing rows are not inserted: no key tells which rows of the target they belong to, and rows"
    " that only the target has may be those of other shards, so none of them is deleted"
)
"""The remark about rows that are not corrected."""

_Row = TypeVar("_Row")

_END = b";\n"


class RepairFile:
    """The SQL file that makes the targets equal, written as rows are found."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def begin(self, size: int = 0) -> None:
        """Continue after the first ``size`` bytes of an interrupted comparison.

        0 means a new file.
        """
        self._file.seek(size)
        self._file.truncate()
        if not size:
            self._file.write(HEAD)

    @property
    def size(self) -> int:
        """Number of bytes written so far; all of them are in the file."""
        self._file.flush()
        return self._file.tell()

    def write(self, comparison: ComparisonPlan, differences: list[RowDifference]) -> None:
        """Add the statements for these rows."""
        self._file.writelines(s + _END for s in repair_statements(comparison, differences))

    def finish(self, path: Path) -> None:
        """Sort the statements of the file, and divide them into transactions. Raises OSError.

        If two rows have exchanged their values of a unique key, one of them must be removed before
        the other is written, even if it was found much later.
        """
        self._file.flush()
        path = path.resolve()
        ordered = path.with_name(path.name + ".ordered")
        with open(os.open(ordered, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(HEAD)
            for some in _in_transactions(in_order(self._statements)):
                file.writelines([b"BEGIN;\n", *some, b"COMMIT;\n"])
        ordered.replace(path)

    def _statements(self) -> Iterator[bytes]:
        self._file.seek(len(HEAD))
        return iter(self._file)


@define(eq=False)
class DifferingRows:
    """Processes the differing rows of one target."""

    _comparison: ComparisonPlan
    _result: TargetComparison
    _file: RepairFile | None
    _servers: CompareServers
    _scope: RepairScope | None
    """The restrictions of a repair; None if rows are not corrected at once."""
    _confirm: Callable[[], Awaitable[None]]
    """Raises OwnersChangedError if the target may have rows of a shard that was not compared."""
    _tell: Callable[[ComparisonPlan, list[RowDifference]], None]
    """Called with all rows that differ for certain."""
    _splits: bool
    """Whether a changed row is found as two rows: a missing one, and one that only the target
    has."""
    show_values: bool = field(default=False, init=False)
    """Whether examples and remarks may have values of rows."""
    _others: set[bytes] = field(factory=set, init=False)
    """The keys of rows that were corrected because they prevented the correction of others."""

    @property
    def corrects(self) -> bool:
        """Whether differing rows are corrected at once."""
        return self._scope is not None

    async def take(self, differences: Iterable[RowDifference]) -> int:
        """Count rows, keep some as examples, and correct them; return how many differ.

        A row that is right by the time of its correction does not count. A row that only the target
        has does not count if it may belong to a shard that was not read. Raises OwnersChangedError.
        """
        differing = 0
        for some in _in_transactions(differences):
            alone = [found for found in some if found.kind == "extra"]
            if alone:
                await self._confirm()
            kept = self._comparison.alone.kept
            if kept:
                times = sum(found.times for found in alone)
                self._add(kept, times)
                if kept == "unowned":
                    self._show(alone, kept)
                some = [found for found in some if found.kind != "extra"]
            self._tell(self._comparison, some)
            for difference in some:
                differing += difference.times
                self._count(difference)
            some = self._touched(some)
            if self._file is not None:
                self._file.write(self._comparison, some)
            if self._scope is not None and some and not self._result.failure:
                differing -= await self._repair(some, self._scope)
        return differing

    def _touched(self, some: list[RowDifference]) -> list[RowDifference]:
        """Return the rows that a repair may change."""
        alone = self._comparison.alone
        touched = [found for found in some if found.kind not in alone.untouched]
        self._result.untouched += sum(d.times for d in some) - sum(d.times for d in touched)
        if not self._splits or not (alone.kept or "extra" in alone.untouched):
            return touched
        # A changed row appears as an extra row and a missing row. If only the missing row were
        # inserted, the target would have the row twice.
        if UNPAIRED not in self._result.remarks:
            self._result.remarks.append(UNPAIRED)
        return [found for found in touched if found.kind == "different"]

    async def _repair(self, some: list[RowDifference], scope: RepairScope) -> int:
        """Correct rows; return how many were right by then, so that they no longer count."""
        job = partial(repair_now, self._comparison, some, self._servers, scope)
        try:
            done = await anyio.to_thread.run_sync(job)
        except (MySQLError, OutOfPatienceError) as error:
            cause = error.error if isinstance(error, OutOfPatienceError) else error
            text = self._text(cause) if isinstance(cause, MySQLError) else str(cause)
            self._result.failure = f"a repair failed, and changed nothing: {text}"
            self._result.refused = True
            return 0
        self._result.repaired += done.rows
        for key, shards in done.shared.items():
            self._result.duplicate_keys += 1
            if self._result.duplicate_keys <= EXAMPLES:
                shown = self._key(key)
                self._result.remarks.append(
                    f"The target can have one row with the key {shown}, but there are several:"
                    f" {', '.join(shards)}"
                )
        self._others |= done.others
        right = [found for found in some if found.key in done.right - self._others]
        for found in right:
            self._add(found.kind, -found.times)
        reach(Failpoint.ROWS_CORRECTED)
        if done.otherwise:
            keys = sorted(done.otherwise)
            shown = "; ".join(map(self._key, keys[:EXAMPLES_OTHERWISE]))
            self._result.remarks.append(
                f"{len(keys)} rows were left as they are: the target's server stores other values"
                " than the repair writes (look for triggers)"
                + (f". Their keys: {shown}" if self.show_values else "")
            )
        return sum(found.times for found in right)

    def _count(self, difference: RowDifference) -> None:
        self._add(difference.kind, difference.times)
        self._show([difference], difference.kind)

    def _add(self, kind: str, times: int) -> None:
        setattr(self._result, kind, getattr(self._result, kind) + times)

    def _show(self, some: Iterable[RowDifference], kind: str) -> None:
        examples = self._result.examples
        shown = sum(example.kind == kind for example in examples)
        for difference in islice(some, EXAMPLES - shown):
            example = replace(example_of(self._comparison, difference), kind=kind)
            examples.append(example if self.show_values else example.without_values())

    def _key(self, line: bytes) -> str:
        if not self.show_values:
            return HIDDEN
        return line.decode("utf-8", "backslashreplace").replace("\t", ", ")

    def _text(self, error: MySQLError) -> str:
        text = error_text(error)
        return text if self.show_values else without_values(text, error_code(error))


def _in_transactions(rows: Iterable[_Row]) -> Iterator[list[_Row]]:
    some: list[_Row] = []
    for row in rows:
        some.append(row)
        if len(some) == TRANSACTION_ROWS:
            yield some
            some = []
    if some:
        yield some
