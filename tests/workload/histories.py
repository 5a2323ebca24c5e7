"""Run the upgrade history of an application on shards that a task merges, and compare.

``python -m tests.workload.histories FOLDER``, from the project's folder. FOLDER has plain SQL
files, executed in the order of their names (V2 before V10) on three shards, with generated rows in
between; at the end all tables are compared: columns, keys, rows. The files' own INSERTs run on one
shard, since other shards would have the same keys. INSERT … SELECT runs on each shard, on its own
rows, unless a shard would get a key that another one has.

Each mode (``--modes``) is run with each pace (``--paces``): after ``statement``, or after ``file``,
it is the next shard's turn. ``--output FILE`` gets the outcomes as JSON, ``--keep FOLDER`` the
task's logs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.tidb import TiDBServer
from tests.workload.history_run import HistoryOutcome, HistoryRun
from tests.workload.scripts import scripts_of

SERVERS: dict[str, type[DatabaseServer]] = {
    "mariadb": MariaDBServer,
    "mariadb11": MariaDB11Server,
    "mysql": MySQLServer,
    "tidb": TiDBServer,
}
MODES = ("pessimistic", "optimistic", "uncoordinated")
PACES = ("statement", "file")
SHOWN = 300


def main() -> int:
    """Read the command line, run the history, and report each table; 1 if any is not equal."""
    parser = argparse.ArgumentParser(prog="python -m tests.workload.histories")
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--pattern", default="*.sql", help="of the files' names")
    parser.add_argument("--replace", nargs=2, action="append", default=[], metavar=("TEXT", "BY"))
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--paces", nargs="+", default=PACES, choices=PACES)
    parser.add_argument("--source", default="mariadb", choices=[k for k in SERVERS if k != "tidb"])
    parser.add_argument("--target", default="mariadb", choices=SERVERS)
    parser.add_argument("--backlog", action="store_true", help="wait for the task only at the end")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    scripts = scripts_of(given.folder, given.pattern, dict(given.replace))
    # Terminated from outside, it ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    outcomes: list[HistoryOutcome] = []
    with contextlib.ExitStack() as servers:
        kinds = [SERVERS[given.source], SERVERS[given.source], SERVERS[given.target]]
        first, second, target = (servers.enter_context(kind()) for kind in kinds)
        for mode in given.modes:
            for pace in given.paces:
                named = "" if mode == "uncoordinated" else mode
                sources = {"a": first, "b": second}
                with HistoryRun(sources, target, named, wait=not given.backlog) as run:
                    outcomes.append(run.run(scripts, pace))
                    if given.keep is not None:
                        given.keep.mkdir(parents=True, exist_ok=True)
                        (given.keep / f"{mode}-{pace}.log").write_text(run.log())
                _report(outcomes[-1])
                if given.output is not None:
                    texts = json.dumps([asdict(outcome) for outcome in outcomes], indent=1)
                    given.output.write_text(texts + "\n")
    return 0 if all(t.result == "equal" for o in outcomes for t in o.tables) else 1


def _report(outcome: HistoryOutcome) -> None:
    counts = Counter(table.result for table in outcome.tables)
    found = ", ".join(f"{number} {result}" for result, number in sorted(counts.items()))
    lines = [
        f"{outcome.mode}, {outcome.pace} by {outcome.pace}: {found}; {outcome.statements}"
        f" statements, {outcome.rows} rows, {len(outcome.refused)} refused by the source,"
        f" {outcome.seconds} s"
    ]
    lines += [
        f"{table.table:30} {table.result:8} {table.detail}"
        for table in outcome.tables
        if table.result != "equal"
    ]
    lines += [f"the source refused: {text}" for text in outcome.refused]
    sys.stdout.write("\n    ".join(line[: SHOWN + 40] for line in lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
