"""Making rows of a target right while the task may run: writer and repair never meet.

Whoever writes rows of a target first locks the watermarks of their buckets, in the same transaction
(`replicator.downstream.rows.watermark_table`). A repair locks those of all its buckets. So while it
reads the rows once more, in the shards and on the target, and writes what the shards have, nothing
is applied; and what the task applies afterwards begins behind what was there.

Why that is exact: all that the target has is applied up to some place of each source, and a row
that is written is what its shard has at that place or later. What follows in the binlog says the
row once more, whole. A row that the target lacks is written only if the shard has what it had when
it was found to be missing; else it may be one that was just inserted, and whose INSERT is to come.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

from pymysql.err import MySQLError

from replicator.downstream.rows.literals import NULL_FIELD
from replicator.downstream.rows.transaction import until_done
from replicator.downstream.rows.watermark_table import lock_all_buckets
from replicator.downstream.rows.write_session import Session
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import (
    CompareServers,
    Sessions,
    row_groups,
    rows_with_keys,
)
from replicator.pipeline.compare.doubts import Doubt, RowDifference, differences_of
from replicator.pipeline.compare.repair_sql import equal_to, repair_statements
from replicator.pipeline.copy.key_conflicts import KeyPart

PATIENCE = 60.0
"""Seconds to wait for transactions that write to the target."""

MOST_KEYS = 10_000
"""Keys of a transaction after which no more are looked for that are in the way."""

COUNTED_AT_ONCE = 50
"""Rows without a key that are counted by one statement."""


def repair_now(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    servers: CompareServers,
    watermarks: str,
) -> int:
    """Make these rows right, in one transaction; how many were still wrong.

    ``watermarks`` is the quoted name of the task's table of them, which need not be there. Blocks.
    Raises OutOfPatienceError and the driver's error; nothing is changed then.
    """
    return until_done(
        lambda _: _repaired(comparison, differences, servers, watermarks),
        patience=PATIENCE,
        away=PATIENCE,
    )


def _repaired(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    servers: CompareServers,
    watermarks: str,
) -> int:
    sources = sorted({shard.source for shard in comparison.shards})
    with (
        contextlib.closing(Session(servers.target)) as session,
        contextlib.closing(Sessions(servers)) as sessions,
    ):
        _begin(session)
        try:
            lock_all_buckets(session, watermarks, comparison.target.name, sources)
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
            _begin(session)
        still_wrong = _by_keys if comparison.key else _by_counts
        wrong = still_wrong(comparison, differences, sessions)
        for statement in repair_statements(comparison, wrong):
            session.run(statement)
        session.run(b"COMMIT")
        return sum(difference.times for difference in wrong)


def _begin(session: Session) -> None:
    # With its gaps: a bucket that is made meanwhile has to wait, too.
    session.run(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    session.run(b"BEGIN")


def _by_keys(
    comparison: ComparisonPlan, differences: Sequence[RowDifference], sessions: Sessions
) -> list[RowDifference]:
    """The rows with the keys of these that are wrong now, and those that are in their way."""
    seen = {difference.key: difference.in_shard for difference in differences}
    keys = dict.fromkeys(difference.key for difference in differences)
    while True:
        groups = row_groups(comparison, Doubt(None, None, len(keys), tuple(keys)), sessions)
        wrong = [
            difference
            for key, group in groups.items()
            for difference in differences_of(comparison, key, group)
            if difference.kind != "missing" or difference.in_shard == seen.get(key)
        ]
        others = _in_the_way(comparison, wrong, sessions) - keys.keys()
        if not others or len(keys) > MOST_KEYS:
            return wrong
        keys |= dict.fromkeys(others)


def _in_the_way(
    comparison: ComparisonPlan, wrong: Sequence[RowDifference], sessions: Sessions
) -> set[bytes]:
    """The keys of the target's rows that have what these need in the further unique keys."""
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


def _by_counts(
    comparison: ComparisonPlan, differences: Sequence[RowDifference], sessions: Sessions
) -> list[RowDifference]:
    """Those of which the target still has as many as were seen; each look reads it once."""
    found = []
    for start in range(0, len(differences), COUNTED_AT_ONCE):
        some = differences[start : start + COUNTED_AT_ONCE]
        conditions = [equal_to(comparison, d.on_target or d.in_shard or b"") for d in some]
        sums = b",".join(b"COALESCE(SUM(%s),0)" % condition for condition in conditions)
        # Over a connection of its own, since TiDB shows a transaction what was there at its start.
        query = b"SELECT %s FROM %s" % (sums, comparison.target.name.quoted.encode())
        ((*counts,),) = sessions.to("").rows(query)
        found += [d for d, count in zip(some, counts, strict=True) if int(count) == d.seen]
    return found
