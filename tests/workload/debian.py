"""MariaDB's own tests, from the packages of Debian, unpacked into the cache folder.

Nothing is installed into the system: apt fetches the packages of the machine's own release, and
they are unpacked below the cache. So the tests are those of the server that is installed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from replicator.sandbox.keeper import ServerUnavailableError
from replicator.sandbox.server import cached_folder, user_arguments

PACKAGES = ("mariadb-test", "mariadb-test-data", "libpcre2-posix3")
"""The client program, the files, and a library that only the client program needs."""

SECONDS = 300.0


@dataclass(frozen=True)
class TestPackage:
    """The unpacked packages."""

    __test__ = False
    root: Path

    @property
    def program(self) -> Path:
        """The client that executes a test file."""
        return self.root / "usr" / "bin" / "mariadb-test"

    @property
    def folder(self) -> Path:
        """What test files name their includes from."""
        return self.root / "usr" / "share" / "mysql" / "mysql-test"

    @property
    def environment(self) -> Mapping[str, str]:
        """Ours, with the folder of the libraries that were unpacked."""
        folders = [str(path) for path in sorted((self.root / "usr" / "lib").glob("*-linux-gnu*"))]
        return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders)}

    def file(self, name: str) -> Path:
        """The test file of a name: ``insert`` of the main suite, ``vcol.update`` of another.

        A path that ends in ``.test`` is a file of one's own. Raises FileNotFoundError.
        """
        if name.endswith(".test"):
            return Path(name).resolve(strict=True)
        suite, _, test = name.rpartition(".")
        home = self.folder / "suite" / suite if suite else self.folder / "main"
        for folder in (home / "t", home):
            if (folder / f"{test}.test").exists():
                return folder / f"{test}.test"
        raise FileNotFoundError(f"The packages have no test file {name!r}.")

    def suite_of(self, file: Path) -> Path:
        """The folder of the suite that a test file belongs to, for the suite's own includes."""
        return file.parent.parent if file.parent.name == "t" else file.parent


def test_package() -> TestPackage:
    """The packages, fetched if they are not in the cache. Raises ServerUnavailableError."""
    done = subprocess.run(
        ["apt-cache", "policy", PACKAGES[0]], capture_output=True, text=True, check=False
    )
    found = re.search(r"Candidate: (?:\d+:)?([0-9][\w.+~-]*)", done.stdout)
    if found is None:
        _update()
        found = re.match("(.*)", "newest")
    assert found is not None
    return TestPackage(cached_folder(f"mariadb-test-{found[1]}", _fetch))


def _fetch(target: Path) -> None:
    command = ["apt-get", "download", "-qq", *PACKAGES]
    done = _run(command, target)
    if done.returncode != 0:
        _update()
        done = _run(command, target)
    if done.returncode != 0:
        raise ServerUnavailableError(
            f"`{' '.join(command)}` failed, so there are no tests of MariaDB:\n{done.stderr}"
        )
    for package in sorted(target.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(target)], check=True)
        package.unlink()


def _update() -> None:
    """Get apt's lists, which a fresh machine lacks, if we may."""
    as_root = [] if user_arguments() else ["sudo", "-n"]
    _run([*as_root, "apt-get", "update", "-qq"], Path.cwd())


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
