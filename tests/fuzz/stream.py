"""Fuzz what a source sends: ``python -m tests.fuzz.stream --seconds 600``.

First rounds that replay recorded readings of a binlog with one fault in each, some thousand a
minute; then whole tasks with a source behind a faulty proxy. Every round has a seed; each violation
is printed with it. ``--only NAME:SEED`` does one round again, with the recording that is kept in
the folder of ``--recordings``; ``--only task:SEED`` one of a whole task.

The exit code is 1 where rows or positions were wrong without an error, something else was raised
than the errors of the reader, a process died or hung, or memory grew beyond its bound.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from replicator.sandbox.keeper import ServerUnavailableError
from tests.fuzz.conversations import KINDS, record
from tests.fuzz.crew import outcomes
from tests.fuzz.recording import load, save
from tests.fuzz.rounds import Judge, Outcome
from tests.fuzz.whole_task import task_rounds

TASK_SHARE = 0.4
"""Of the time, for whole tasks."""
_LEAST_SECONDS = 20.0
"""For replays, however long the recording took."""
SHOWN = 200
"""Characters of what is said of an outcome."""


class Report:
    """Counts outcomes, prints those that must not be."""

    def __init__(self) -> None:
        self.violations: list[Outcome] = []
        self._counts: Counter[tuple[str, str]] = Counter()
        self._peaks: dict[str, int] = {}

    def add(self, outcome: Outcome) -> None:
        """Take in an outcome; print it where it is a violation."""
        level = "task" if outcome.recording == "task" else "replay"
        self._counts[f"{level} {outcome.kind}", outcome.what] += 1
        self._peaks[level] = max(self._peaks.get(level, 0), outcome.peak)
        if outcome.is_violation:
            self.violations.append(outcome)
            _say(f"{outcome.recording}:{outcome.seed} {outcome.what}: {outcome.why[:SHOWN]}")
            _say(f"    {outcome.fault}")

    def write(self) -> None:
        """The counts by kind of fault, peaks of memory, and all violations' seeds."""
        whats = sorted({what for _, what in self._counts})
        _say("\n" + " | ".join([f"{'rounds':24}", *whats]))
        for kind in sorted({kind for kind, _ in self._counts}):
            cells = [f"{self._counts[kind, what]:{len(what)}}" for what in whats]
            _say(" | ".join([f"{kind:24}", *cells]))
        for level, peak in self._peaks.items():
            _say(f"{level}: memory grew by {peak >> 20} MiB at most")
        total = sum(self._counts.values())
        _say(f"{total} rounds, {len(self.violations)} violations")
        for (what, why), count in Counter((v.what, v.why[:60]) for v in self.violations).items():
            _say(f"    {count} times {what}: {why}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def recordings(kinds: Iterable[str], checksums: Sequence[bool], folder: Path) -> list[Path]:
    """Record on a server of each kind; the files. Kinds that can't be had are left out."""
    found = []
    for kind in kinds:
        try:
            with KINDS[kind]() as server:
                for on in checksums:
                    for by_gtid in (False, True):
                        one = record(server, kind, checksums=on, by_gtid=by_gtid)
                        found.append(save(one, folder))
                        _say(f"recorded {one.name}: {one.size >> 10} KiB")
        except ServerUnavailableError as error:
            _say(f"without {kind}: {error}")
    return found


def _again(only: str, folder: Path) -> Iterable[Outcome]:
    name, _, seed = only.rpartition(":")
    if name == "task":
        return task_rounds("mariadb", int(seed), rounds=1)
    return [Judge(load(folder / f"{name}.recording")).round(int(seed))]


def main() -> int:
    """Read the command line, run, and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.stream", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--source", choices=KINDS, action="append", help="all without it")
    parser.add_argument("--checksums", choices=("on", "off"), help="both without it")
    parser.add_argument("--only", metavar="NAME:SEED", help="one round again")
    parser.add_argument("--recordings", type=Path, default=Path("fuzz-recordings"))
    parser.add_argument("--level", choices=("replay", "task"), help="both without it")
    options = parser.parse_args()
    report, began = Report(), time.monotonic()
    if options.only:
        for outcome in _again(options.only, options.recordings):
            report.add(outcome)
            _say(f"{outcome.what}: {outcome.why}\n    {outcome.fault}")
        return bool(report.violations)
    kinds = options.source or list(KINDS)
    share = {"replay": 0.0, "task": 1.0, None: TASK_SHARE}[options.level]
    if options.level != "task":
        checksums = [
            on for on in (True, False) if options.checksums in (None, "on" if on else "off")
        ]
        paths = recordings(kinds, checksums, options.recordings)
        left = options.seconds * (1 - share) - (time.monotonic() - began)
        for outcome in outcomes(paths, options.seed, max(left, _LEAST_SECONDS)):
            report.add(outcome)
    if options.level != "replay":
        for kind in kinds:
            seconds = options.seconds * share / len(kinds)
            for outcome in task_rounds(kind, options.seed, seconds=seconds):
                report.add(outcome)
    report.write()
    return bool(report.violations)


if __name__ == "__main__":
    sys.exit(main())
