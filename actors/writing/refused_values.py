"""Corrections for statements that a target refuses because of its rows.

A statement is executed after the refused rows are removed, or with its values cut. The rows are
then read from the shards. This is not possible if a row of the target may belong to no shard.
"""

from __future__ import annotations

from dataclasses import replace

from attrs import define
from pymysql.constants import ER

from actors.saved.lock_state import histories
from replicator.ddl.parser.statement_kinds import classify_in
from replicator.downstream.ddl.ddl_execution import DdlExecution, DdlExecutor, DdlRefusedError
from replicator.downstream.ddl.double_rows import removals
from replicator.downstream.ddl.target_reader import TargetReader
from replicator.mysql.errors import DOES_NOT_FIT
from replicator.mysql.names import TableName, folded
from replicator.mysql.session_context.sql_modes import STRICT
from replicator.schema.effects.carried_change import MemberChange
from replicator.schema.effects.touched_parts import name_of_column, touched_parts
from replicator.schema.registry.registry import SchemaRegistry, load_structure
from replicator.schema.structure.structure import Table

MOST_ATTEMPTS = 5
"""Maximum number of attempts; a reconciliation may write rows of shards between two attempts."""


@define(eq=False)
class RefusedValues:
    """Finds a correction of rows after which a refused statement can be executed."""

    _registry: SchemaRegistry
    _executor: DdlExecutor

    async def executable(self, ddl: DdlExecution, error: DdlRefusedError) -> DdlExecution | None:
        """Return the execution to try; None if the refusal is final.

        The refusal is final unless all shards have made the change.
        """
        if ddl.agreed is None or ddl.instead is not None:
            return None
        if not ddl.strict:
            # If values were cut already, rows may be equal only for this reason.
            return None
        if error.code == ER.DUP_ENTRY:
            return await self._without_doubles(ddl)
        return await self._cut(ddl) if error.code in DOES_NOT_FIT else None

    async def _without_doubles(self, ddl: DdlExecution) -> DdlExecution | None:
        """Return an execution that first removes the rows that the new unique keys refuse.

        The target has other rows with the same values in these keys. Returns None if they may be
        different rows of the shards.

        While sources are in safe mode, a target can have a row twice: with and without the number
        that the shard's statement gave to the row. Both have the same values in the target's former
        row key. The reconciliation writes each row of a shard that the target lacks.
        """
        targets, after = self._executor.targets, ddl.agreed
        exact = await exact_sources(self._registry, targets, ddl.target)
        present = await targets.present(ddl.target)
        if not exact or not exact <= await targets.safe_sources(ddl.target):
            return None
        if present is None or after is None:
            return None
        former = await self._former_row_key(ddl.target, present)
        if not former:
            return None
        found = removals(ddl.target, present, after, former)
        safe = ddl.safe_sources | exact
        return replace(ddl, removals=found, safe_sources=safe, looked_up=False) if found else None

    async def _former_row_key(self, target: TableName, present: Table) -> frozenset[str]:
        """Return the columns of the latest row key of a target that differs from the present one.

        Keys are read from the decided items. The result is empty if none is known.
        """
        history = histories(await self._executor.targets.decided()).get(target)
        structures = history.structures if history is not None else {}
        for version in sorted(structures, reverse=True):
            table = load_structure(structures[version])
            if table is not None and table.row_key is not None and table.row_key != present.row_key:
                return frozenset(map(folded, table.row_key.columns))
        return frozenset()

    async def _cut(self, ddl: DdlExecution) -> DdlExecution | None:
        """Return the execution of a statement that cuts values of the target's rows.

        Returns None if cutting is not allowed: a value that no shard has would be lost.
        """
        targets, after = self._executor.targets, ddl.agreed
        present = await targets.present(ddl.target)
        if present is None or after is None:
            return None
        statement = classify_in(ddl.context, ddl.sql, default_schema=ddl.target.schema)
        touched = touched_parts(statement, MemberChange(ddl.before, after))
        columns = frozenset(map(name_of_column, touched.converted | touched.named))
        former = map(name_of_column, touched.renamed)
        keys = present.row_key.columns if present.row_key is not None else ()
        keyed = not columns.union(former).isdisjoint(map(folded, keys))
        exact = await exact_sources(self._registry, targets, ddl.target)
        if not columns or not exact or (keyed and after.row_key is None):
            return None
        columns_now = (*ddl.shard_only, *sorted(columns))
        lax = replace(ddl.context, sql_mode=(ddl.context.sql_mode or 0) & ~STRICT)
        # Until the reconciliation ends, a row may have another key than in its shard.
        safe = ddl.safe_sources | (exact if keyed else frozenset())
        cut = replace(ddl, context=lax, strict=False, shard_only=columns_now, safe_sources=safe)
        return replace(cut, looked_up=False)


async def exact_sources(
    registry: SchemaRegistry, targets: TargetReader, target: TableName
) -> frozenset[str]:
    """Return the sources of a target if all of its rows are known to be rows of its shards.

    A reconciliation of these sources deletes the rows that only the target has. Otherwise empty.
    """
    members = frozenset(map(registry.member, registry.members_of(registry.target(target))))
    exact = await targets.all_owned_by(target, members)
    return frozenset(member.source for member in members) if exact else frozenset()
