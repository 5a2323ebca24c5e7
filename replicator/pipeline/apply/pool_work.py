"""The function of a worker pool's task, in a module that loads no other modules.

Spark gets a function by its name. To name a function of a module that decodes rows, the driver
would have to load this module first, which takes a second of the start. Only the tasks need it so
early, and they have loaded it by then (`replicator.pipeline.worker_daemon`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replicator.pipeline.apply.batch import ApplySettings, Batch


def work_on(part: tuple[Batch, ApplySettings]) -> bytes:
    """Call `replicator.pipeline.apply.job.apply_part`, for a task that answers with bytes."""
    from replicator.pipeline.apply.job import apply_part
    from replicator.pipeline.spark.json_results import to_json

    return to_json(apply_part(*part))
