"""Tasks to check on real servers, and what the checks found."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from replicator.checks.checked_task import SourceToCheck, TargetToCheck, TaskToCheck
from replicator.checks.result import CheckResult
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.routing.allow_list import AllowList
from replicator.routing.routes import Router, RouteRule, Routes
from replicator.sandbox.server import DatabaseServer

OUR_ID = 4_000_001


def address(server: DatabaseServer, user: str = "root", password: str = "") -> DatabaseAddress:
    return DatabaseAddress(server.host, server.port, user, password)


def routed(
    where: DatabaseAddress, *, schema: str = "shop", table: str = "t*", source_id: str = "a"
) -> SourceToCheck:
    rules = [RouteRule("merge", schema, table, "merged", "t")]
    routes = Routes(rules, case_sensitive=False)
    allow = AllowList(do_dbs=[schema], case_sensitive=False)
    return SourceToCheck(source_id, where, Router(allow, routes), routes, OUR_ID)


def task(*sources: SourceToCheck, target: DatabaseServer, **options: Any) -> TaskToCheck:
    return TaskToCheck(sources, TargetToCheck(address(target), "dm_meta", "merge"), **options)


def failures(results: list[CheckResult]) -> set[str]:
    assert all(r.remedies for r in results if r.state != "passed")
    return {r.name for r in results if r.state == "failed"}


def one(results: list[CheckResult], name: str, state: str) -> CheckResult:
    found = [r for r in results if r.name == name and r.state == state]
    assert len(found) == 1, results
    return found[0]


def executions(server: DatabaseServer) -> int:
    """How many prepared statements the server has executed."""
    ((_, count),) = server.execute("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")
    return int(str(count))


@contextmanager
def global_setting(server: DatabaseServer, name: str, value: str) -> Iterator[None]:
    ((before,),) = server.execute(f"SELECT @@GLOBAL.{name}")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        back = before if isinstance(before, int) else f"'{before}'"
        server.execute(f"SET GLOBAL {name} = {back}")


def purge(server: DatabaseServer) -> str:
    """Remove all binlogs but the last and return its name.

    MariaDB keeps a file without a word until its storage engine has let go of it, which no event
    tells.
    """
    deadline = time.monotonic() + 20
    while True:
        logs = server.execute("SHOW BINARY LOGS")
        if len(logs) == 1:
            return str(logs[0][0])
        assert time.monotonic() < deadline, logs
        server.execute(f"PURGE BINARY LOGS TO '{logs[-1][0]}'")
        time.sleep(0.02)


_STATEMENT = re.compile(
    r"\b(?:SET GLOBAL|ALTER TABLE|CREATE (?:DATABASE|TABLE)|DROP TABLE|TRUNCATE TABLE|GRANT|SELECT"
    r"|UPDATE) [^;]*(?=;)"
)


def statements_of(result: CheckResult) -> list[str]:
    """The SQL statements that the remedies of a check contain."""
    found = [text for remedy in result.remedies for text in _STATEMENT.findall(remedy)]
    assert found, result
    return found


def options_of(result: CheckResult, number: str) -> dict[str, str | None]:
    """The lines for my.cnf that a remedy contains, with a number for its placeholder."""
    (remedy,) = result.remedies
    return dict(re.findall(r"(\w+)=([\w-]+)", re.sub("<[^>]*>", number, remedy)))
