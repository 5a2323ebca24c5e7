"""Many updates of few keys, beside a replay: what the net effect of a batch saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.baselines import replay
from benchmarks.catching_up import catch_up
from benchmarks.estate import Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.workloads.hot_keys import counters, fill_counters, release_slots, write_updates

LINES = (
    Line(
        "hot-keys-replay",
        "1 million updates of 10,000 keys, each a transaction",
        "`mariadb-binlog \\| mariadb`",
        30.0,
        15.0,
    ),
)


@contextmanager
def _prepare(context: Context) -> Iterator[Measure]:
    keys = context.sizes.updated_keys
    with source_server() as source, target_server() as target:
        estate = Estate((counters(shards=2),), (source,))
        backlog = write_updates(estate, keys, context.sizes.updates)
        release_slots(target)

        def measure() -> Measured:
            for shard in estate.create_shards_at(target).shards():
                fill_counters(target, shard.name, shard.number, keys // 2)
            replayed = replay(backlog, target)
            estate.create_targets(target)
            for shard in estate.shards():
                fill_counters(target, shard.table.merged, shard.number, keys // 2)
            done = catch_up(backlog, target, context)
            return Measured(
                {"hot-keys-replay": replayed.seconds / done.seconds},
                {"task": done.raw(), "replay": replayed.raw()},
            )

        yield measure


ROW = Row("hot-keys", LINES, _prepare)
