"""Repairs under random histories: no good row of a target is ever changed or removed.

Shards, schemas and sources appear, disappear, become unreadable and come back.
``REPLICATOR_SOAK_SECONDS`` is the time of all cases together; without it, each case takes a few
rounds. ``REPLICATOR_SOAK_SEED`` repeats a history.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest
from pyspark import SparkContext

import config
from actors.comparing.comparing import CompareOptions, TargetComparer
from replicator.pipeline.compare.findings import TargetComparison
from replicator.sandbox.server import DatabaseServer
from replicator.terminal.comparison import remarks
from tests.support.shard_history import COLUMNS, ShardHistory
from tests.support.tasks.processes import PATIENCE, TaskProcess, task_process

MODES = ("", "pessimistic", "optimistic")
SECONDS = float(os.environ.get("REPLICATOR_SOAK_SECONDS", "0")) / (2 * len(MODES))
ROUNDS = 4
"""Rounds of a case without a time."""
SEED = os.environ.get("REPLICATOR_SOAK_SEED", "")


@dataclass
class RepairSoak:
    """One history, the process of the task, and the comparisons."""

    history: ShardHistory
    folder: Path
    spark: SparkContext
    monkeypatch: pytest.MonkeyPatch
    counts: Counter[str] = field(default_factory=Counter)
    alarms: list[str] = field(default_factory=list)
    _resources: ExitStack = field(default_factory=ExitStack)

    def start(self) -> None:
        """Run the task with the sources that are present."""
        file = self.history.task_file(self.folder)
        self.task = config.load_task(file)
        self.process: TaskProcess = self._resources.enter_context(task_process(file, self.folder))
        self.monkeypatch.setenv("XDG_RUNTIME_DIR", self.process.env["XDG_RUNTIME_DIR"])
        self.process.until_state(self.history.name, "running")
        self.counts["starts"] += 1

    def stop(self, *, kill: bool = False) -> None:
        """End the process in order, or kill it."""
        if not kill:
            self.process.process.send_signal(signal.SIGTERM)
            assert self.process.process.wait(PATIENCE) == 0, self.process.tail()
        self._resources.close()

    def until_applied(self) -> None:
        """Wait until the target has all rows."""
        self.process.until_applied(self.history.name, self.history.present)
        status = self.process.status(self.history.name)
        assert status is not None
        assert not status.blocked, status.blocked

    def round(self) -> None:
        """Let something happen, spoil rows, compare and repair, and look at all rows."""
        history, chance = self.history, self.history.chance
        for _ in range(chance.randrange(3)):
            history.happen()
        if chance.random() < 0.3:
            self._restart()
        history.write(5)
        self.until_applied()
        self._alarm("before the comparison", history.damage())
        history.spoil()
        meanwhile = chance.choice(("nothing", "rows", "events"))
        stopped = meanwhile == "nothing" and chance.random() < 0.3
        if stopped:
            self.stop()
        results = self._compare(meanwhile, file=stopped and chance.random() < 0.5)
        if stopped:
            self.start()
        self.until_applied()
        self._alarm(f"after a comparison, {meanwhile} meanwhile", history.damage())
        if meanwhile != "events":
            for result in results:
                self._judge(result)
        self.counts["spoiled"] += len(history.spoiled)
        self.counts["repaired"] += sum(not history.is_left(s) for s in history.spoiled)
        history.unspoil()
        self._alarm("after the repair by hand", history.damage())

    def _restart(self) -> None:
        """Start the process again, perhaps with other sources."""
        others = self.history.chance.random() < 0.6
        if others:
            # A source that leaves has to be applied: nobody applies its rows later.
            self.until_applied()
        self.stop(kill=self.history.chance.random() < 0.5)
        if others:
            self.history.happen(restarting=True)
        self.start()

    def _compare(self, meanwhile: str, *, file: bool) -> list[TargetComparison]:
        history, chance = self.history, self.history.chance
        repair = self.folder / "repair.sql" if file else None
        options = CompareOptions(
            chunk_rows=chance.choice((7, 1000)),
            checksums=chance.random() < 0.5,
            repair_now=repair is None,
            repair=repair,
        )

        async def context() -> SparkContext:
            return self.spark

        with ThreadPoolExecutor(1) as pool:
            doing = None
            if meanwhile == "rows":
                doing = pool.submit(history.write, 40)
            elif meanwhile == "events":
                doing = pool.submit(self._more)
            results = anyio.run(TargetComparer(self.task, options, context).run)
            if doing is not None:
                doing.result()
        if repair is not None:
            statements = repair.read_text().split(";\n")
            history.at_target(*[statement for statement in statements if statement.strip()])
        self.counts["comparisons"] += 1
        for result in results:
            kind = "failed" if result.failure else "complete"
            self.counts[f"{result.target.table} {kind}"] += 1
        return results

    def _more(self) -> None:
        for _ in range(3):
            time.sleep(self.history.chance.random())
            self.history.happen()
            self.history.write(2)

    def _judge(self, result: TargetComparison) -> None:
        """What a comparison has found must be what was spoiled, and is to be repaired."""
        history, table = self.history, result.target.table
        spoiled = [s for s in history.spoiled if s.table == table]
        found = []
        if result.differing > len(spoiled):
            found.append(f"{result.differing} rows of {table} differ, {len(spoiled)} were spoiled")
        if result.structure:
            found.append(f"{table}: {result.structure}")
        if history.all_readable(table):
            retired = history.is_retired(table)
            left = [s for s in spoiled if history.is_left(s) and not (retired and s.wanted is None)]
            if left:
                counts = f"held {result.held}, unsettled {result.unsettled}"
                found.append(f"not repaired: {left}, {counts}, {list(remarks(result))}")
        self._alarm("the result", found)

    def _alarm(self, when: str, what: list[str]) -> None:
        if what:
            shown = "\n  ".join((*what[:5], *self.history.events[-12:]))
            self.alarms.append(f"{when}: {len(what)}, with the last events\n  {shown}")

    def close(self) -> None:
        """Kill the process."""
        self._resources.close()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 1800)
@pytest.mark.parametrize("kind", ["mariadb", "tidb"])
@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode or "uncoordinated")
def test_no_good_row_is_changed_by_a_repair_whatever_becomes_of_the_shards(
    spark: SparkContext,
    mariadb_source: DatabaseServer,
    mysql_source: DatabaseServer,
    request: pytest.FixtureRequest,
    database_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    kind: str,
) -> None:
    target = request.getfixturevalue("tidb_target" if kind == "tidb" else "target_server")
    sources = {"a": mariadb_source, "b": mysql_source}
    seed = SEED or str(random.randrange(10**9))
    chance = random.Random(f"{seed} {mode} {kind}")
    history = ShardHistory(sources, target, database_name, mode, chance)
    soak = RepairSoak(history, tmp_path, spark, monkeypatch)
    history.begin()
    until = time.monotonic() + SECONDS
    try:
        soak.start()
        # What becomes unreadable while it is copied blocks its target.
        soak.until_applied()
        for number in range(10**6):
            if soak.alarms or (number >= ROUNDS and time.monotonic() >= until):
                break
            soak.round()
            soak.counts["rounds"] += 1
    finally:
        soak.close()
        history.end()
        sys.stdout.write(f"seed {seed}, {mode!r}, {kind}: {dict(soak.counts)}\n")
        sys.stdout.write(f"{Counter(e.split(' ')[0] for e in history.events)}\n")
    assert not soak.alarms, "\n".join((f"seed {seed}", *soak.alarms))
    assert soak.counts["repaired"]
    assert all(soak.counts[f"{table} complete"] for table in COLUMNS)
