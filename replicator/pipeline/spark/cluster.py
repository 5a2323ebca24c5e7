"""Executors on other machines: their settings, their modules, and a check of both.

Our package is sent to them as an archive, since they share no files with the driver. Executors
unpack it into their working folder (`SparkContext.addArchive`) before the first task, and so before
their first Python process; a relative ``PYTHONPATH`` names this folder. Python can't cache byte
code of a package in a zip file, so the archive is unpacked.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import socket
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from replicator.kernels.loop_folder import UNPACKED
from replicator.memory import worker_environment
from replicator.pipeline.spark.cluster_state import executor_count
from replicator.pipeline.spark.json_results import from_json, to_json
from replicator.pipeline.spark.python_job import run_in_tasks


def pack(folder: Path) -> Path:
    """Write the archive into a folder; return its path.

    The name contains a digest, so that an executor never uses an older archive that it has kept.
    """
    package = Path(__file__).parents[2]
    files = {
        str(path.relative_to(package.parent)): path.read_bytes()
        for path in sorted(package.rglob("*.py"))
    }
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)} ".encode())
        digest.update(content)
    archive = folder / f"replicator-{digest.hexdigest()[:16]}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in files.items():
            target.writestr(name, content)
    return archive


PATIENCE_SETTING = "spark.scheduler.maxRegisteredResourcesWaitingTime"
AUTHENTICATE = "spark.authenticate"
"""Whether Spark's processes authenticate each other by a secret. On YARN, Kubernetes and this host,
Spark generates it; a standalone cluster has its own."""

LOOK_SECONDS = 0.05

_ENCRYPTION = {
    # For the traffic between driver and executors, and the files of executors.
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}

_PYTHONPATH = "spark.executorEnv.PYTHONPATH"
_SHOWN = 1500


class ClusterError(Exception):
    """The cluster can't run the task as it is; the error has ``remedies``.

    ``lasting``: whether waiting will not help.
    """

    def __init__(self, message: str, *remedies: str, lasting: bool) -> None:
        super().__init__(message)
        self.remedies = remedies
        self.lasting = lasting


def is_local(master: str) -> bool:
    """Return whether a Spark master URL names this process."""
    return re.match(r"local($|\[)", master) is not None


def cluster_settings(conf: Mapping[str, str], java_options: str) -> dict[str, str]:
    """Return settings for a cluster, which replace the common ones and those of ``conf``."""
    wanted = conf.get(_PYTHONPATH, "")
    return {
        # The path is relative to the working folder of an executor.
        _PYTHONPATH: os.pathsep.join(filter(None, [UNPACKED, wanted])),
        "spark.executor.extraJavaOptions": " ".join(
            filter(None, [java_options, conf.get("spark.executor.extraJavaOptions", "")])
        ),
        **{f"spark.executorEnv.{name}": value for name, value in worker_environment().items()},
        PATIENCE_SETTING: conf.get(PATIENCE_SETTING, "60s"),
        **{name: conf.get(name, value) for name, value in _ENCRYPTION.items()},
    }


def turned_away(error: BaseException) -> ClusterError | None:
    """Return the cause if Spark could not start because the cluster refused it."""
    if not isinstance(error, Py4JJavaError):
        return None
    if "secret key must be specified" in str(error):
        return ClusterError(
            "spark.conf has no secret of this cluster, and Spark needs one",
            "set spark.authenticate: true and one spark.authenticate.secret at the master and all"
            " workers, and give spark.conf, or spark-defaults.conf of this host, the same"
            " spark.authenticate.secret (docs/how-to/cluster.md)",
            'only in a closed network: spark.conf: spark.authenticate: "false"; anybody who'
            " reaches the cluster then reads the accounts and the rows, and runs programs as its"
            " user",
            lasting=True,
        )
    return _not_wanted() if "stopped SparkContext" in str(error) else None


def _not_wanted() -> ClusterError:
    return ClusterError(
        "the cluster has not accepted the application, or has ended it at once",
        "spark.conf must have the same spark.authenticate.secret and spark.network settings as"
        " the master and the workers; where these have no spark.authenticate, set it there, or"
        ' spark.authenticate: "false" in spark.conf (docs/how-to/cluster.md)',
        "look for the reason in the logs of master and workers: Spark of another version than"
        " here, executors that do not start, or that can't reach spark.driver.host",
        lasting=False,
    )


def cut_off(error: BaseException) -> ClusterError | None:
    """Return the cause if the tasks of a worker pool are missing because they could not connect."""
    unreached = re.search(r"DriverUnreachableError: ([^\n]*)", str(error))
    if unreached is None:
        return None
    return ClusterError(
        f"{unreached[1]}, though Spark reaches it",
        "let the executors connect to this host: batches use a separate port, which"
        " spark.replicator.port in spark.conf sets (docs/how-to/cluster.md)",
        "if the address does not belong to this machine (a container, a NAT), set"
        " spark.driver.bindAddress: 0.0.0.0",
        lasting=True,
    )


def ship_package(context: SparkContext, folder: Path) -> None:
    """Have every executor fetch our package before its first task."""
    context.addArchive(f"{pack(folder)}#{UNPACKED}")


def examine_executors(spark: SparkContext) -> None:
    """Wait for executors, and check that each has everything that the task needs.

    Raises ClusterError.
    """
    _await_executors(spark)
    problems = sorted({problem for finding in _survey(spark) for problem in finding})
    if problems:
        raise ClusterError(
            "executors lack what they need: " + "; ".join(problems),
            "install the packages that docs/how-to/cluster.md lists for the Python of the executors"
            f" ({spark.pythonExec}), in versions like those of this host, or name another"
            " Python in spark.conf: spark.pyspark.python",
            "or ship them with the task: spark.conf: spark.archives (docs/how-to/cluster.md)",
            lasting=True,
        )


def _survey(spark: SparkContext) -> list[tuple[str, ...]]:
    """Return the missing parts of each executor.

    Raises ClusterError if no Python function can run.
    """
    places = max(spark.defaultParallelism, 1)
    try:
        found = run_in_tasks(spark, places, _look, None)
    except (PySparkException, Py4JJavaError) as error:
        raise _of_python(spark, str(error)) from error
    return [from_json(tuple[str, ...], lacks) for lacks in found]


def _look(_: None, __: int) -> Iterator[bytes]:
    yield to_json(look_around())


def _await_executors(context: SparkContext) -> None:
    seconds = context._jsc.sc().conf().getTimeAsSeconds(PATIENCE_SETTING)
    deadline = time.monotonic() + seconds
    # Spark's events can't be received over Py4J, so poll.
    while executor_count(context) < 1:
        if context._jsc.sc().isStopped():
            # The cluster refused the application just after Spark reported it as started.
            raise _not_wanted()
        if time.monotonic() > deadline:
            raise ClusterError(
                f"the cluster gave no executor within {seconds} s",
                "look on the cluster's page whether workers are alive and have free cores and"
                " memory: spark.cores.max, spark.executor.cores and spark.executor.memory in"
                " spark.conf ask for less",
                "executors that end at once can't reach this process: spark.driver.host must name"
                " an address of this host that the workers reach (docs/how-to/cluster.md)",
                "where waiting for resources is usual, let it wait for longer:"
                f" spark.conf: {PATIENCE_SETTING}: 600s",
                lasting=False,
            )
        time.sleep(LOOK_SECONDS)


def _of_python(context: SparkContext, text: str) -> ClusterError:
    """Return the cause if no Python function could run at all."""
    here = "{}.{}".format(*sys.version_info[:2])
    name = (
        f"name a Python {here} that the executors have in spark.conf: spark.pyspark.python,"
        " or ship one by spark.archives (docs/how-to/cluster.md)"
    )
    version = re.search(r"Python in worker[^\n]*", text)
    if version:
        return ClusterError(
            f"the executors' Python is not the {here} of this process: {version[0]}",
            name,
            lasting=True,
        )
    program = re.search(r'Cannot run program "([^"]*)"[^\n]*', text)
    if program:
        return ClusterError(
            f"an executor has no Python at {program[1]}: {program[0]}", name, lasting=True
        )
    return ClusterError(
        f"the executors can't run Python ({context.pythonExec}): {_gist(text)}",
        name,
        "look at the log (stderr) of an executor for more",
        lasting=True,
    )


def _gist(text: str) -> str:
    """Return the last line of Python's output, which names the error, or the end of the text."""
    found = re.search(r"Error from python worker:\s*(.*?)PYTHONPATH was", text, re.DOTALL)
    return found[1].strip().splitlines()[-1].strip() if found else text.strip()[-_SHOWN:]


NEEDED = ("pyarrow", "numpy", "numba", "pymysql", "pymysqlreplication")
"""The modules that executors must have installed; `docs/how-to/cluster.md` names the packages."""

OURS = "replicator.pipeline.apply.job"


def look_around() -> tuple[str, ...]:
    """Try to import the modules; return the missing ones, each with the host."""
    host = socket.gethostname()
    return tuple(f"on {host}: {lack}" for lack in _missing_modules())


def _missing_modules() -> Iterator[str]:
    missing = False
    for name in (*NEEDED, OURS):
        try:
            importlib.import_module(name)
        except ImportError as error:
            # Our package can't be imported without the others, so its error adds nothing.
            if name != OURS or not missing:
                yield str(error)
            missing = True
