"""Whether the master of a standalone Spark cluster answers.

Spark itself goes on trying for a minute before it says that none does. Whether executors have what
they need is found out by starting them (`replicator.pipeline.spark.cluster`).
"""

from __future__ import annotations

import anyio

from replicator.checks.check_items import SPARK_MASTER
from replicator.checks.result import CheckedPart, CheckResult

STANDALONE = "spark://"
CONNECT_SECONDS = 5.0


async def check_cluster(master: str) -> list[CheckResult]:
    """The result for a standalone master, of which one of several must answer; else none."""
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
