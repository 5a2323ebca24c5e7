"""Executes statements with constraint names that other tables of the target already have.

In a database, the names of foreign keys are unique, except on TiDB, and on MySQL also the names of
CHECKs. A name may be free in the shard but not on the target, which keeps tables that the shards
have dropped, has tables of shards that are read later, and may be a server of another kind.
"""

from __future__ import annotations

import pymysql.err
import structlog
from pymysql.constants import ER

from replicator.ddl.model.actions import DropConstraint
from replicator.ddl.parser.alter_parser import typed_actions
from replicator.ddl.parser.statement import ParsedStatement
from replicator.ddl.rewrite.constraint_names import renamed_checks, without_names
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import ErrorCode, error_code
from replicator.mysql.names import TableName, folded
from replicator.schema.effects.check_constraints import form_of
from replicator.schema.structure.foreign_keys import declared_keys
from replicator.schema.structure.structure import Table

_REFUSALS = frozenset(
    {
        ER.CANT_CREATE_TABLE,
        ErrorCode.ER_FK_FAIL_ADD_SYSTEM,
        ErrorCode.ER_FK_DUP_NAME,
        ErrorCode.ER_DUP_CONSTRAINT_NAME,
    }
)
"""The errors for a name in use: two of MariaDB, which also have other causes, and MySQL's."""

_OTHERS = """
SELECT CONSTRAINT_TYPE, CONSTRAINT_NAME FROM information_schema.TABLE_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME <> %s AND CONSTRAINT_TYPE IN ('FOREIGN KEY', 'CHECK')
"""

log = structlog.get_logger()


async def execute_named(
    session: Connection,
    target: TableName,
    statement: ParsedStatement,
    *,
    patience: float | None = None,
) -> None:
    """Execute a statement; if other tables have a constraint's name, the server chooses another.

    `patience`: seconds that the statement may take; None for the connection's limit. Raises
    pymysql.err.MySQLError.
    """
    try:
        await session.execute(statement.sql, patience=patience)
    except pymysql.err.MySQLError as error:
        if error_code(error) not in _REFUSALS:
            raise
        taken: dict[str, set[str]] = {"FOREIGN KEY": set(), "CHECK": set()}
        for kind, name in await session.fetch(_OTHERS, tuple(target)):
            taken[kind].add(folded(str(name)))
        unnamed = without_names(statement, taken["FOREIGN KEY"], taken["CHECK"])
        if unnamed == statement.sql:
            raise
        log.info("ddl.key-name-taken", target=str(target), statement=statement.sql[:2000])
        await session.execute(unnamed, patience=patience)


def own_clash(statement: ParsedStatement, code: int) -> bool:
    """Return whether a statement was refused for a foreign key whose name its own table has.

    A key with the name of a dropped one can only be added by a second statement in MariaDB, and in
    MySQL if it copies the table. With ``foreign_key_checks=0``, MariaDB numbers a key without a
    name from 1 if the statement also adds a column (seen on 10.11 and 11.8). A rehearsal does not
    show this, because its copy has no foreign keys.
    """
    gone = {
        folded(action.name)
        for action in typed_actions(statement)
        if isinstance(action, DropConstraint) and action.kind in ("FOREIGN KEY", "CONSTRAINT")
    }
    added = {folded(key.name or key.index) for key in declared_keys(statement)}
    if code == ErrorCode.ER_FK_FAIL_ADD_SYSTEM and "" in added:
        return True
    return code in _REFUSALS and not gone.isdisjoint(added)


def with_present_checks(statement: ParsedStatement, before: Table, target: Table) -> str:
    """Return a statement that drops CHECK constraints by their names on the target.

    Args:
        before: structure of the shard before the statement.
        target: structure of the target.
    """
    there = {folded(check.name) for check in target.definition.checks}
    by_form = {form_of(check.text): check.name for check in target.definition.checks}
    names = {
        folded(check.name): by_form[form]
        for check in before.definition.checks
        if folded(check.name) not in there and (form := form_of(check.text)) in by_form
    }
    return renamed_checks(statement, names) if names else statement.sql
