"""Errors that come back the same way: trying again does not cure them."""

from __future__ import annotations

from collections.abc import Mapping

from actors.faults import ExecutorError, FatalError
from actors.task.generation import Generation


class Recurrence:
    """Remembers the last error in an executor, and what had been saved by then."""

    def __init__(self) -> None:
        self._last: tuple[str, object] | None = None

    def fault(
        self, error: Exception, saved: Mapping[str, str], copied: int = 0
    ) -> FatalError | None:
        """The fault that a run has ended by, if it is the same error again; None: try again.

        ``saved`` are the positions saved by source, ``copied`` the rows that the full copy has
        written: where they are others, something was done in between.
        """
        if not isinstance(error, ExecutorError):
            return None
        now = (error.text, (dict(saved), copied))
        before, self._last = self._last, now
        if before != now:
            return None
        places = ", ".join(f"{source} {position}" for source, position in sorted(saved.items()))
        return FatalError(
            "task.unexpected",
            f"the same unexpected error again, with nothing done in between: {error.text}. Nothing"
            " was written of the rows concerned",
            where=f"saved positions: {places}" if places else f"the full copy, {copied} rows in",
            ways_out=(
                "report it, with the traceback of `batch.spark-failed` or `copy.spark-failed` in"
                " the log, the tables' structures and the first events behind the saved positions",
                "`replicator resume` tries again, as after a mended installation",
                "leave the table out (block-allow-list) and start the task anew",
            ),
        )


def saved_positions(generation: Generation | None) -> Mapping[str, str]:
    """The positions that a generation last saved, by source; none before it follows them."""
    running = generation.running if generation else None
    return running.writer.progress.saved if running else {}


def rows_copied(generation: Generation | None) -> int:
    """The rows that the full copy has written, those of earlier starts included."""
    return generation.copy.progress.rows if generation and generation.copy else 0
