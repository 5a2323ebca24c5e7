"""The exchange of a ghost and its table that lies behind: whether nothing else was done. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from replicator.ddl.analysis.changed_tables import changed_tables, concerns
from replicator.ddl.online.online_ddl import Beside, Online
from replicator.ddl.parser.statement import ParsedStatement
from replicator.mysql.names import TableName


def exchanged_ghost(
    real: TableName, trash: TableName, statements: Iterable[ParsedStatement], online: Online
) -> TableName | None:
    """The ghost that has taken the place of ``real``, which is called ``trash`` since.

    So the one name has what the table was before ``statements``, and the other what the ghost was.
    None where they tell of anything else that may have changed one of the three.
    """
    ghost: TableName | None = None
    before: list[TableName] = []
    for statement in statements:
        changed = list(changed_tables(statement))
        if ghost is not None:
            if any(concerns(name, own) for name in changed for own in (real, trash)):
                return None
        elif any(concerns(name, real) for name in changed):
            ghost = _exchanged(statement, real, trash)
            if ghost is None or online(ghost) != Beside(real, trash=False):
                return None
            if any(concerns(name, ghost) for name in before):
                return None
        before += changed
    return ghost


def _exchanged(statement: ParsedStatement, real: TableName, trash: TableName) -> TableName | None:
    pairs = [
        (TableName(old.schema, old.table), TableName(new.schema, new.table))
        for old, new in statement.renames
    ]
    if len(pairs) != 2 or pairs[0] != (real, trash) or pairs[1][1] != real:
        return None
    return pairs[1][0]
