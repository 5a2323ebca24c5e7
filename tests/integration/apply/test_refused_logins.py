"""What becomes of a batch whose executors the target does not let in."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark import SparkContext

from actors.errors.faults import FatalError
from actors.writing import job_runner
from actors.writing.job_runner import JobRunner
from replicator.downstream.meta.checkpoint import MetaStore
from replicator.downstream.meta.lease import Lease, this_process
from replicator.mysql.connection.asyncio_connection import Connection, DatabaseAddress
from replicator.mysql.connection.tls import Pem, Tls
from replicator.pipeline.apply.apply import apply_batch
from replicator.pipeline.apply.batch import ApplySettings, Batch, BatchResult
from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import DatabaseServer, give_to_server
from replicator.schema.registry.registry import SchemaRegistry
from tests.conftest import StartServer
from tests.support.servers.certificates import make_authority
from tests.support.streams.applying import Merge

TRUE, FALSE = make_authority("true"), make_authority("false")


@pytest.fixture
def target_server(start_server: StartServer) -> Iterator[DatabaseServer]:
    """One with TLS."""
    own = TRUE.sign("db", addresses=("127.0.0.1",))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cert.pem").write_text(own.certificate)
        (folder / "key.pem").write_text(own.key)
        give_to_server(folder)
        files = {f"ssl_{kind}": str(folder / f"{kind}.pem") for kind in ("cert", "key")}
        yield start_server(MariaDBServer, files)


def rows_to_write(merge: Merge) -> Batch:
    merge.create("id INT PRIMARY KEY")
    return merge.record("INSERT INTO a.t VALUES (1)")


def runner(merge: Merge, address: DatabaseAddress) -> JobRunner:
    settings = replace(merge.settings, address=address)
    meta = MetaStore(Connection(address), "meta", "task", Lease("meta", "task", this_process()))
    return JobRunner(merge.spark, settings, SchemaRegistry(), meta, lambda _: True)


def test_a_certificate_that_is_renewed_meanwhile_counts(
    merge: Merge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(FALSE.certificate)
    address = replace(merge.settings.address, tls=Tls(Pem(str(file))))
    batch = rows_to_write(merge)
    results = []

    def apply(spark: SparkContext, batch: Batch, settings: ApplySettings) -> BatchResult:
        results.append(apply_batch(spark, batch, settings))
        file.write_text(TRUE.certificate)
        return results[-1]

    monkeypatch.setattr(job_runner, "apply_batch", apply)
    assert not asyncio.run(runner(merge, address).run(batch)).failures
    assert [len(result.failures) for result in results] == [1, 0]
    assert merge.rows() == [(1,)]


def test_whoever_is_not_let_in_is_told_how_to_log_in(merge: Merge) -> None:
    batch = rows_to_write(merge)
    address = merge.settings.address
    for refused, says in (
        (replace(address, password="wrong"), "ALTER USER 'root'@'%' IDENTIFIED BY"),
        (replace(address, tls=Tls(Pem(text=FALSE.certificate))), "security.ssl-ca"),
    ):
        with pytest.raises(FatalError) as caught:
            asyncio.run(runner(merge, refused).run(batch))
        assert caught.value.event == "server.refused"
        assert caught.value.scope is None
        assert says in str(caught.value)
        assert "executors" in str(caught.value)
    assert merge.rows() == []
