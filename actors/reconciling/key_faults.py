"""The faults of keys that must be read again from the shards."""

from __future__ import annotations

from actors.faults import COPY_AGAIN, TAKE_THE_ROW, FatalError, of_target
from replicator.mysql.errors import DUPLICATE_KEY, error_code, error_text
from replicator.mysql.names import TableName
from replicator.mysql.row_values import without_values
from replicator.pipeline.compare.key_survey import OtherKeyError
from replicator.pipeline.compare.repair_now import WriteRefusedError


def unknown_keys(target: TableName, error: OtherKeyError) -> FatalError:
    """The fault that tracked keys can't be looked up."""
    return FatalError(
        "rows.moved-unknown",
        f"rows of {target} that moved between shards may be missing: its key has changed"
        f" ({error}) since the task recorded which keys several shards may have. The task can't"
        " look these keys up in the other shards any more",
        COPY_AGAIN,
        where=f"target {target}",
        scope=of_target(target),
    )


def refused_row(target: TableName, error: WriteRefusedError, *, values: bool) -> FatalError:
    """The fault that a target does not take a row; ``values``: they may be shown."""
    code = error_code(error)
    text = error_text(error) if values else without_values(error_text(error), code)
    if code in DUPLICATE_KEY:
        return FatalError(
            "rows.duplicate",
            f"two shards have rows with other keys, but the same values of a unique key: {text}."
            " The target has one of the rows",
            "change the values in one of the shards, or delete the row there; or drop the unique"
            " key on the target, if rows of different shards may be equal in it. Then"
            " `replicator resume`: the task looks both rows up again",
            where=f"target {target}",
            scope=of_target(target),
        )
    return FatalError(
        "rows.refused",
        f"the target refuses a row that one shard deleted and another shard has: {text}",
        TAKE_THE_ROW,
        where=f"target {target}",
        scope=of_target(target),
    )
