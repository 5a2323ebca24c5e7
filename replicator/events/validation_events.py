"""Events of the log: the validation of rows while a task runs."""

from __future__ import annotations

from replicator.events.log_event import LogEvent, fields_of

VALIDATION_EVENTS = (
    LogEvent(
        "validation.error",
        "warning",
        (
            "Rows of a target stay different from those of their shards, longer than "
            "`row-error-delay` and though the task has applied all that the shards had. "
            "`replicator validation show-error TASK` lists them, and `replicator compare TASK.yaml "
            "--repair FILE` writes what makes them equal"
        ),
        fields=fields_of(
            "target",
            rows="the number of rows",
            examples="some of them: how they differ, the key (where `show-row-values` allows "
            "values), the shard, the columns",
        ),
        no_row_lost="The task has applied the rows; something else has changed them since",
    ),
    LogEvent(
        "validation.skipped",
        "warning",
        (
            "The task does not validate some keys: too many wait (`max-pending-row-count`), their "
            "servers can't be read, or their table has another key by now"
        ),
        fields=fields_of(keys="the number of keys"),
        no_row_lost="The task has applied the rows. `replicator compare` looks at all rows",
    ),
    LogEvent(
        "validation.left-out",
        "warning",
        "The task can't validate the rows of a target",
        fields=fields_of("target", "reason"),
        no_row_lost="The task applies the rows all the same. `replicator compare` looks at them",
    ),
    LogEvent(
        "validation.no-slots",
        "warning",
        (
            "The Spark cluster has too few slots for the validation beside the pipeline. The task "
            "does not validate rows"
        ),
        fields=fields_of(slots="the number of slots of the cluster"),
        no_row_lost="The task applies the rows all the same. `replicator compare` looks at them",
    ),
    LogEvent(
        "validation.later",
        "info",
        "The validation could not read a server, and tries again",
        fields=fields_of("reason", "target"),
    ),
)
"""The validation of rows, in the order of the page."""
