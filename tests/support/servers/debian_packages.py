"""Programs of newer Debian suites than this machine's, run from a folder, not installed.

apt fetches a package with everything that it depends on, the C library included, and checks the
signatures; it is given lists and a state of its own, so the machine's stay as they are. All is
unpacked into one folder in the cache, where the program is started by that folder's own loader.
The folder stays as it is until it is removed, though suites move.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from replicator.sandbox.keeper import Keeper, ServerUnavailableError
from replicator.sandbox.server import cache_root, cached_folder, tail
from tests.support.servers.apt_sources import machine_mirror

MACHINE = "x86_64"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
VERSION_FILE = "version"
FETCH_SECONDS = 300.0

APT_OPTIONS = (
    "APT::Install-Recommends=false",
    "APT::Default-Release=",  # one of the machine's settings would name a suite that is not there
    "APT::Update::Error-Mode=any",  # a mirror that does not answer is no success with a warning
    "APT::Get::AllowUnauthenticated=false",
    "Acquire::AllowInsecureRepositories=false",
    "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",  # pictures and texts of programs
    "Acquire::Languages=none",
    "Acquire::Retries=2",
    "Acquire::http::Timeout=20",
    "Acquire::https::Timeout=20",
    "Dir::Etc::sourceparts=/dev/null",
    "Dir::Etc::preferences=/dev/null",
    "Dir::Etc::preferencesparts=/dev/null",
)


@dataclass(frozen=True)
class DebianPackage:
    """A package as the suite has it when this machine first asks for it."""

    suite: str
    name: str

    def root(self) -> Path:
        """The folder which it and its dependencies are unpacked in, as under ``/``.

        They are fetched if they are not in the cache yet, which takes some seconds to minutes.
        Raises ServerUnavailableError, with apt's own words, where they can't be had.
        """
        return self._folder() / "root"

    def version(self) -> str:
        """The version of the package, as Debian numbers it (``9.7.4-2``). Fetches like `root`."""
        return (self._folder() / VERSION_FILE).read_text(encoding="utf-8")

    def fetched_version(self) -> str | None:
        """The version in the cache; None when there is none. Fetches nothing."""
        path = cache_root() / self._key / VERSION_FILE
        return path.read_text(encoding="utf-8") if path.is_file() else None

    @property
    def _key(self) -> str:
        return f"debian-{self.suite}-{self.name}"

    def _folder(self) -> Path:
        return cached_folder(self._key, lambda target: _fetch(self, target))


def loaded(root: Path, program: Path) -> list[str]:
    """The start of a command line that runs the program with the libraries of its own folder."""
    # Without the machine's cache of libraries: one that the folder lacks is to be missed.
    return [
        str(root / LOADER),
        "--inhibit-cache",
        "--library-path",
        str(root / LIBRARIES),
        str(program),
    ]


def _fetch(package: DebianPackage, target: Path) -> None:
    """Fill the folder with ``root`` and the file of the version."""
    if platform.machine() != MACHINE:
        raise ServerUnavailableError(
            f"{package.name} is run on {MACHINE} only, this machine is {platform.machine()}."
        )
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise ServerUnavailableError(
                f"{package.name} is fetched from Debian's {package.suite} with {tool}, which this"
                " machine lacks."
            )
    source = machine_mirror().source(package.suite)
    root = target / "root"
    root.mkdir()
    with Keeper() as keeper:
        archives = _download(keeper, package, source)
        for archive in archives:
            _dpkg_deb("--extract", str(archive), str(root))
        [own] = [archive for archive in archives if archive.name.startswith(f"{package.name}_")]
        # A number before a colon only says that Debian has begun to count anew.
        version = _dpkg_deb("--field", str(own), "Version").strip().rpartition(":")[2]
    (target / VERSION_FILE).write_text(version, encoding="utf-8")


def _download(keeper: Keeper, package: DebianPackage, source: str) -> list[Path]:
    """Have apt fetch and check the archives of the package and of all that it depends on."""
    folder = keeper.folder
    # apt gives root's rights away while it fetches; the user that it becomes has to get through.
    folder.chmod(0o711)
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "only.sources").write_text(source, encoding="utf-8")
    (folder / "status").touch()  # nothing is installed: every dependency is fetched, too
    options = (
        *APT_OPTIONS,
        f"Dir::Etc::sourcelist={folder / 'only.sources'}",
        f"Dir::State={folder / 'state'}",
        f"Dir::State::status={folder / 'status'}",
        f"Dir::Cache={folder / 'cache'}",
    )
    apt = ["apt-get", "-q", *(part for option in options for part in ("-o", option))]
    _apt(keeper, package, [*apt, "update"])
    _apt(keeper, package, [*apt, "--yes", "--download-only", "install", package.name])
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def _apt(keeper: Keeper, package: DebianPackage, argv: Sequence[str]) -> None:
    log = keeper.folder / "apt.log"
    keeper.start(argv, {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}, log)
    status = keeper.wait(FETCH_SECONDS)
    if status != 0:
        what = f"did not end within {FETCH_SECONDS:.0f} s" if status is None else "failed"
        raise ServerUnavailableError(
            f"{package.name} can't be fetched from Debian's {package.suite}: apt-get {what}. Check"
            " that this machine reaches the mirror that its own lists of sources name. The end of"
            f" what it said:\n{tail(log)}"
        )


def _dpkg_deb(*arguments: str) -> str:
    done = subprocess.run(
        ["dpkg-deb", *arguments], capture_output=True, text=True, errors="replace", check=False
    )
    if done.returncode != 0:
        raise ServerUnavailableError(
            f"`dpkg-deb {' '.join(arguments)}` failed. It said:\n{done.stderr.strip()}"
        )
    return done.stdout
