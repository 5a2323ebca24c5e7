"""What a Spark application did, from the log of events that Spark writes when it is asked to.

The format: one JSON object a line, as Spark's `JsonProtocol` writes them for its history server.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replicator.pipeline.workers.worker_pool import LIVING


def event_log(folder: Path) -> dict[str, str]:
    """The settings with which an application keeps its log in a folder."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }


@dataclass
class Job:
    """One job: how it was described to Spark, and where its tasks ran."""

    description: str
    executors: list[str] = field(default_factory=list)

    @property
    def lives(self) -> bool:
        """Whether its tasks stay, to apply batches: it is no trial at the start, and no copy."""
        return self.description == LIVING


def jobs(folder: Path) -> list[Job]:
    """The jobs of the one application that has its log in a folder."""
    found: list[Job] = []
    of_stage: dict[int, Job] = {}
    for event in _events(folder):
        match event["Event"]:
            case "SparkListenerJobStart":
                job = Job(event["Properties"].get("spark.job.description", ""))
                found.append(job)
                of_stage |= dict.fromkeys(event["Stage IDs"], job)
            case "SparkListenerTaskEnd":
                of_stage[event["Stage ID"]].executors.append(event["Task Info"]["Executor ID"])
    return found


def _events(folder: Path) -> Iterator[dict[str, Any]]:
    [log] = folder.iterdir()
    with log.open() as lines:
        for line in lines:
            yield json.loads(line)
