"""Builds Prometheus' promtool, once per machine: ``python -m scripts.build_promtool``.

It stays in the cache folder. Without it the tests of the alert rules that need it are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from replicator.sandbox.server import cache_root, cached_folder

PACKAGE = "github.com/prometheus/prometheus/cmd/promtool"
VERSION = "v0.304.2"
CACHE_KEY = f"promtool-{VERSION}"
GO_FOLDERS = ("/usr/local/go/bin", "/usr/lib/go/bin")


def built_promtool() -> str | None:
    """The program, if it is built already."""
    program = cache_root() / CACHE_KEY / "promtool"
    return str(program) if program.is_file() else None


def main() -> int:
    """Build it where it is missing; the exit status."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *GO_FOLDERS])
    go = shutil.which("go", path=path)
    if go is None:
        sys.stderr.write("promtool is built with the Go toolchain, which this machine lacks\n")
        return 1
    folder = cached_folder(CACHE_KEY, lambda part: build(go, part))
    sys.stdout.write(f"{folder / 'promtool'}\n")
    return 0


def build(go: str, folder: Path) -> None:
    """Put the program into an empty folder. Raises subprocess.CalledProcessError."""
    with TemporaryDirectory(prefix="replicator-promtool-") as module:
        for arguments in (
            ("mod", "init", "promtool-build"),
            ("get", f"{PACKAGE}@{VERSION}"),
            ("build", "-o", str(folder / "promtool"), PACKAGE),
        ):
            subprocess.run([go, *arguments], cwd=module, check=True)


if __name__ == "__main__":
    sys.exit(main())
