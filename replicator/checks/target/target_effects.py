"""Finds other causes of changes to rows of the targets: triggers, events, TTLs and foreign keys.

A trigger fires for the rows that the task writes, an event runs whenever it is due, TiDB deletes
rows whose time to live (TTL) is over, and a foreign key with an action changes rows when somebody
changes their parent. Each makes a target differ from its shards without a statement of the task. So
every start checks for them, and a running task from time to time: anybody can add one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import pymysql.err

from replicator.checks.check_items import TARGET_CASCADES, TARGET_EVENTS, TARGET_TRIGGERS
from replicator.checks.checked_task import TaskToCheck
from replicator.checks.connecting import account_of
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.target.target_rights import TARGET_RIGHTS, targets_of
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.mysql.errors import (
    MISSING_PRIVILEGE,
    NO_SUCH_TABLE,
    error_code,
    error_text,
)
from replicator.mysql.names import TableName, folded, quote
from replicator.mysql.server.privileges import ANY_TABLE, held_privileges

_PLACE = CheckedPart("target")
_TRIGGERS_SQL = """
SELECT EVENT_OBJECT_TABLE, TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS
WHERE EVENT_OBJECT_SCHEMA = %s ORDER BY 1, 2, 3
"""
_EVENTS_SQL = """
SELECT EVENT_SCHEMA, EVENT_NAME, EVENT_DEFINITION FROM information_schema.EVENTS
WHERE STATUS = 'ENABLED' ORDER BY 1, 2
"""
_CASCADES_SQL = """
SELECT TABLE_NAME, CONSTRAINT_NAME, UNIQUE_CONSTRAINT_SCHEMA, REFERENCED_TABLE_NAME
FROM information_schema.REFERENTIAL_CONSTRAINTS
WHERE CONSTRAINT_SCHEMA = %s AND (DELETE_RULE NOT IN ('RESTRICT', 'NO ACTION')
 OR UPDATE_RULE NOT IN ('RESTRICT', 'NO ACTION')) ORDER BY 1, 2
"""
_RUNS_OTHERS = re.compile(r"\b(?:call|execute)\b", re.IGNORECASE)
"""An event with one of these runs statements that its text does not show."""
_TTL = re.compile(r"TTL_ENABLE='ON'")
"""TiDB shows this in a comment of CREATE TABLE, after the TTL itself (TiDB's "Time to Live")."""


@dataclass(frozen=True, slots=True)
class TargetEffect:
    """A possible cause of changes to rows of targets, with the targets and the failed check."""

    targets: tuple[TableName, ...]
    result: CheckResult


async def check_target_effects(task: TaskToCheck) -> list[CheckResult]:
    """Find causes of changes to rows of the task's targets. Raises DatabaseUnavailableError."""
    targets: set[TableName] = set()
    for source in task.sources:
        targets |= await targets_of(source)
    connection = Connection(task.target.address)
    try:
        effects, unseen = await effects_on(connection, targets)
    except pymysql.err.MySQLError as error:
        return [
            _PLACE.failed(
                TARGET_TRIGGERS,
                f"the check can't read triggers, events and foreign keys of the target: {error}",
                "Look at the target's error log, then run the check again",
            )
        ]
    finally:
        connection.close()
    return unseen + [effect.result for effect in effects]


async def effects_on(
    connection: Connection, targets: Iterable[TableName], written: Iterable[TableName] = ()
) -> tuple[list[TargetEffect], list[CheckResult]]:
    """Return possible causes of changes to rows of targets, and causes that may be hidden.

    Args:
        written: further tables whose rows only the task changes.

    Raises DatabaseUnavailableError and the server's error.
    """
    by_schema: dict[str, dict[str, TableName]] = {}
    for name in targets:
        by_schema.setdefault(name.schema, {})[folded(name.table)] = name
    parents: dict[str, set[str]] = {}
    for name in (*(n for tables in by_schema.values() for n in tables.values()), *written):
        parents.setdefault(name.schema, set()).add(folded(name.table))
    found: list[TargetEffect] = []
    unseen: list[CheckResult] = []
    tidb = await _is_tidb(connection)
    for schema, tables in sorted(by_schema.items()):
        found += await _triggers(connection, schema, tables)
        found += await _cascades(connection, schema, tables, parents)
        if tidb:
            found += await _times_to_live(connection, tables, unseen)
        else:
            unseen += await _unseen(connection, schema)
    return found + await _events(connection, by_schema), unseen


async def _is_tidb(connection: Connection) -> bool:
    return "TiDB" in str((await connection.fetch("SELECT VERSION()"))[0][0])


async def _unseen(connection: Connection, schema: str) -> list[CheckResult]:
    """Return warnings.

    A server shows triggers and events only to accounts with these privileges.
    """
    held = await held_privileges(connection, schema, ANY_TABLE)
    account = await account_of(connection)
    unseen = f"of {schema}: they can change rows of the targets unnoticed"
    results = []
    if "TRIGGER" not in held:
        grant = account.grant("TRIGGER", schema)
        finding = f"the account may not see triggers {unseen}"
        results.append(_PLACE.warning("target_triggers", finding, grant))
    if "EVENT" not in held:
        grant = account.grant("EVENT", schema)
        finding = f"the account can't see events {unseen}"
        results.append(_PLACE.warning("target_events", finding, grant))
    return results


async def _triggers(
    connection: Connection, schema: str, tables: Mapping[str, TableName]
) -> list[TargetEffect]:
    found: dict[TableName, list[TableName]] = {}
    for table, trigger_schema, trigger in await connection.fetch(_TRIGGERS_SQL, (schema,)):
        if (name := tables.get(folded(str(table)))) is not None:
            found.setdefault(name, []).append(TableName(str(trigger_schema), str(trigger)))
    return [
        _effect(
            (name,),
            TARGET_TRIGGERS,
            f"{name} has triggers, which fire when the task writes rows: {_listed(names)}."
            " They can change these rows, or write rows that no shard has",
            " ".join(f"DROP TRIGGER {trigger.quoted};" for trigger in names),
            _ignore(TARGET_TRIGGERS, "they change nothing that the shards have"),
        )
        for name, names in found.items()
    ]


async def _cascades(
    connection: Connection,
    schema: str,
    tables: Mapping[str, TableName],
    parents: Mapping[str, AbstractSet[str]],
) -> list[TargetEffect]:
    """Return foreign keys through which others' changes of a parent change its children.

    The task's own changes do not, since its sessions have ``foreign_key_checks=0``.
    """
    results = []
    for table, constraint, parent_schema, parent in await connection.fetch(
        _CASCADES_SQL, (schema,)
    ):
        name = tables.get(folded(str(table)))
        ours = folded(str(parent)) in parents.get(str(parent_schema), ())
        if name is None or ours:
            continue
        other = TableName(str(parent_schema), str(parent))
        drop = f"ALTER TABLE {name.quoted} DROP FOREIGN KEY {quote(str(constraint))};"
        results.append(
            _effect(
                (name,),
                TARGET_CASCADES,
                f"{name} has the foreign key {constraint} with an action: when a client changes"
                f" or deletes a row of {other}, which is no target of the task, rows of {name}"
                " change",
                drop,
                _ignore(TARGET_CASCADES, f"nothing changes keys of {other} or deletes its rows"),
            )
        )
    return results


async def _events(
    connection: Connection, targets: Mapping[str, Mapping[str, TableName]]
) -> list[TargetEffect]:
    results = []
    for schema, event, body in await connection.fetch(_EVENTS_SQL):
        text = str(body or "")
        named = _named_in(text, str(schema), targets)
        runs_others = str(schema) in targets and _RUNS_OTHERS.search(text) is not None
        if not named and not runs_others:
            continue
        name = TableName(str(schema), str(event))
        what = f"names {_listed(named)}" if named else "calls what its text does not show"
        results.append(
            _effect(
                tuple(named) or tuple(targets[str(schema)].values()),
                TARGET_EVENTS,
                f"the target has the event {name}, which {what}: it can change rows of the targets"
                " that no shard has changed",
                f"DROP EVENT {name.quoted}; or ALTER EVENT {name.quoted} DISABLE;",
                _ignore(TARGET_EVENTS, "it changes nothing that the shards have"),
            )
        )
    return results


async def _times_to_live(
    connection: Connection, tables: Mapping[str, TableName], unseen: list[CheckResult]
) -> list[TargetEffect]:
    """Return tables with a TTL; add the tables that the server does not show to ``unseen``."""
    results = []
    for name in tables.values():
        try:
            shown = await connection.fetch(f"SHOW CREATE TABLE {name.quoted}")
        except pymysql.err.MySQLError as error:
            if error_code(error) in NO_SUCH_TABLE:
                continue
            if error_code(error) not in MISSING_PRIVILEGE:
                raise
            grant = (await account_of(connection)).grant(TARGET_RIGHTS, name.schema)
            finding = f"the account can't see whether {name} has a TTL: {error_text(error)}"
            unseen.append(_PLACE.warning("target_events", finding, grant))
            continue
        if _TTL.search(str(shown[0][1])) is not None:
            results.append(
                _effect(
                    (name,),
                    TARGET_EVENTS,
                    f"{name} has a TTL: the target's server deletes rows that are in the shards",
                    f"ALTER TABLE {name.quoted} TTL_ENABLE = 'OFF';",
                    _ignore(TARGET_EVENTS, "the target is to have fewer rows than the shards"),
                )
            )
    return results


def _effect(
    targets: tuple[TableName, ...], check: str, finding: str, *remedies: str
) -> TargetEffect:
    return TargetEffect(targets, _PLACE.failed(check, finding, *remedies))


def _named_in(
    text: str, schema: str, targets: Mapping[str, Mapping[str, TableName]]
) -> list[TableName]:
    """Return the targets whose names occur as words in the text of an event in ``schema``.

    For targets in other schemas, the schema's name must occur, too. A name with other characters
    counts anywhere in the text.
    """
    words = {folded(word) for word in re.findall(r"[\w$]+", text)}
    plain = folded(text)
    return sorted(
        name
        for tables in targets.values()
        for key, name in tables.items()
        if _has(key, words, plain)
        and (name.schema == schema or _has(folded(name.schema), words, plain))
    )


def _has(name: str, words: AbstractSet[str], text: str) -> bool:
    return name in words if re.fullmatch(r"[\w$]+", name) else name in text


def _listed(names: Iterable[TableName]) -> str:
    return ", ".join(map(str, names))


def _ignore(check: str, condition: str) -> str:
    return f"If {condition}: ignore-checking-items: [{check}] in the task file"
