"""Run the simulation at will, from the project's folder.

``python -m tests.simulation --seeds 100000``: so many seeds, from ``--first`` on; the first
failure is printed with its seed and its shortest replay. With ``--optimistic`` those of the join
rule.

``python -m tests.simulation --exhaustive``: every run of a small scope, with ``--crashes`` at any
step. ``--scope RDRD+RDRD,RDRD+RDRD`` are two sources of two members each, which write a row (R),
get a DDL (D), write a row, get a DDL. With ``--optimistic`` all the small scopes of the join rule,
or the one that ``--scripts AR,DR`` names (`tests.simulation.optimistic_small`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable

from tests.simulation.decoupled import Search
from tests.simulation.estate import Estate, make_estate
from tests.simulation.optimistic_runs import run_optimistic
from tests.simulation.optimistic_small import search, small_scopes
from tests.simulation.runs import run, shorten
from tests.simulation.small import NAMES, Catalogue, Scope


def _seeds(first: int, count: int, make: Callable[[int], Estate]) -> int:
    started = time.monotonic()
    for seed in range(first, first + count):
        failure = run(seed, make)
        if failure is not None:
            sys.stdout.write(f"{shorten(failure) if make is make_estate else failure}\n")
            return 1
    sys.stdout.write(f"{count} seeds hold, in {time.monotonic() - started:.0f} s\n")
    return 0


def _optimistic(first: int, count: int) -> int:
    started = time.monotonic()
    for seed in range(first, first + count):
        failure = run_optimistic(seed)
        if failure is not None:
            sys.stdout.write(f"{failure}\n")
            return 1
    sys.stdout.write(f"{count} optimistic seeds hold, in {time.monotonic() - started:.0f} s\n")
    return 0


def _exhaustive(scope: Scope, crashes: int) -> int:
    started = time.monotonic()
    catalogue = Catalogue()
    found = Search(scope, crashes, catalogue).run()
    if found.failure:
        path = "\n".join(" ".join(step) for step in found.path)
        sys.stdout.write(f"{found.failure}, where a source did\n{path}\n")
        return 1
    every = f"{found.count():,} states, " if len(scope) == 2 else ""
    sys.stdout.write(
        f"{every}{len(catalogue.sources):,} of a single source, in {len(found.nodes)} nodes,"
        f" {found.transitions:,} steps tried: all hold, in {time.monotonic() - started:.0f} s\n"
    )
    return 0


def _small(scopes: Iterable[tuple[str, ...]], crashes: int) -> int:
    started, count, states = time.monotonic(), 0, 0
    for scripts in scopes:
        found = search(scripts, crashes)
        if found.failure is not None:
            sys.stdout.write(f"{found.failure}\n")
            return 1
        count, states = count + 1, states + found.states
    sys.stdout.write(
        f"{states:,} states of {count} scopes hold, in {time.monotonic() - started:.0f} s\n"
    )
    return 0


def _scope(text: str) -> Scope:
    sources = text.split(",")
    if len(sources) > len(NAMES) or set(text) - set("RD+,"):
        raise argparse.ArgumentTypeError("up to four sources, of scripts in R and D")
    return tuple(tuple(filter(None, source.split("+"))) for source in sources)


def main() -> int:
    """Read the command line, run, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--optimistic", action="store_true")
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--scope", type=_scope, default="RDRD+RDRD,RDRD+RDRD")
    parser.add_argument("--scripts")
    parser.add_argument("--crashes", type=int, default=1)
    given = parser.parse_args()
    if given.exhaustive and given.optimistic:
        chosen = [tuple(given.scripts.split(","))] if given.scripts else small_scopes()
        return _small(chosen, given.crashes)
    if given.exhaustive:
        return _exhaustive(given.scope, given.crashes)
    if given.optimistic:
        return _optimistic(given.first, given.seeds)
    return _seeds(given.first, given.seeds, make_estate)


if __name__ == "__main__":
    sys.exit(main())
