"""Measure for how many seconds a switch keeps the sources read-only.

``python -m tests.workload.switches --rate 1000``, from the project's folder. An application writes
to four shards of two sources, one row a transaction, while `replicator switch --freeze` works.
Each run has new servers. The target must have all rows in the end, and the steps of the command are
printed with the seconds since its start.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.tasks.processes import task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.switching import Application
from tests.support.tasks.task_files import write_task
from tests.workload.histories import SERVERS

DATABASE = "leaving"
WARM_UP_SECONDS = 10.0


def run(given: argparse.Namespace, folder: Path) -> str:
    """Make one switch, and return its rate of transactions and its seconds of freeze."""
    with contextlib.ExitStack() as servers:
        kinds = [SERVERS[given.source], SERVERS[given.source], SERVERS[given.target]]
        first, second, target = (servers.enter_context(kind()) for kind in kinds)
        shards = Shards([first, second], target, DATABASE)
        file = write_task(folder, {**shards.task(), "writer": {}})
        shards.change()
        application = Application(shards.servers, DATABASE, ("t1", "t2"), rate=given.rate)
        with task_process(file, folder) as task:
            task.until_state(DATABASE, "running")
            with application.writing():
                time.sleep(WARM_UP_SECONDS)
                begun, written = time.monotonic(), application.transactions
                process = subprocess.Popen(
                    [sys.executable, "-m", "cli", "switch", str(file), "--freeze", "--json"],
                    env=dict(task.env),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
                assert process.stderr is not None
                assert process.stdout is not None
                rate = 0.0
                for line in process.stderr:
                    seconds = time.monotonic() - begun
                    if " sources read-only" in line:
                        rate = (application.transactions - written) / seconds
                    if given.steps:
                        sys.stderr.write(f"{seconds:7.2f} s  {line}")
                answer = json.loads(process.stdout.read())
                assert process.wait() == 0
        shards.assert_equal()
    return f"{rate:,.0f} transactions/s: read-only for {answer['frozen_seconds']:.2f} s"


def main() -> None:
    """Print one line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=float, default=1000.0, help="transactions a second")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--source", choices=SERVERS, default="mariadb")
    parser.add_argument("--target", choices=SERVERS, default="mariadb")
    parser.add_argument("--steps", action="store_true", help="print the steps of the command")
    given = parser.parse_args()
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory() as folder:
            sys.stdout.write(run(given, Path(folder)) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
