"""Whether a server tells names of tables and databases apart by their case.

That is its ``lower_case_table_names`` (MySQL manual, "Identifier Case Sensitivity"): 0 counts it,
1 keeps all names in lower case, 2 keeps them as they are given and compares them without case
(macOS, and TiDB always). With 1 and 2 a statement may write a name in any case, while row events
have it in lower case: the server lowers a name when it opens the table, and with 2 keeps the given
one for display only. So where case does not count, a task knows tables by their `folded` names.
"""

from __future__ import annotations

from replicator.mysql.connection.asyncio_connection import Connection


async def folds_names(connection: Connection) -> bool:
    """Whether names that differ in case only are one table to a server.

    Raises DatabaseUnavailableError or the server's error.
    """
    (row,) = await connection.fetch("SELECT @@lower_case_table_names")
    return int(row[0]) != 0
