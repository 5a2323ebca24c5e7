"""What the driver must know of collations to tell by which one a shard's texts are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set

from actors.task_setup import SourceSetup
from actors.writing.row_filters import ShardCollations
from replicator.ddl.rewrite.collations import nearest_collation
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.schema.structure.collations import available_collations, collation_numbers


async def filter_collations(
    setups: Iterable[SourceSetup], available: Set[str]
) -> Mapping[str, ShardCollations]:
    """By source, of those that have expression filters; ``available`` are the target's.

    Raises DatabaseUnavailableError or the server's error.
    """
    found = {}
    for setup in setups:
        if setup.expression_filters:
            connection = Connection(setup.address)
            try:
                numbers = await collation_numbers(connection)
                lacking = await available_collations(connection) - available
            finally:
                connection.close()
            stand_ins = {nearest_collation(name, available) for name in lacking}
            found[setup.source] = ShardCollations(numbers, frozenset(filter(None, stand_ins)))
    return found
