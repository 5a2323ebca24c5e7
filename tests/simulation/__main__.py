"""Run the simulation at will, from the project's folder.

``python -m tests.simulation --seeds 100000``: so many seeds, from ``--first`` on; the first
failure is printed with its seed and its shortest replay.

``python -m tests.simulation --exhaustive``: every run of the small scope of two sources, two
members each, two DDL and two rows each, for ``--binlogs`` of its 1,225 pairs of binlogs, with
``--crashes`` at any step.
"""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.runs import run, shorten
from tests.simulation.small import binlogs, explore, scope


def _seeds(first: int, count: int) -> int:
    started = time.monotonic()
    for seed in range(first, first + count):
        failure = run(seed)
        if failure is not None:
            sys.stdout.write(f"{shorten(failure)}\n")
            return 1
    sys.stdout.write(f"{count} seeds hold, in {time.monotonic() - started:.0f} s\n")
    return 0


def _exhaustive(count: int, crashes: int) -> int:
    scripts = scope("RDRD", "RDRD", "RDRD", "RDRD")
    every = list(binlogs(scripts))
    chosen = every[:: max(1, len(every) // count)][:count]
    states = 0
    for number, orders in enumerate(chosen, 1):
        found = explore(scripts, crashes, orders)
        states += found.states
        if found.failure:
            path = "\n".join(" ".join(step) for step in found.path)
            sys.stdout.write(f"{orders}: {found.failure}, after\n{path}\n")
            return 1
        sys.stdout.write(f"{number} of {len(chosen)} pairs of binlogs: {states} states hold\n")
    return 0


def main() -> int:
    """Read the command line, run, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--exhaustive", action="store_true")
    parser.add_argument("--binlogs", type=int, default=1225)
    parser.add_argument("--crashes", type=int, default=1)
    given = parser.parse_args()
    if given.exhaustive:
        return _exhaustive(given.binlogs, given.crashes)
    return _seeds(given.first, given.seeds)


if __name__ == "__main__":
    sys.exit(main())
