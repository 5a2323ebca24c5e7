"""The same rows over more targets, sources or members: how the rate changes with their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks.catching_up import catch_up
from benchmarks.estate import Backlog, Estate
from benchmarks.row import Context, Line, Measure, Measured, Row
from benchmarks.servers import source_server, target_server
from benchmarks.sizes import Sizes
from benchmarks.workloads.accounts import accounts, fill_target, write_accounts
from benchmarks.workloads.orders import orders, write_orders
from replicator.sandbox.server import DatabaseServer

GOAL, FLOOR = 0.9, 0.7
SHARDS = 4
"""Of an entity, over all sources, where their number is not what grows."""

Servers = tuple[DatabaseServer, ...]


@dataclass(frozen=True, slots=True)
class Growth:
    """What grows, over which ``points``; how much of it a backlog has that ``write`` makes.

    ``servers``: how many sources a point needs. ``fill``: puts the rows into the target that the
    backlog begins with.
    """

    points: Callable[[Sizes], Sequence[int]]
    write: Callable[[Sizes, int, Servers], Backlog]
    fill: Callable[[Sizes, Estate, DatabaseServer], None]
    servers: Callable[[int], int]


@contextmanager
def _prepare(name: str, growth: Growth, context: Context) -> Iterator[Measure]:
    """The backlogs of all points live side by side, each with sources of its own."""
    sizes = context.sizes
    counts = growth.points(sizes)
    with ExitStack() as resources:
        target = resources.enter_context(target_server())
        backlogs = {}
        for count in counts:
            made = (source_server() for _ in range(growth.servers(count)))
            servers = tuple(resources.enter_context(server) for server in made)
            backlogs[count] = growth.write(sizes, count, servers)

        def measure() -> Measured:
            done = {}
            for count, backlog in backlogs.items():
                backlog.estate.create_targets(target)
                growth.fill(sizes, backlog.estate, target)
                done[count] = catch_up(backlog, target, context)
            return Measured(
                {name: done[counts[-1]].rate / done[counts[0]].rate},
                {"points": {str(count): point.raw() for count, point in done.items()}},
            )

        yield measure


def _one(_: int) -> int:
    return 1


def _as_many(count: int) -> int:
    return count


def _nothing(_sizes: Sizes, _estate: Estate, _target: DatabaseServer) -> None:
    return None


def _fill_accounts(sizes: Sizes, estate: Estate, target: DatabaseServer) -> None:
    fill_target(estate, target, sizes.account_rows)


def _more_targets(sizes: Sizes, targets: int, servers: Servers) -> Backlog:
    tables = tuple(orders(SHARDS, f"orders{n}") for n in range(targets))
    return write_orders(Estate(tables, servers), sizes.growth_rows)


def _more_sources(sizes: Sizes, sources: int, servers: Servers) -> Backlog:
    return write_orders(Estate((orders(SHARDS // sources),), servers), sizes.growth_rows)


def _more_sources_of_changes(sizes: Sizes, sources: int, servers: Servers) -> Backlog:
    estate = Estate((accounts(SHARDS // sources),), servers)
    return write_accounts(estate, sizes.account_rows, sizes.growth_transactions)


def _more_members(sizes: Sizes, members: int, servers: Servers) -> Backlog:
    return write_orders(Estate((orders(members),), servers), sizes.growth_rows)


def _row(name: str, workload: str, against: str, growth: Growth) -> Row:
    line = Line(name, workload, f"{against}, as many changes", GOAL, FLOOR)
    return Row(name, (line,), partial(_prepare, name, growth))


TARGETS = _row(
    "targets",
    "100-row inserts, 200 targets in one task",
    "1 target",
    Growth(lambda sizes: sizes.targets, _more_targets, _nothing, _one),
)
SOURCES = _row(
    "sources",
    "100-row inserts, 4 sources",
    "1 source",
    Growth(lambda sizes: sizes.sources, _more_sources, _nothing, _as_many),
)
SOURCES_OF_CHANGES = _row(
    "sources-small",
    "small transactions, 4 sources",
    "1 source",
    Growth(lambda sizes: sizes.sources, _more_sources_of_changes, _fill_accounts, _as_many),
)
MEMBERS = _row(
    "members",
    "100-row inserts, 5,000 members of a target",
    "50 members",
    Growth(lambda sizes: sizes.members, _more_members, _nothing, _one),
)
