"""The faults that a test has made on real servers, and whether each raises its metric and alert.

Tests of a remedy have the mark ``remedy`` with the event of a fault. What raises it in this process
is recorded, and given to a supervisor as a run of a task would; a task that is a process of its own
has logged it, which the supervisor does where it counts it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import anyio
import anyio.lowlevel
import yaml
from prometheus_client import CollectorRegistry

from actors.errors.faults import FatalError
from actors.task.outcome import Failed, Outcome, Stop
from actors.task.resources.spark import TaskSpark
from actors.task.supervisor import TaskSupervisor
from config.loading import load_task
from replicator.monitoring.metrics import registry_of
from replicator.status import faults_of
from tests.support.tasks.processes import STARTED

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "config" / "examples" / "merge-two-sources.yaml"
PASSWORDS = {"SHARD_PASSWORD": "one", "TARGET_PASSWORD": "two"}


class _OneFault(TaskSupervisor):
    """A task whose first run ends with a fault; the next ones go on until it is stopped."""

    def __init__(self, error: FatalError) -> None:
        with mock.patch.dict(os.environ, PASSWORDS):
            task = load_task(EXAMPLE)
        super().__init__(task, TaskSpark(task))
        self._error: FatalError | None = error

    async def _run_once(self) -> Outcome:
        if self._error is not None:
            error, self._error = self._error, None
            return Failed(error)
        await self._wished.wait()
        return Stop()

    async def measured(self) -> CollectorRegistry:
        """What Prometheus gets while the fault is there."""
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._live)
                while not faults_of(self.status()):
                    await anyio.lowlevel.checkpoint()
                status = self.status()
                tasks.cancel_scope.cancel()
        return registry_of(lambda: status, self._counts.meters)


def rule(alert: str) -> dict[str, Any]:
    """An alert rule of `config/monitoring/alerts.yml`."""
    text = (ROOT / "config" / "monitoring" / "alerts.yml").read_text(encoding="utf-8")
    [group] = yaml.safe_load(text)["groups"]
    [found] = [rule for rule in group["rules"] if rule["alert"] == alert]
    return dict(found)


def check_alert(error: FatalError) -> None:
    """Fail unless a task with this fault counts it, shows it, and the alert of faults fires."""
    found = anyio.run(_OneFault(error).measured)
    labels = {"task": "merge-orders", "event": error.event}
    assert found.get_sample_value("replicator_faults_total", labels) == 1
    # So simple that Prometheus is not needed to tell whether it fires.
    [name] = re.fullmatch(r"(\w+) > 0", rule("ReplicatorFault")["expr"]).groups()  # type: ignore[union-attr]
    # A fault of two targets counts for both.
    assert (found.get_sample_value(name, labels) or 0) >= 1
    assert found.get_sample_value("replicator_needs_operator", {"task": "merge-orders"}) == 1


@contextmanager
def faults_alert(*events: str, sure: bool) -> Iterator[None]:
    """In this block these faults occur, and each raises its metric and its alert.

    ``sure``: one that does not occur is an error of the test.
    """
    made: dict[str, FatalError] = {}
    initialise, before = FatalError.__init__, len(STARTED)
    # Some serve all tests of a module.
    alive = {task: len(task.events()) for task in STARTED if task.process.poll() is None}

    def recorded(error: FatalError, event: str, *args: Any, **more: Any) -> None:
        initialise(error, event, *args, **more)
        made[event] = error

    with mock.patch.object(FatalError, "__init__", recorded):
        yield
    tasks = (*alive, *STARTED[before:])
    logged = {record["event"] for task in tasks for record in task.events()[alive.get(task, 0) :]}
    missing = set(events) - made.keys() - logged
    assert not (sure and missing), (
        f"the mark `remedy` names them, and the test does not make them: {missing}"
    )
    for event in made.keys() & set(events):
        check_alert(made[event])
