"""Faults that occur when rows of tracked keys are read again from the shards."""

from __future__ import annotations

from actors.errors.faults import FatalError, fault
from replicator.mysql.errors import DUPLICATE_KEY, error_code, error_text
from replicator.mysql.names import TableName
from replicator.mysql.row_values import without_values
from replicator.pipeline.compare.key_survey import OtherKeyError
from replicator.pipeline.compare.repair_now import WriteRefusedError


def unknown_keys(target: TableName, error: OtherKeyError) -> FatalError:
    """Return the fault to raise if tracked keys can't be looked up."""
    return fault("rows.moved-unknown", target=target, error=error)


def refused_row(target: TableName, error: WriteRefusedError, *, values: bool) -> FatalError:
    """Return the fault to raise if a target refuses a row.

    ``values``: whether the row's values may be shown.
    """
    code = error_code(error)
    text = error_text(error) if values else without_values(error_text(error), code)
    if code in DUPLICATE_KEY:
        return fault("rows.duplicate", "unique-key", target=target, error=text)
    return fault("rows.refused", "moved", target=target, error=text)
