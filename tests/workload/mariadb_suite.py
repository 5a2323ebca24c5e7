"""Follow MariaDB's own test files with a task, and compare.

``python -m tests.workload.mariadb_suite``, from the project's folder. Each file is executed by
MariaDB's test client on a source that a task follows into another server. Before the file drops
tables, and at its end, the task is waited for and all tables are compared: columns, keys, rows.
``--files a b`` are other files than those of `tests.workload.files`; ``--output FILE`` gets the
outcomes as JSON, ``--keep FOLDER`` the statements and logs of each file.

What the client says of its own expectations has no meaning here: they are of another engine and of
options that are not set. A file goes on behind each of its errors.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from tests.workload.debian import test_package
from tests.workload.files import FILES
from tests.workload.suite_run import FILE_SECONDS, Outcome, SuiteRun

FINE = ("equal", "no workload")
SHOWN = 200


def main() -> int:
    """Read the command line, run the files, and say what became of them; 1 if any is not equal."""
    parser = argparse.ArgumentParser(prog="python -m tests.workload.mariadb_suite")
    parser.add_argument("--files", nargs="+", default=FILES, metavar="FILE")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--seconds", type=float, default=FILE_SECONDS, help="for each file")
    arguments = parser.parse_args()
    # Ended from outside, it ends what it has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    outcomes: list[Outcome] = []
    with SuiteRun(test_package(), arguments.keep, arguments.seconds) as run:
        for name in arguments.files:
            outcomes.append(run.run(name))
            _say(outcomes[-1])
            if arguments.output is not None:
                text = json.dumps([asdict(outcome) for outcome in outcomes], indent=1)
                arguments.output.write_text(text + "\n")
    counts = Counter(outcome.result for outcome in outcomes)
    sys.stdout.write(", ".join(f"{count} {result}" for result, count in counts.items()) + "\n")
    return 0 if set(counts) <= set(FINE) else 1


def _say(outcome: Outcome) -> None:
    line = f"{outcome.file:40} {outcome.result:12} {outcome.seconds:6.1f} s"
    line += f"  {outcome.statements} statements, {outcome.comparisons} comparisons"
    line += f", {outcome.tables} tables, {outcome.rows} rows"
    more = [outcome.detail] if outcome.detail else []
    more += [f"{d.kind} of {d.table}: {d.text}" for d in outcome.differences]
    more += [f"{t.kind}, {t.event}: {t.message}" for t in outcome.troubles]
    sys.stdout.write("\n    ".join([line, *(" ".join(text.split())[:SHOWN] for text in more)]))
    sys.stdout.write("\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
