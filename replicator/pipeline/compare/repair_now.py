"""Corrects rows of a target while the task may run.

The writer and a repair never write at the same time. Every writer locks the watermarks of its
buckets first, in the same transaction (`replicator.downstream.rows.watermark_table`), and a repair
locks the watermarks of all buckets of the target. So nothing is applied while the repair reads the
rows again, in the shards and on the target, and writes the rows of the shards. Whatever the task
applies afterwards is newer than the rows that the target had.

This is exact: everything on the target is applied up to some position of each source, and a written
row is the row of its shard at that position or later. All later changes of the row are in the
binlog after the position, as whole rows. Two kinds of rows are not changed, because the task may
still apply their changes:

* A missing row is inserted only if the shard has the same row as when it was found to be missing.
  Otherwise another row may just have been inserted, whose INSERT is not applied yet.
* A row that the shard had when it was found to differ, and has deleted since, is not deleted. The
  task will apply its DELETE, which would not find it.

A row that only the target has is deleted only if every shard was read that can own it. To be sure,
the owners that the task has saved are read again after the row.

Rows of a shard that lacks a column are written with the fill of the column, and a column may have
got the name of another one. So the names of the shards' columns are read again after the rows.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial

import pymysql.err
from pymysql.constants import ER
from pymysql.err import MySQLError

from replicator.downstream.rows.literals import NULL_FIELD
from replicator.downstream.rows.load_data import HARMLESS_WARNINGS
from replicator.downstream.rows.transaction import until_done
from replicator.downstream.rows.watermark_table import lock_all_buckets
from replicator.downstream.rows.write_session import (
    LENIENT_MODE,
    MARIADB_SETTINGS,
    STRICT_MODE,
    setting_sql,
)
from replicator.failpoints import Failpoint, reach
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.connection.blocking_connection import Answer
from replicator.mysql.connection.session_settings import set_session
from replicator.mysql.errors import (
    NO_SUCH_TABLE,
    ErrorCode,
    error_code,
    is_contention,
    is_unavailable,
)
from replicator.mysql.names import folded
from replicator.mysql.size_limits import is_too_large
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    Sessions,
    lines_of,
    row_groups,
    rows_with_keys,
)
from replicator.pipeline.compare.doubts import Doubt, RowDifference, RowGroup, differences_of
from replicator.pipeline.compare.lent_values import lend_values
from replicator.pipeline.compare.repair_sql import (
    REPAIR_SETTINGS,
    equal_to,
    repair_statements,
    statements_together,
)
from replicator.pipeline.compare.visible_transactions import shows_binlog
from replicator.pipeline.copy.key_conflicts import KeyPart
from replicator.pipeline.copy.source_stream import SourceStream

PATIENCE = 60.0
"""Maximum seconds to wait for transactions that write to the target."""

MOST_KEYS = 10_000
"""Number of keys in a transaction after which it does not search for more conflicting rows."""

SEARCH_SECONDS = 1.0
"""Maximum seconds that a transaction searches for conflicting rows; the next attempt searches
before its transaction."""

SHOWN_SECONDS = 0.5
"""Maximum seconds that a transaction waits until each source's rows show its binlog."""

COUNTED_AT_ONCE = 50
"""Number of rows without a key that one statement counts."""

LOCK_SECONDS = 10
"""Maximum seconds that a statement waits for the locks of another session."""

_BEGUN, _TOGETHER = b"repair_begun", b"repair_together"
_SETTINGS = {**REPAIR_SETTINGS, "autocommit": "0"}

ATTEMPTS = 5
"""Maximum attempts at a transaction; each leaves out the rows that the server stored with other
values."""


class OwnersChangedError(Exception):
    """The target may have rows of a shard that was not compared, or a shard has other columns."""


@dataclass(frozen=True, slots=True)
class RepairScope:
    """The restrictions of a repair.

    Attributes:
        watermarks: quoted name of the task's watermark table, which need not exist.
        owners: query for the shards that may own rows of the target; empty if nothing is saved.
        known: the rows of the query when the comparison was planned.
        compared: the compared shards, as source, schema and table.
        retired: the shards that do not exist any more, in the same form.
    """

    watermarks: str
    owners: bytes = b""
    known: frozenset[tuple[str, ...]] = frozenset()
    compared: frozenset[tuple[str, ...]] = frozenset()
    retired: frozenset[tuple[str, ...]] = frozenset()


def has_other_owners(scope: RepairScope, rows: Iterable[tuple[str, ...]]) -> bool:
    """Return whether the saved owners include a shard that was not compared, or dropped since."""
    new = (row for row in rows if row not in scope.known and row[:3] not in scope.retired)
    return any(row[:3] not in scope.compared or row[3] != "0" for row in new)


@dataclass(frozen=True, slots=True)
class Repaired:
    """The result of a repair.

    Attributes:
        rows: number of corrected rows.
        otherwise: the keys of the rows that the server stored with other values.
        right: the keys of the rows that were right already.
        others: the keys of rows that were corrected although they were not requested.
        shared: keys that several rows of shards have, with these shards.
    """

    rows: int
    otherwise: frozenset[bytes] = frozenset()
    right: frozenset[bytes] = frozenset()
    others: frozenset[bytes] = frozenset()
    shared: Mapping[bytes, tuple[str, ...]] = field(default_factory=dict)


class WriteRefusedError(MySQLError):
    """The target's server refuses the rows of a repair; the arguments are those of its error."""


class _RepairSession(SourceStream):
    """A connection to the target that writes rows and reads them as row lines.

    A server may roll the whole transaction back although the session seems to be in one
    (`replicator.downstream.rows.write_session.Session`). Without autocommit, no later statement is
    committed alone. By a savepoint, `commit` proves that the transaction is the one that was begun.
    """

    def __init__(self, address: DatabaseAddress) -> None:
        self._max_packet = 1 << 20
        own = {name: setting_sql(value) for name, value in address.session}
        super().__init__(address, settings=set_session(own | _SETTINGS) + MARIADB_SETTINGS)

    def _prepare(self) -> None:
        # REPEATABLE READ also locks the gaps, so a writer that inserts a new bucket must wait, too.
        super()._prepare()
        names = (b"innodb_lock_wait_timeout", b"lock_wait_timeout")
        self.run(b"SET SESSION " + b",".join(b"%s=%d" % (name, LOCK_SECONDS) for name in names))
        ((packet,),) = self.rows(b"SELECT @@max_allowed_packet")
        self._max_packet = int(packet)

    def run(self, sql: bytes) -> Answer:
        if len(sql) >= self._max_packet:
            raise pymysql.err.DataError(
                ER.NET_PACKET_TOO_LARGE,
                f"a statement of {len(sql)} bytes is longer than the target's max_allowed_packet"
                f" ({self._max_packet})",
            )
        return super().run(sql)

    def write(self, sql: bytes) -> None:
        """Run a statement that writes rows. Raises the driver's error.

        Strict mode refuses the value that an ENUM has after an invalid assignment ('', index 0),
        although the shard has it. Such a statement runs again without strict mode. Like all rows,
        its rows are read again before the commit.
        """
        try:
            self.run(sql)
        except MySQLError as error:
            if error_code(error) != ErrorCode.WARN_DATA_TRUNCATED:
                if is_unavailable(error) or is_contention(error) or is_too_large(error):
                    raise
                raise WriteRefusedError(*error.args) from error
            self._set_mode(LENIENT_MODE)
            try:
                self.run(sql)
                codes = {int(code) for _, code, _ in self.rows(b"SHOW WARNINGS")}
            finally:
                self._set_mode(STRICT_MODE)
            if codes - HARMLESS_WARNINGS != {ErrorCode.WARN_DATA_TRUNCATED}:
                raise WriteRefusedError(*error.args) from error

    def _set_mode(self, mode: str) -> None:
        self.run(b"SET SESSION sql_mode='" + mode.encode() + b"'")

    def begin(self) -> None:
        """Begin the transaction. Raises the driver's error."""
        self.run(b"BEGIN")
        self.run(b"SAVEPOINT " + _BEGUN)

    def commit(self) -> None:
        """Commit. Raises the driver's error, also if the server has rolled the transaction back."""
        self.run(b"RELEASE SAVEPOINT " + _BEGUN)
        self.run(b"COMMIT")


@dataclass(slots=True)
class _Wrong:
    """The rows to correct.

    Attributes:
        rows: the rows that are wrong now.
        wanted: by key, the normal lines of the shards.
        right: the keys of the rows that are right.
        shared: as in `Repaired`; ``rows`` has none of these keys.
        borrowers: the keys of rows that only get temporary values (`lend_values`).
    """

    rows: list[RowDifference]
    wanted: dict[bytes, list[bytes]] = field(default_factory=dict)
    right: frozenset[bytes] = frozenset()
    shared: dict[bytes, tuple[str, ...]] = field(default_factory=dict)
    borrowers: frozenset[bytes] = frozenset()


def repair_now(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    servers: CompareServers,
    scope: RepairScope,
) -> Repaired:
    """Correct these rows in one transaction, and read them again before it is committed.

    If the server stores a row with other values than the statement has, the row is not changed.
    Blocks. Raises OwnersChangedError, OutOfPatienceError and the driver's error; nothing is changed
    then.
    """
    otherwise: frozenset[bytes] = frozenset()
    in_the_way: set[bytes] = set()
    for _ in range(ATTEMPTS):
        left = [found for found in differences if found.key not in otherwise]
        done = until_done(
            partial(_repaired, comparison, left, servers, scope, otherwise, in_the_way),
            patience=PATIENCE,
            away=PATIENCE,
        )
        if not done.otherwise:
            return replace(done, otherwise=otherwise)
        otherwise |= done.otherwise
    return Repaired(0, otherwise)


def _repaired(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    servers: CompareServers,
    scope: RepairScope,
    but: Set[bytes],
    in_the_way: set[bytes],
    _: bool,
) -> Repaired:
    """Make one attempt; it is rolled back if the server stores a row with other values.

    ``in_the_way``: keys of conflicting rows that former attempts have found.
    """
    sources = sorted({shard.source for shard in comparison.shards})
    with (
        contextlib.closing(_RepairSession(servers.target)) as session,
        contextlib.closing(Sessions(servers)) as sessions,
    ):
        if in_the_way:
            _by_keys(comparison, differences, sessions, in_the_way, math.inf)
        session.begin()
        try:
            lock_all_buckets(session, scope.watermarks, comparison.target.name, sources)
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
        _await_visible(comparison, sessions)
        if comparison.key:
            wrong = _by_keys(comparison, differences, sessions, in_the_way, SEARCH_SECONDS)
        else:
            wrong = _by_counts(comparison, differences, sessions)
        wrong.rows = [found for found in wrong.rows if found.key not in but]
        if any(found.in_shard is None for found in wrong.rows):
            _refuse_other_owners(scope, sessions)
        if wrong.rows:
            _refuse_other_columns(comparison, wrong.rows, sessions)
        _write(comparison, wrong.rows, session)
        changed = [found for found in wrong.rows if any(repair_statements(comparison, [found]))]
        wrong.rows = changed
        otherwise = (_unlike if comparison.key else _uncounted)(comparison, wrong, session, servers)
        if not otherwise:
            reach(Failpoint.CORRECTION_OPEN)
            session.commit()
        corrected = [found for found in wrong.rows if found.key not in wrong.borrowers]
        others = {found.key for found in corrected} - {found.key for found in differences}
        times = sum(found.times for found in corrected)
        return Repaired(times, otherwise, wrong.right, frozenset(others), wrong.shared)


def _await_visible(comparison: ComparisonPlan, sessions: Sessions) -> None:
    """Wait until queries to the shards see everything that the target has.

    If they do not in time, raises the error of a lock of another transaction, so that the
    transaction is tried again.
    """
    for source in sorted({shard.source for shard in comparison.shards}):
        if not shows_binlog(sessions.to(source), SHOWN_SECONDS):
            why = f"source {source} does not show yet what its binlog has"
            raise MySQLError(ER.LOCK_WAIT_TIMEOUT, why)


def _write(
    comparison: ComparisonPlan, rows: Sequence[RowDifference], session: _RepairSession
) -> None:
    """Write many rows with each statement, or one with each after a duplicate key.

    Raises the driver's error.
    """
    session.run(b"SAVEPOINT " + _TOGETHER)
    try:
        for statement in statements_together(comparison, rows):
            session.write(statement)
    except MySQLError as error:
        if error_code(error) != ER.DUP_ENTRY:
            raise
        session.run(b"ROLLBACK TO SAVEPOINT " + _TOGETHER)
        for statement in repair_statements(comparison, rows):
            session.write(statement)


def _refuse_other_owners(scope: RepairScope, sessions: Sessions) -> None:
    if not scope.owners:
        return
    # The other connection sees everything that is committed by now.
    rows = sessions.to("").rows(scope.owners)
    if has_other_owners(scope, (tuple(map(_text, row)) for row in rows)):
        raise OwnersChangedError


def _refuse_other_columns(
    comparison: ComparisonPlan, rows: Iterable[RowDifference], sessions: Sessions
) -> None:
    """Refuse shards of these rows whose columns have changed since the comparison was planned.

    The plan reads a new column as if the shard lacked it. If a column has received the name of
    another one, the target can have the row that was read only after the same change.
    """
    concerned = {found.shard for found in rows}
    for shard in comparison.shards:
        if shard.lacking or str(shard) in concerned:
            schema, name = (f"_utf8mb4 x'{part.encode().hex()}'" for part in shard.name)
            columns = sessions.to(shard.source).rows(
                "SELECT column_name FROM information_schema.columns"
                f" WHERE table_schema={schema} AND table_name={name}"
                " ORDER BY ordinal_position".encode()
            )
            names = [folded(_text(column)) for (column,) in columns]
            compared = {*shard.lacking, *shard.order}
            if tuple(name for name in names if name in compared) != shard.order:
                raise OwnersChangedError


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _by_keys(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    sessions: Sessions,
    in_the_way: set[bytes],
    seconds: float,
) -> _Wrong:
    """Return the wrong rows with these keys, and the wrong rows that conflict with them.

    ``in_the_way``: the known keys of conflicting rows; new ones are added. If the search takes
    longer than ``seconds``, raises the error of a lock of another transaction, so that the
    transaction is tried again.
    """
    ends = time.monotonic() + seconds
    seen = {difference.key: difference for difference in differences}
    unique = frozenset(place for places in comparison.further for place in places)
    keys = dict.fromkeys([*seen, *in_the_way])
    while True:
        if not keys:
            return _Wrong([])
        groups = row_groups(comparison, Doubt(None, None, len(keys), tuple(keys)), sessions)
        found = [
            difference
            for key, group in groups.items()
            for difference in differences_of(comparison, key, group)
            if not _follows(difference, seen.get(key), unique)
        ]
        shared = {key: group for key, group in groups.items() if len(group.in_shards) > 1}
        wrong = _without_kept(comparison, [one for one in found if one.key not in shared])
        others = _in_the_way(comparison, wrong, sessions) - keys.keys()
        wanted = {key: _wanted(group) for key, group in groups.items()}
        right = frozenset(seen.keys() - groups.keys())
        if not others or len(keys) > MOST_KEYS:
            return _Wrong(wrong, wanted, right, _named(shared, comparison))
        lent = lend_values(comparison, wrong, seen.keys()) if len(keys) > len(seen) else None
        if lent is not None and not _in_the_way(comparison, lent.rows, sessions) - keys.keys():
            wanted |= {key: [comparison.normal(line)] for key, line in lent.borrowers.items()}
            borrowers = frozenset(lent.borrowers)
            return _Wrong(lent.rows, wanted, right, _named(shared, comparison), borrowers)
        keys |= dict.fromkeys(others)
        in_the_way |= others
        if time.monotonic() > ends:
            why = "the rows in the way of others are still searched for"
            raise MySQLError(ER.LOCK_WAIT_TIMEOUT, why)


def _named(
    groups: Mapping[bytes, RowGroup], comparison: ComparisonPlan
) -> dict[bytes, tuple[str, ...]]:
    return {
        key: tuple(str(comparison.shards[number]) for _, _, number in group.in_shards)
        for key, group in groups.items()
    }


def _follows(difference: RowDifference, seen: RowDifference | None, unique: frozenset[int]) -> bool:
    """Return whether the task may still apply a change that the shard has made since ``seen``.

    If the row has another value in ``unique`` columns, it counts only if it is as it was seen:
    until a later change is applied, another row may have the value.
    """
    in_shard = seen.in_shard if seen is not None else None
    if difference.kind == "missing":
        return difference.in_shard != in_shard
    if difference.kind == "extra":
        return in_shard is not None
    if seen is None or not (changed := unique.intersection(difference.columns)):
        return False
    return difference.in_shard != in_shard or not changed.issubset(seen.columns)


def _wanted(group: RowGroup) -> list[bytes]:
    return sorted(normal for normal, _, _ in group.in_shards)


def _without_kept(
    comparison: ComparisonPlan, found: Sequence[RowDifference]
) -> list[RowDifference]:
    """Return the rows that may be changed.

    Leaves out extra rows that must stay, and rows that need a unique value of such a row.
    """
    if not (comparison.alone.kept or "extra" in comparison.alone.untouched):
        return list(found)
    stays = [d.on_target.split(b"\t") for d in found if d.kind == "extra" and d.on_target]
    taken = [
        (places, {tuple(line[place] for place in places) for line in stays})
        for places in comparison.further
    ]

    def fits(difference: RowDifference) -> bool:
        line = (difference.in_shard or b"").split(b"\t")
        return not any(tuple(line[at] for at in places) in values for places, values in taken)

    return [d for d in found if d.kind != "extra" and fits(d)]


def _in_the_way(
    comparison: ComparisonPlan, wrong: Sequence[RowDifference], sessions: Sessions
) -> set[bytes]:
    """Return the keys of the target's rows that have unique values which these rows need."""
    lines = [found.in_shard.split(b"\t") for found in wrong if found.in_shard is not None]
    found: set[bytes] = set()
    for places in comparison.further:
        parts = tuple(KeyPart(comparison.columns[place]) for place in places)
        needed = ([line[place] for place in places] for line in lines)
        keys = [b"\t".join(fields) for fields in needed if NULL_FIELD not in fields]
        table = replace(comparison.target, key=parts)
        rows = rows_with_keys(comparison, table, keys if parts else (), sessions)
        found.update(comparison.key_of(normal) for normal, _ in rows)
    return found


def _unlike(
    comparison: ComparisonPlan, wrong: _Wrong, session: _RepairSession, servers: CompareServers
) -> frozenset[bytes]:
    """Return the keys whose rows are still not equal after the statements."""
    keys = tuple(dict.fromkeys(found.key for found in wrong.rows))
    own = Sessions(servers, {"": session})
    there: dict[bytes, list[bytes]] = {key: [] for key in keys}
    for normal, _ in rows_with_keys(comparison, comparison.target, keys, own):
        there.get(comparison.key_of(normal), []).append(normal)
    return frozenset(key for key in keys if sorted(there[key]) != wrong.wanted.get(key, []))


def _by_counts(
    comparison: ComparisonPlan, differences: Sequence[RowDifference], sessions: Sessions
) -> _Wrong:
    """Return the rows that the target has as often as before; each query reads the whole table."""
    # Use a separate connection, since a transaction of TiDB sees the rows of its start.
    counts = _counts(comparison, differences, sessions)
    pairs = zip(differences, counts, strict=True)
    found = [difference for difference, count in pairs if count == difference.seen]
    return _Wrong(_without_kept(comparison, found))


def _uncounted(
    comparison: ComparisonPlan, wrong: _Wrong, session: _RepairSession, servers: CompareServers
) -> frozenset[bytes]:
    """Return the keys of the rows that the target does not have as often as it should."""
    counts = _counts(comparison, wrong.rows, Sessions(servers, {"": session}))
    unlike = set()
    for found, count in zip(wrong.rows, counts, strict=True):
        expected = found.seen + (found.times if found.on_target is None else -found.times)
        if count != expected:
            unlike.add(found.key)
    return frozenset(unlike)


def _counts(
    comparison: ComparisonPlan, differences: Sequence[RowDifference], sessions: Sessions
) -> list[int]:
    """Count the rows of the target that are equal to each of these."""
    of_some = _normal_counts if comparison.forms else _exact_counts
    counted: list[int] = []
    for start in range(0, len(differences), COUNTED_AT_ONCE):
        some = differences[start : start + COUNTED_AT_ONCE]
        lines = [found.on_target or found.in_shard or b"" for found in some]
        counted += of_some(comparison, lines, sessions)
    return counted


def _exact_counts(
    comparison: ComparisonPlan, lines: Sequence[bytes], sessions: Sessions
) -> Iterable[int]:
    """Let the server count the rows: it writes equal values in one way."""
    conditions = [equal_to(comparison, line) for line in lines]
    sums = b",".join(b"COALESCE(SUM(%s),0)" % condition for condition in conditions)
    query = b"SELECT %s FROM %s" % (sums, comparison.target.name.quoted.encode())
    ((*counts,),) = sessions.to("").rows(query)
    return map(int, counts)


def _normal_counts(
    comparison: ComparisonPlan, lines: Sequence[bytes], sessions: Sessions
) -> Iterable[int]:
    """Count the rows here: the server may write equal values of these columns in several ways."""
    forms = frozenset(place for place, _ in comparison.forms)
    conditions = dict.fromkeys(equal_to(comparison, line, but=forms) for line in lines)
    query = b"SELECT %s FROM %s WHERE %s" % (
        b",".join(comparison.target.selected),
        comparison.target.name.quoted.encode(),
        b" OR ".join(b"(%s)" % condition for condition in conditions),
    )
    there: Counter[bytes] = Counter()
    for some, _ in lines_of(comparison.target, query, sessions):
        there.update(map(comparison.normal, some))
    return [there[comparison.normal(line)] for line in lines]
