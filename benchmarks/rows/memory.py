"""How memory grows with a transaction, and with a backlog: it should not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from benchmarks.catching_up import catch_up
from benchmarks.estate import Backlog, Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.sizes import Sizes
from benchmarks.workloads.orders import orders, write_orders, write_orders_at_once

GOAL, FLOOR = 1.1, 1.3
"""Memory is flat where peaks differ no more than from run to run."""

Points = Callable[[Sizes], tuple[int, ...]]
Write = Callable[[Estate, int], Backlog]


@contextmanager
def _prepare(name: str, points: Points, write: Write, context: Context) -> Iterator[Measure]:
    counts = points(context.sizes)
    with source_server() as source, target_server() as target:
        estate = Estate((orders(shards=4),), (source,))

        def measure() -> Measured:
            done = {}
            for count in counts:
                backlog = write(estate, count)
                estate.create_targets(target)
                done[count] = catch_up(backlog, target, context)
            first, last = done[counts[0]], done[counts[-1]]
            return Measured(
                {
                    name: last.memory / first.memory,
                    f"{name}-driver": last.memory_driver / first.memory_driver,
                },
                {"points": {str(count): point.raw() for count, point in done.items()}},
            )

        yield measure


def _row(name: str, what: str, against: str, points: Points, write: Write) -> Row:
    lines = tuple(
        Line(key, f"{what}: peak memory {of}", against, GOAL, FLOOR, lower_is_better=True)
        for key, of in ((name, "in all"), (f"{name}-driver", "of the driver"))
    )
    return Row(name, lines, partial(_prepare, name, points, write))


TRANSACTION = _row(
    "large-transaction",
    "a transaction of ten million rows",
    "one of a quarter",
    # With less, what may wait in the driver is not yet full: two batches.
    lambda sizes: tuple(sizes.transaction_rows // part for part in (4, 2, 1)),
    write_orders_at_once,
)
BACKLOG = _row(
    "long-backlog",
    "a long backlog",
    "one of an eighth",
    lambda sizes: tuple(sizes.backlog_rows // part for part in (8, 4, 2, 1)),
    write_orders,
)
