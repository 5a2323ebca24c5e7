"""Failures that recur without progress in between, so that another attempt does not help."""

from __future__ import annotations

from collections.abc import Mapping

from actors.errors.faults import ExecutorError, FatalError, SparkFailedError, fault
from actors.task.generation import Generation

SPARK_LOSSES = 5
"""Number of successive failed runs of Spark without progress that count as a fault."""


class Recurrence:
    """Remembers the last failure of Spark, and the progress saved at that time."""

    def __init__(self) -> None:
        self._text = ""
        self._done: object = None
        self._losses = 0

    def fault(
        self, error: Exception, saved: Mapping[str, str], copied: int = 0
    ) -> FatalError | None:
        """Return the fault for a run's end if its failure has recurred; None for another attempt.

        The program's own error in an executor is a fault the second time. Any other failure of
        Spark is a fault after SPARK_LOSSES runs, because crashed workers and JVMs without memory
        look like a lost machine. An unavailable server is never a fault.

        Args:
            saved: the saved positions by source; a difference means progress.
            copied: number of rows written by the full copy; a difference means progress.
        """
        if not isinstance(error, SparkFailedError):
            return None
        done = (dict(saved), copied)
        if done != self._done:
            self._done, self._text, self._losses = done, "", 0
        self._losses += 1
        before, self._text = self._text, error.text if isinstance(error, ExecutorError) else ""
        places = ", ".join(f"{source} {position}" for source, position in sorted(saved.items()))
        where = f"saved positions: {places}" if places else f"the full copy, {copied} rows in"
        if before and before == self._text:
            return _unexpected(self._text, where)
        if self._losses == SPARK_LOSSES:
            self._losses = 0
            return _spark_failing(error, where)
        return None


def _unexpected(text: str, where: str) -> FatalError:
    return fault("task.unexpected", error=text, where=where)


def _spark_failing(error: SparkFailedError, where: str) -> FatalError:
    return fault("spark.failing", times=SPARK_LOSSES, error=error, where=where)


def saved_positions(generation: Generation | None) -> Mapping[str, str]:
    """Return a generation's last saved positions, by source; none before it follows the sources."""
    running = generation.running if generation else None
    return running.writer.checkpoints.saved if running else {}


def rows_copied(generation: Generation | None) -> int:
    """Return the number of rows that the full copy has written, including earlier starts."""
    return generation.copy.progress.rows if generation and generation.copy else 0
