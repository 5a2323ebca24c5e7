"""A Python for executors: with the packages of docs/how-to/cluster.md, and without ours."""

from __future__ import annotations

import venv
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PACKAGES = ("pyarrow", "numpy", "numba", "PyMySQL", "mysql-replication", "cryptography")
"""What executors need; what these need in turn comes along."""


def executor_python(
    folder: Path,
    *,
    without: Collection[str] = (),
    version: tuple[int, int] | None = None,
) -> Path:
    """Make an environment in a new folder; its Python.

    ``without`` names packages to leave out. With ``version`` it tells PySpark that it is this
    version of Python: another one can't be had on every machine.
    """
    venv.create(folder, symlinks=True)
    packages = next((folder / "lib").glob("python*")) / "site-packages"
    wanted = {canonicalize_name(name) for name in _with_dependencies(PACKAGES)}
    for name in sorted(wanted - {canonicalize_name(name) for name in without}):
        for entry in _entries(name):
            (packages / entry.name).symlink_to(entry)
    if version is not None:
        lie = (
            "import collections, sys\n"
            "Version = collections.namedtuple('Version', 'major minor micro releaselevel serial')\n"
            f"sys.version_info = Version(*{version}, 0, 'final', 0)\n"
        )
        (packages / "sitecustomize.py").write_text(lie)
    return folder / "bin" / "python"


def _with_dependencies(names: Collection[str]) -> Iterator[str]:
    for name in names:
        yield name
        for requirement in map(Requirement, metadata.requires(name) or ()):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                yield from _with_dependencies([requirement.name])


def _entries(name: str) -> set[Path]:
    """The files and folders of a package in our own environment."""
    files = metadata.files(name)
    assert files, f"{name} does not tell its files"
    tops = {Path(str(file.locate())).resolve() for file in files if ".." not in file.parts}
    root = Path(str(metadata.distribution(name).locate_file(""))).resolve()
    return {root / top.relative_to(root).parts[0] for top in tops if top.is_relative_to(root)}
