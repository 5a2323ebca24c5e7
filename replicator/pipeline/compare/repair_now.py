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

from pymysql.err import MySQLError

from replicator.downstream.rows.transaction import until_done
from replicator.downstream.rows.watermark_table import lock_all_buckets
from replicator.downstream.rows.write_session import Session
from replicator.mysql.errors import NO_SUCH_TABLE, error_code
from replicator.pipeline.compare.compare_plan import ComparisonPlan
from replicator.pipeline.compare.compare_rows import CompareServers, Sessions, row_groups
from replicator.pipeline.compare.doubts import Doubt, RowDifference, differences_of
from replicator.pipeline.compare.repair_sql import repair_statements

PATIENCE = 60.0
"""Seconds to wait for transactions that write to the target."""


def repair_now(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    servers: CompareServers,
    watermarks: str,
) -> int:
    """Make these rows right, in one transaction; how many were still wrong.

    The target must have a key. ``watermarks`` is the quoted name of the task's table of them, which
    need not be there. Blocks. Raises OutOfPatienceError and the driver's error; nothing is changed
    then.
    """
    assert comparison.key, "rows without a key can't be looked up"
    return until_done(
        lambda _: _repaired(comparison, differences, servers, watermarks), patience=PATIENCE
    )


def _repaired(
    comparison: ComparisonPlan,
    differences: Sequence[RowDifference],
    servers: CompareServers,
    watermarks: str,
) -> int:
    sources = sorted({shard.source for shard in comparison.shards})
    keys = tuple(dict.fromkeys(difference.key for difference in differences))
    seen = {difference.key: difference.in_shard for difference in differences}
    with (
        contextlib.closing(Session(servers.target)) as session,
        contextlib.closing(Sessions(servers)) as sessions,
    ):
        # With its gaps: a bucket that is made meanwhile has to wait, too.
        session.run(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        session.run(b"BEGIN")
        try:
            lock_all_buckets(session, watermarks, comparison.target.name, sources)
        except MySQLError as error:
            if error_code(error) not in NO_SUCH_TABLE:
                raise
        groups = row_groups(comparison, Doubt(None, None, len(keys), keys), sessions)
        wrong = [
            difference
            for key, group in groups.items()
            for difference in differences_of(comparison, key, group)
            if difference.kind != "missing" or difference.in_shard == seen[key]
        ]
        for statement in repair_statements(comparison, wrong):
            session.run(statement)
        session.run(b"COMMIT")
        return sum(difference.times for difference in wrong)
