"""What private servers have in common that are run from the packages of a newer Debian suite."""

from __future__ import annotations

import shutil
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from replicator.sandbox.keeper import Keeper, ServerStartError
from replicator.sandbox.server import (
    COMMON_OPTIONS,
    BinlogServer,
    arguments,
    cached_folder,
    give_to_server,
    program_environment,
    tail,
    user_arguments,
)
from tests.support.servers.debian_packages import DebianPackage, loaded

INSTALL_SECONDS = 120.0
SHARED_PARTS = ("english", "charsets")
FIRST_OPTIONS = ("lower_case_table_names",)
"""What a data folder is made for: a server with another value does not take it (MySQL 8)."""


class PackagedServer(BinlogServer):
    """A server of a `DebianPackage`: the version is the one that its suite had when it was fetched.

    Linux on x86-64 with apt only.
    """

    package: ClassVar[DebianPackage]
    program: ClassVar[str]
    """The server's binary, below the root of the package."""
    share: ClassVar[str]
    """The folder of its messages and character sets, there."""

    @abstractmethod
    def _first_options(self, statements: Path) -> Mapping[str, str | None]:
        """What has the server make its data folder and then run the statements of the file.

        They are on its standard input, too.
        """

    @abstractmethod
    def _first_statements(self, share: Path) -> str:
        """The statements, given the package's folder of that name."""

    def _program(self) -> Path:
        return self.package.root() / self.program

    def _command(self) -> list[str]:
        return loaded(self.package.root(), self._program())

    def _template(self) -> Path:
        key = "-".join([self.package.name, self.package.version(), "data", *self._fixed().values()])
        return cached_folder(key, self._build_data)

    def _fixed(self) -> dict[str, str]:
        return {name: value for name in FIRST_OPTIONS if (value := self._wanted.get(name))}

    def _kind_options(self) -> Mapping[str, str | None]:
        return _places(self.folder)

    def _build_data(self, target: Path) -> None:
        """Make the initial data folder, and beside it what the server reads when it runs."""
        share = self.package.root() / self.share
        with Keeper() as keeper:
            folder = keeper.folder
            for part in SHARED_PARTS:
                shutil.copytree(share / part, folder / "share" / part)
            (folder / "data").mkdir()
            statements = folder / "first.sql"
            statements.write_text(self._first_statements(share), encoding="utf-8")
            give_to_server(folder)
            options: dict[str, str | None] = {
                **self._first_options(statements),
                **self._fixed(),
                **_places(folder),
                "datadir": str(folder / "data"),
                "tmpdir": str(folder),
                "innodb_use_native_aio": COMMON_OPTIONS["innodb_use_native_aio"],
            }
            argv = [*self._command(), "--no-defaults", *user_arguments(), *arguments(options)]
            log = folder / "install.log"
            keeper.start(argv, program_environment(self._program()), log, stdin=statements)
            if keeper.wait(INSTALL_SECONDS) != 0:
                raise ServerStartError(
                    f"{self._program()} did not make its data folder. The end of its log:\n"
                    f"{tail(log)}"
                )
            # Every server makes that file anew: with it, all would have the same UUID.
            own = shutil.ignore_patterns("auto.cnf")
            shutil.copytree(folder / "data", target / "data", ignore=own)
            shutil.copytree(folder / "share", target / "share")


def _places(folder: Path) -> dict[str, str | None]:
    # The server reads these after it changed its user, who may not reach the cache folder.
    return {
        "basedir": str(folder),
        "lc_messages_dir": str(folder / "share"),
        "character_sets_dir": str(folder / "share" / "charsets"),
    }
