"""Why a target refuses a row that the shard holds: where two servers have different rules.

A shard can hold what its own rules refuse: rows that are older than a CHECK or were written with
the checks off, a generated column that was cut to its type outside strict mode.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from replicator.downstream.columns import TargetColumn
from replicator.mysql.errors import ErrorCode
from replicator.mysql.names import folded

_VALUE_REFUSED = frozenset(
    {
        ErrorCode.ER_BAD_NULL_ERROR,
        ErrorCode.ER_WARN_DATA_OUT_OF_RANGE,
        ErrorCode.WARN_DATA_TRUNCATED,
        ErrorCode.ER_TRUNCATED_WRONG_VALUE,
        ErrorCode.ER_DIVISION_BY_ZERO,
        ErrorCode.ER_TRUNCATED_WRONG_VALUE_FOR_FIELD,
        ErrorCode.ER_DATA_TOO_LONG,
        ErrorCode.ER_DATA_OUT_OF_RANGE,
    }
)
_COLUMN = re.compile(r"[Cc]olumn (?:[`'][^`']*[`']\.)*[`']([^`']+)[`']")


def advice_on(code: int, text: str, columns: Sequence[TargetColumn]) -> str:
    """What differs from the shard's server, to be put behind the server's words about a row.

    Empty where nothing is known. ``columns`` are those that are written.
    """
    if code == ErrorCode.ER_CHECK_CONSTRAINT_VIOLATED:
        # MySQL manual, "CHECK Constraints": no session can turn them off, unlike MariaDB's.
        return (
            ": the shard holds a row that this CHECK refuses, and the target's server can't"
            " be told to take it. ALTER TABLE … ALTER CHECK … NOT ENFORCED at the target, or mend"
            " the row in the shard"
        )
    found = _COLUMN.search(text)
    if code in _VALUE_REFUSED and found:
        name = folded(found[1])
        if all(folded(column.name) != name for column in columns):
            return (
                f": the target fills {found[1]} in itself, in strict mode, and the shard did"
                " so under another sql_mode. Mend the row in the shard, or make the column an"
                " ordinary one of the target, which takes the shard's value"
            )
    return ""
