"""All checks of a task."""

from __future__ import annotations

from dataclasses import replace

import anyio

from replicator.checks.check_items import ALL, CONNECTION, SPARK_MASTER, unknown_items
from replicator.checks.checked_task import SourceToCheck, TaskToCheck
from replicator.checks.result import CheckedPart, CheckResult
from replicator.checks.schema.structures import SOURCES_AT_ONCE, check_structures
from replicator.checks.source.source_checks import check_source
from replicator.checks.target.target_checks import check_target, may_not_write
from replicator.checks.target.target_effects import check_target_effects
from replicator.checks.target.target_rights import check_target_schemas
from replicator.mysql.connection.asyncio_connection import DatabaseUnavailableError


async def run_checks(task: TaskToCheck, ignore: frozenset[str]) -> list[CheckResult]:
    """Check a task: first its sources, in their order, then target, cluster and structures.

    ``ignore``: names of `replicator.checks.check_items.CHECKS`; their results are left out, except
    for `connection`. With ``all``, nothing is checked. Servers that cannot be reached are results,
    not exceptions.
    """
    unknown = unknown_items(ignore)
    if ALL in ignore:
        return unknown
    by_source: dict[str, list[CheckResult]] = {}
    of_target: list[CheckResult] = []
    limit = anyio.CapacityLimiter(SOURCES_AT_ONCE)

    async def look_at_source(source: SourceToCheck) -> None:
        async with limit:
            by_source[source.source_id] = await check_source(source)

    async def look_at_target() -> None:
        of_target.extend(await check_target(task.target))

    async with anyio.create_task_group() as group:
        for source in task.sources:
            group.start_soon(look_at_source, source)
        group.start_soon(look_at_target)
    results = [result for source in task.sources for result in by_source[source.source_id]]
    results += of_target
    results += await check_cluster(task.spark_master)
    if _reachable(of_target):
        sources = tuple(s for s in task.sources if _reachable(by_source[s.source_id]))
        if may_not_write(of_target):
            task = replace(task, target=replace(task.target, writes_nothing=True))
        results += await _across(replace(task, sources=sources))
    left_out = ignore - {CONNECTION}
    return unknown + [result for result in results if result.name not in left_out]


async def _across(task: TaskToCheck) -> list[CheckResult]:
    results: list[CheckResult] = []
    try:
        if not task.target.writes_nothing:
            results += await check_target_schemas(task)
        results += await check_target_effects(task)
        results += await check_structures(task)
    except* DatabaseUnavailableError as group:
        results.append(
            CheckedPart("task").failed(
                CONNECTION,
                f"a server went away while structures were read: {group.exceptions[0]}",
                "Look at the server's error log, then run the check again",
            )
        )
    return results


def _reachable(results: list[CheckResult]) -> bool:
    return not any(r.name == CONNECTION and r.state == "failed" for r in results)


STANDALONE = "spark://"
CONNECT_SECONDS = 5.0


async def check_cluster(master: str) -> list[CheckResult]:
    """Return the result for standalone masters, one of which must answer; otherwise nothing.

    Spark itself would retry for a minute before it reports that none answers. Starting the
    executors shows whether they have all that they need (`replicator.pipeline.spark.cluster`).
    """
    if not master.startswith(STANDALONE):
        return []
    place = CheckedPart("task")
    refused = []
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        try:
            with anyio.fail_after(CONNECT_SECONDS):
                async with await anyio.connect_tcp(host, int(port)):
                    return [place.passed(SPARK_MASTER, f"{address} answers")]
        except ValueError:
            refused.append(f"{address} is not host:port")
        except TimeoutError:
            refused.append(f"{address} does not answer")
        except OSError as error:
            refused.append(f"{address}: {error.__cause__ or error}")
    return [
        place.failed(
            SPARK_MASTER,
            f"no Spark master can be reached: {'; '.join(refused)}",
            "Start the cluster's master, or correct spark.master; look for a firewall between"
            " this host and it. Without a cluster: spark: {master: 'local[*]'}",
        )
    ]
