"""The checks that a task must pass when its process starts, before it writes anything."""

from __future__ import annotations

import pymysql.err
import structlog

from actors.faults import TransientError
from actors.task.check_scope import task_to_check
from actors.task_setup import address_of
from config.models import Task
from replicator.checks import CheckResult, run_checks
from replicator.checks.items import CONNECTION, SPARK_MASTER
from replicator.mysql.connection import Connection, DatabaseAddress, DatabaseUnavailableError

log = structlog.get_logger()


class PrecheckError(Exception):
    """The task can't run as things are. ``results`` are those of all checks, passed ones too."""

    def __init__(self, results: list[CheckResult]) -> None:
        self.results = results
        self.failed = [result for result in results if result.state == "failed"]
        told = (f"{result.where}: {result.name}: {result.finding}" for result in self.failed)
        super().__init__("the task can't run: " + "; ".join(told))


async def precheck(task: Task) -> None:
    """Raise PrecheckError when a check fails, DatabaseUnavailableError or TransientError to
    try again later.

    A task that has a checkpoint has run before: it waits for servers that are away, and for a
    Spark master. A source that cannot be reached by a new task is more likely a mistake in the
    task file, and a failed check. The target is waited for in any case, since it has the
    checkpoint.
    """
    admitted = await _lets_in(address_of(task.target_database))
    found = await task_to_check(task)
    if found.resuming:
        for source in found.sources:
            admitted = await _lets_in(source.address) and admitted
    results = await run_checks(found, frozenset(task.ignore_checking_items))
    lost = [r.finding for r in results if r.state == "failed" and r.name == CONNECTION]
    if lost and admitted and found.resuming:
        raise DatabaseUnavailableError("; ".join(lost))
    for result in results:
        if found.resuming and result.state == "failed" and result.name == SPARK_MASTER:
            raise TransientError(result.finding)
    if any(result.state == "failed" for result in results):
        raise PrecheckError(results)
    for result in results:
        if result.state == "warning":
            log.warning(
                "check.warning",
                check=result.name,
                where=result.where,
                finding=result.finding,
                ways_out=result.ways_out,
            )


async def _lets_in(address: DatabaseAddress) -> bool:
    """Whether a server takes the login. Raises DatabaseUnavailableError when it is away."""
    connection = Connection(address)
    try:
        await connection.fetch("SELECT 1")
    except pymysql.err.MySQLError:
        # Refused: its own check says how to mend that.
        return False
    finally:
        connection.close()
    return True
