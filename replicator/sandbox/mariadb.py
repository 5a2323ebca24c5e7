"""Private MariaDB servers, run with the `mariadbd` that is installed on the machine."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from replicator.sandbox.keeper import Keeper, ServerStartError, ServerUnavailableError
from replicator.sandbox.server import (
    LOG_FILE_SIZE,
    BinlogServer,
    arguments,
    cached_folder,
    give_to_server,
    tail,
    user_arguments,
)

INSTALL_SECONDS = 120.0


class MariaDBServer(BinlogServer):
    """A MariaDB server of the installed version; see `DatabaseServer`."""

    def _program(self) -> Path:
        return _installed("mariadbd")

    def _template(self) -> Path:
        version = hashlib.sha256(_version(self._program())).hexdigest()[:12]
        return cached_folder(f"mariadb-{version}", _build_data)

    def _kind_options(self) -> Mapping[str, str | None]:
        return LOG_FILE_SIZE


@cache
def _installed(program: str) -> Path:
    # The server is in /usr/sbin, which is not in a normal user's PATH.
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(program, path=path)
    if found is None:
        raise ServerUnavailableError(
            f"There is no {program} on this machine: install the package mariadb-server"
            " (apt-get install mariadb-server)."
        )
    return Path(found)


@cache
def _version(program: Path) -> bytes:
    return subprocess.run(
        [str(program), "--no-defaults", "--version"], check=True, capture_output=True
    ).stdout


def _build_data(target: Path) -> None:
    install = _installed("mariadb-install-db")
    with Keeper() as keeper:
        give_to_server(keeper.folder)
        log = keeper.folder / "install.log"
        argv = [
            str(install),
            "--no-defaults",
            f"--datadir={keeper.folder / 'data'}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            *arguments(LOG_FILE_SIZE),
            *user_arguments(),
        ]
        keeper.start(argv, os.environ, log)
        if keeper.wait(INSTALL_SECONDS) != 0:
            raise ServerStartError(f"{install} failed. The end of its log:\n{tail(log)}")
        shutil.copytree(keeper.folder / "data", target / "data")
