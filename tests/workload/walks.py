"""Execute random histories on shards that a task merges, and compare.

``python -m tests.workload.walks 0 20``, from the project's folder: the walks 0 to 19 of
`history_walks`, in each mode, many of them side by side in one task. A walk is equal if all of its
tables are.

``--output FILE`` gets the outcomes as JSON, ``--keep FOLDER`` the task's logs, ``--show`` prints
the statements of each walk that is not equal.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import time
from dataclasses import asdict
from pathlib import Path
from random import Random

from tests.workload.histories import MODES, SERVERS
from tests.workload.history_run import HistoryOutcome, HistoryRun
from tests.workload.history_walks import Step, Walk, walk_of

SIDE_BY_SIDE = 10
"""Walks of one task."""
PAUSE_STEPS = 60
SHOWN = 400


def main() -> int:
    """Read the command line, execute the walks, and report each that is not equal; 1 if any."""
    parser = argparse.ArgumentParser(prog="python -m tests.workload.walks")
    parser.add_argument("first", type=int, metavar="FIRST")
    parser.add_argument("number", type=int, metavar="NUMBER")
    parser.add_argument("--together", type=int, default=SIDE_BY_SIDE)
    parser.add_argument("--length", type=int, default=14, help="changes of a walk")
    parser.add_argument("--no-renames", action="store_true", help="tables keep their names")
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--source", default="mariadb", choices=[k for k in SERVERS if k != "tidb"])
    parser.add_argument("--target", default="mariadb", choices=SERVERS)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    walks = [
        walk_of(seed, length=given.length, renames=not given.no_renames)
        for seed in range(given.first, given.first + given.number)
    ]
    outcomes, unlike = [], 0
    with contextlib.ExitStack() as servers:
        kinds = [SERVERS[given.source], SERVERS[given.source], SERVERS[given.target]]
        first, second, target = (servers.enter_context(kind()) for kind in kinds)
        for mode in given.modes:
            for some in _some(walks, given.together):
                named = "" if mode == "uncoordinated" else mode
                with HistoryRun({"a": first, "b": second}, target, named) as run:
                    outcome = walk(run, some, HistoryOutcome(mode, f"walks {some[0].seed}…"))
                    if given.keep is not None:
                        given.keep.mkdir(parents=True, exist_ok=True)
                        (given.keep / f"{mode}-{some[0].seed}.log").write_text(run.log())
                outcomes.append(outcome)
                unlike += _report(outcome, some, show=given.show)
                if given.output is not None:
                    texts = json.dumps([asdict(outcome) for outcome in outcomes], indent=1)
                    given.output.write_text(texts + "\n")
    return 1 if unlike else 0


def walk(run: HistoryRun, walks: list[Walk], outcome: HistoryOutcome) -> HistoryOutcome:
    """Execute walks side by side, with rows in between, and compare all tables."""
    started = time.monotonic()
    random = Random(walks[0].seed)
    going = [iter(one.steps) for one in walks]
    done = 0
    while going:
        one = random.choice(going)
        step = next(one, None)
        if step is None:
            going.remove(one)
            continue
        _execute(run, step, random, outcome)
        done += 1
        if done % PAUSE_STEPS == 0:
            run.pause()
    run.finish(outcome)
    outcome.seconds = round(time.monotonic() - started, 1)
    return outcome


def _execute(run: HistoryRun, step: Step, random: Random, outcome: HistoryOutcome) -> None:
    shard = run.shards[step.shard]
    for sql in step.statements:
        run.execute(shard, sql, outcome)
    for table in step.tables:
        place = shard.server, shard.schema, table
        outcome.rows += run.rows.insert(*place, shard.number)
        if random.random() < 0.2:
            run.rows.update(*place, shard.number)
        if random.random() < 0.1:
            run.rows.delete(*place)


def unequal(outcome: HistoryOutcome, walks: list[Walk]) -> dict[int, list[str]]:
    """Return what is not equal, by the seed of the walk; by -1 what belongs to no walk."""
    found: dict[int, list[str]] = {}
    for table in outcome.tables:
        if table.result != "equal":
            seeds = [one.seed for one in walks if table.table.startswith(one.prefix)]
            text = f"{table.table} {table.result} {table.detail}"
            found.setdefault(seeds[0] if seeds else -1, []).append(text)
    return found


def _report(outcome: HistoryOutcome, walks: list[Walk], *, show: bool) -> int:
    found = unequal(outcome, walks)
    lines = [
        f"{outcome.mode}, {outcome.pace}: {len(walks) - len(found)} of {len(walks)} walks equal;"
        f" {len(outcome.tables)} tables, {outcome.statements} statements, {outcome.rows} rows,"
        f" {len(outcome.refused)} refused by the source, {outcome.seconds} s"
    ]
    for one in walks:
        lines += [f"{one.seed} ({one.pace}): {text[:SHOWN]}" for text in found.get(one.seed, ())]
        if show and one.seed in found:
            lines += [f"    {step.shard} {sql}" for step in one.steps for sql in step.statements]
    lines += [text[:SHOWN] for text in found.get(-1, ())]
    lines += [f"the source refused: {text[:SHOWN]}" for text in outcome.refused]
    sys.stdout.write("\n    ".join(lines) + "\n")
    sys.stdout.flush()
    return len(found)


def _some(walks: list[Walk], number: int) -> list[list[Walk]]:
    return [walks[start : start + number] for start in range(0, len(walks), number)]


if __name__ == "__main__":
    sys.exit(main())
