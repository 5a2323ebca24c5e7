"""What a Spark application did, from the log of events that Spark writes when it is asked to.

The format: one JSON object a line, as Spark's `JsonProtocol` writes them for its history server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replicator.pipeline.living_job import LIVING

_EXECUTION = "spark.sql.execution.id"


def event_log(folder: Path) -> dict[str, str]:
    """The settings with which an application keeps its log in a folder."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


@dataclass
class Execution:
    """One query: its plan, where its tasks ran, how long it took (milliseconds)."""

    plan: str
    started: int
    milliseconds: int = 0
    executors: list[str] = field(default_factory=list)

    @property
    def lives(self) -> bool:
        """Whether its tasks stay, to apply batches: it is no trial at the start, and no copy."""
        return LIVING in self.plan


def executions(folder: Path) -> list[Execution]:
    """The queries of the one application that has its log in a folder."""
    found: dict[str, Execution] = {}
    of_stage: dict[int, str] = {}
    for event in _events(folder):
        match event["Event"].rpartition(".")[2]:
            case "SparkListenerSQLExecutionStart":
                plan = event["physicalPlanDescription"]
                found[str(event["executionId"])] = Execution(plan, event["time"])
            case "SparkListenerSQLExecutionEnd":
                ended = found[str(event["executionId"])]
                ended.milliseconds = event["time"] - ended.started
            case "SparkListenerJobStart":
                execution = event["Properties"].get(_EXECUTION)
                if execution is not None:
                    of_stage |= dict.fromkeys(event["Stage IDs"], execution)
            case "SparkListenerTaskEnd":
                execution = of_stage.get(event["Stage ID"])
                if execution is not None:
                    found[execution].executors.append(event["Task Info"]["Executor ID"])
    return list(found.values())


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    [log] = folder.iterdir()
    with log.open() as lines:
        for line in lines:
            yield json.loads(line)
