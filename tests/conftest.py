"""Private database servers for tests: started when a test first asks, gone after the last one."""

from __future__ import annotations

import gc
import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from replicator.sandbox.keeper import ServerUnavailableError
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer
from tests.support import one_kind
from tests.support.case_ids import case_id
from tests.support.long_tests import long_tests
from tests.support.servers.galera import GaleraCluster
from tests.support.servers.mariadb11 import MariaDB11Server
from tests.support.servers.matrix import MatrixReporter, is_needed, properties_of, refusal
from tests.support.servers.mysql import MySQLServer
from tests.support.servers.mysql56 import GTID_OPTIONS, MySQL56Server
from tests.support.servers.tidb import TiDBServer

if TYPE_CHECKING:
    from pyspark import SparkContext

    from tests.support.spark.cluster import SparkCluster

# How long an example takes says more about the machine than about the code.
settings.register_profile("untimed", deadline=None)
settings.register_profile("few", deadline=None, max_examples=10)
settings.load_profile("untimed")

StartServer = Callable[..., DatabaseServer]

TARGETS: Mapping[str, type[DatabaseServer]] = {
    "mariadb": MariaDBServer,
    "mariadb11": MariaDB11Server,
    "mysql": MySQLServer,
    "tidb": TiDBServer,
}
CHOSEN_TARGET = os.environ.get("REPLICATOR_TEST_TARGET", "")
"""The kind of target that all tests use which write to one, and no others are run then."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--matrix", action="store_true", help="every source into every target")
    parser.addoption("--one-kind", action="store_true", help="each case with one kind of server")
    parser.addoption(
        "--sample", action="store_true", help="the same, and one of the long tests of each file"
    )
    parser.addoption("--rounds", type=int, default=1, help="how often to run each test")
    parser.addoption("--matrix-report", type=Path, help="where to count what became of each pair")


def pytest_configure(config: pytest.Config) -> None:
    path: Path | None = config.getoption("--matrix-report")
    # With several processes, the one that collects their reports.
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(MatrixReporter(path))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Without a choice tests use MariaDB, and those with the mark also TiDB.

    With ``also_tidb(slow=True)`` that is a slow test. ``--rounds`` repeats each test.
    """
    if (rounds := metafunc.config.getoption("--rounds")) > 1:
        metafunc.fixturenames.append("round_number")
        metafunc.parametrize("round_number", range(1, rounds + 1))
    if "target_server" in metafunc.fixturenames and not CHOSEN_TARGET:
        marker = metafunc.definition.get_closest_marker("also_tidb")
        if marker is not None:
            marks = [pytest.mark.slow] if marker.kwargs.get("slow") else []
            tidb = pytest.param("tidb", marks=marks)
            metafunc.parametrize("target_server", ["mariadb", tidb], indirect=True)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Cases are named after what they show."""
    return case_id(val, argname)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With a target chosen, leave out the tests that do not write to one.

    Without a choice, leave out what a mark ``also_tidb(only=…)`` does not name. With ``--matrix``,
    leave out all but the matrix. With ``--one-kind``, leave out slow tests, and run the others with
    one kind of server and in one mode. With ``--sample`` of the long tests of a file, run only one.
    """
    every = config.getoption("--matrix")

    def concerned(item: pytest.Item) -> bool:
        chosen = uses_target(item) if CHOSEN_TARGET else is_selected(item)
        return chosen and is_needed(item, every=every, target=CHOSEN_TARGET)

    kept = [item for item in items if concerned(item)]
    sample = config.getoption("--sample")
    if sample or config.getoption("--one-kind"):
        long = long_tests() if sample else frozenset()
        fast = [item for item in kept if not item.get_closest_marker("slow")]
        keys = (one_kind.key_of(item, long) for item in fast)
        kept = one_kind.chosen(zip(fast, keys, strict=True), one_kind.commit())
    left_out = set(items).difference(kept)
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which versions there were of the servers whose versions move."""
    for package in (MySQLServer.package, MariaDB11Server.package):
        version = package.fetched_version()
        if version is not None:
            terminalreporter.write_line(f"{package.name} of {package.suite}: {version}")


def uses_target(item: pytest.Item) -> bool:
    return "target_kind" in getattr(item, "fixturenames", ())


def is_selected(item: pytest.Item) -> bool:
    """Whether it writes to MariaDB, or to TiDB with the parameter that its mark names, if any."""
    marker = item.get_closest_marker("also_tidb")
    if marker is None or "only" not in marker.kwargs or not isinstance(item, pytest.Function):
        return True
    parameters = item.callspec.params
    return parameters["target_server"] != "tidb" or marker.kwargs["only"] in parameters.values()


def started(server: DatabaseServer) -> DatabaseServer:
    """Start it; where its program can't be had the test is skipped, but in CI it fails.

    Where CI has no TiDB the tests that need it are skipped, too.
    """
    try:
        server.start()
    except ServerUnavailableError as error:
        # TiDB is built where there is a Go toolchain, which nobody has to have.
        if os.environ.get("CI") and not isinstance(server, TiDBServer):
            raise
        pytest.skip(str(error))
    return server


@pytest.fixture(autouse=True)
def _faults_alert(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each fault that a test of a remedy makes raises its metric and its alert."""
    events = {mark.args[0] for mark in request.node.iter_markers("remedy")}
    if not events:
        yield
        return
    from tests.support.tasks.fault_alerts import faults_alert

    # Of a test with parameters, or of one of minutes, not every case makes every fault.
    sure = not hasattr(request.node, "callspec") and not request.node.get_closest_marker("slow")
    with faults_alert(*events, sure=sure):
        yield


@pytest.fixture(scope="session")
def mariadb_source() -> Iterator[DatabaseServer]:
    """A MariaDB whose binlog has no column names, signedness or labels."""
    with started(MariaDBServer({"binlog_row_metadata": "NO_LOG"})) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_source_full() -> Iterator[DatabaseServer]:
    """A MariaDB whose binlog has full row metadata."""
    with started(MariaDBServer({"binlog_row_metadata": "FULL"})) as server:
        yield server


@pytest.fixture(scope="session")
def mysql56_source() -> Iterator[DatabaseServer]:
    """A MySQL 5.6 with GTIDs."""
    with started(MySQL56Server(GTID_OPTIONS)) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_source() -> Iterator[DatabaseServer]:
    """A MySQL 9 or newer, with GTIDs."""
    with started(MySQLServer()) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb11_source() -> Iterator[DatabaseServer]:
    """A MariaDB 11."""
    with started(MariaDB11Server()) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_target() -> Iterator[DatabaseServer]:
    """A MariaDB to write to."""
    with started(MariaDBServer()) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb11_target() -> Iterator[DatabaseServer]:
    """A MariaDB 11 to write to."""
    with started(MariaDB11Server()) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_target() -> Iterator[DatabaseServer]:
    """A MySQL 9 or newer to write to."""
    with started(MySQLServer({"local_infile": "ON"})) as server:
        yield server


@pytest.fixture(scope="session")
def tidb_target() -> Iterator[DatabaseServer]:
    """A TiDB to write to."""
    with started(TiDBServer()) as server:
        yield server


@pytest.fixture(scope="session")
def galera() -> Iterator[GaleraCluster]:
    """Three nodes of a Galera cluster, to read from and to write to.

    A test that changes an option of a node, or ends one, leaves it as it was.
    """
    cluster = GaleraCluster()
    try:
        cluster.start()
    except ServerUnavailableError as error:
        pytest.skip(str(error))
    with cluster:
        yield cluster


@pytest.fixture(scope="session")
def target_kind() -> str:
    """The kind of target that is chosen, else MariaDB."""
    return CHOSEN_TARGET or "mariadb"


@pytest.fixture
def target_server(request: pytest.FixtureRequest, target_kind: str) -> DatabaseServer:
    """The server to write to, of the kind that is chosen."""
    kind = getattr(request, "param", target_kind)
    refused = request.node.get_closest_marker("not_on_tidb")
    if kind == "tidb" and refused is not None:
        pytest.skip(f"TiDB: {refused.args[0]}")
    server: DatabaseServer = request.getfixturevalue(f"{kind}_target")
    return server


@pytest.fixture(
    params=[
        "mariadb_source",
        pytest.param("mariadb_source_full", marks=pytest.mark.slow),
        pytest.param("mysql56_source", marks=pytest.mark.slow),
    ]
)
def source(request: pytest.FixtureRequest) -> DatabaseServer:
    """Each kind of source in turn; but for one they are slow tests.

    Where it matters, a test names the three itself, and has all of them in every run. Those of the
    matrix have other kinds, too, and in each field all of them in every run.
    """
    server: DatabaseServer = request.getfixturevalue(request.param)
    return server


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Turn the garbage collector on again: the `run` command turns it off while it loads modules.

    Without it, what a test leaves open would fail another one, or none.
    """
    yield
    gc.unfreeze()
    gc.enable()


@pytest.fixture(autouse=True)
def matrix_cell(request: pytest.FixtureRequest) -> None:
    """Note which pair of the matrix a test is run with; leave out what can't be."""
    marker = request.node.get_closest_marker("matrix")
    if marker is None:
        return
    pair = request.node.callspec.params["source"], request.node.callspec.params["target_server"]
    cell = (marker.args[0], *pair)
    request.node.user_properties.append(properties_of(cell, {}))
    if (reason := refusal(request.node, *pair)) is not None:
        pytest.skip(reason)
    servers = [request.getfixturevalue(name) for name in ("source", "target_server")]
    versions = {
        kind: str(server.execute("SELECT VERSION()")[0][0])
        for kind, server in zip(pair, servers, strict=True)
    }
    request.node.user_properties[-1] = properties_of(cell, versions)


@pytest.fixture
def start_server() -> Iterator[StartServer]:
    """Starts further servers, ``start_server(MariaDBServer, {...})``, for one test."""
    with ExitStack() as servers:

        def start(
            kind: type[DatabaseServer], options: Mapping[str, str | None] | None = None
        ) -> DatabaseServer:
            return servers.enter_context(started(kind(options)))

        yield start


@pytest.fixture
def database_name() -> str:
    """A name that no other test uses, since tests share servers; nothing has that name yet."""
    return f"t_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkContext]:
    """Spark for all tests that run a task in this process: starting it takes seconds."""
    from replicator.pipeline.session import close_spark, spark_context, warm_up

    context = spark_context("local[2]", {}, "tests")
    warm_up(context)
    yield context
    close_spark(context)


@pytest.fixture(scope="session")
def spark_cluster() -> Iterator[SparkCluster]:
    """A Spark cluster of two workers: ``shards.task(spark=spark_cluster.settings())``."""
    from tests.support.spark.cluster import SparkCluster

    with SparkCluster() as cluster:
        yield cluster
