"""A whole task between servers that take nobody without TLS and a certificate of their CA."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from replicator.sandbox.mariadb import MariaDBServer
from replicator.sandbox.server import give_to_server
from tests.conftest import StartServer
from tests.support.servers.certificates import make_authority
from tests.support.tasks.copying import copy_task
from tests.support.tasks.processes import task_process
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


def test_a_task_over_tls(start_server: StartServer, database_name: str, tmp_path: Path) -> None:
    authority = make_authority()
    own, client = authority.sign("db", addresses=("127.0.0.1",)), authority.sign("merger")
    (tmp_path / "client.pem").write_text(client.certificate)
    (tmp_path / "client.key").write_text(client.key)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "ca.pem").write_text(authority.certificate)
        (folder / "cert.pem").write_text(own.certificate)
        (folder / "key.pem").write_text(own.key)
        give_to_server(folder)
        files = {f"ssl_{kind}": str(folder / f"{kind}.pem") for kind in ("ca", "cert", "key")}
        options = {**files, "require_secure_transport": "ON"}
        source, target = start_server(MariaDBServer, options), start_server(MariaDBServer, options)
        for server in (source, target):
            server.execute(
                "CREATE USER merger@'127.0.0.1' IDENTIFIED BY 'pä日' REQUIRE SUBJECT '/CN=merger'",
                "GRANT ALL ON *.* TO merger@'127.0.0.1'",
            )
        shards = Shards([source], target, database_name)
        shards.change(rows=60)
        values = copy_task(shards)
        for endpoint in (values["target-database"], values["sources"][0]["from"]):
            endpoint["user"], endpoint["password"] = "merger", "pä日"
            endpoint["security"] = {
                "ssl-ca-bytes": list(authority.certificate.encode()),
                "ssl-cert": str(tmp_path / "client.pem"),
                "ssl-key": str(tmp_path / "client.key"),
            }
        with task_process(write_task(tmp_path, values), tmp_path) as task:
            task.until_state(database_name, "running")
            shards.change(rows=60)
            task.until_applied(database_name, shards.sources)
            task.cli("stop", database_name)
            task.process.wait(60)
        shards.assert_equal()
