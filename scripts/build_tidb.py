"""Builds TiDB's server for the tests, once per machine: ``python -m scripts.build_tidb``.

A Go module of no code of its own requires TiDB, so Go's own tools fetch and check what is needed.
The binary stays in the cache folder (`tests.support.servers.tidb`).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from replicator.sandbox.server import cached_folder
from tests.support.servers.tidb import CACHE_KEY, COMMIT, PROGRAM

TIDB = "github.com/pingcap/tidb"
VERSION = f"v1.1.0-beta.0.20241213034006-{COMMIT}"
PARSER_VERSION = "v0.0.0-20241218002321-c0b86a3f7bf9"
GO_FOLDERS = ("/usr/local/go/bin", "/usr/lib/go/bin")


def main() -> int:
    """Build it where it is missing; the exit status."""
    folder = os.pathsep.join([os.environ.get("PATH", os.defpath), *GO_FOLDERS])
    go = shutil.which("go", path=folder)
    try:
        cached = cached_folder(CACHE_KEY, lambda part: build(go, part))
    except BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{cached / PROGRAM}\n")
    return 0


class BuildError(Exception):
    """What keeps the server from being built, and what to do."""


def build(go: str | None, folder: Path) -> None:
    """Put the server into an empty folder. Raises BuildError."""
    if go is None:
        raise BuildError(
            "TiDB's server is built with the Go toolchain, which this machine lacks: install Go"
            " 1.21 or newer (the command go must be on the PATH), then `make tidb`. Without the"
            " server the tests that need it are skipped."
        )
    if not (shutil.which("gcc") or shutil.which("clang")):
        raise BuildError(
            "TiDB's server is built with a C compiler, too: install gcc (apt-get install gcc)."
        )
    sys.stderr.write("Building TiDB's server: some minutes, and 4 GB in Go's own caches\n")
    with TemporaryDirectory(prefix="replicator-tidb-") as name:
        module = Path(name)
        found = json.loads(run(go, module, "mod", "download", "-json", f"{TIDB}@{VERSION}"))
        source = Path(found["Dir"])
        # Not all that TiDB needs is known to the public checksum database.
        (module / "go.sum").write_bytes((source / "go.sum").read_bytes())
        own = json.loads(run(go, module, "mod", "edit", "-json", str(source / "go.mod")))
        (module / "go.mod").write_text(module_file(own["Replace"]))
        binary = folder / PROGRAM
        package = f"{TIDB}/cmd/tidb-server"
        # Without symbols, which nobody reads here, the binary is a third smaller.
        run(go, module, "build", "-mod=mod", "-ldflags=-s -w", "-o", str(binary), package)


def module_file(replaced: list[dict[str, Any]]) -> str:
    """The text of our go.mod: what TiDB's replaces by other modules is replaced here, too.

    Such lines hold in a module's own builds only (Go Modules Reference, "replace directive").
    """
    lines = [
        "module replicator/tidb",
        "go 1.21",
        f"require {TIDB} {VERSION}",
        f"require {TIDB}/pkg/parser {PARSER_VERSION}",
    ]
    lines += [
        f"replace {line['Old']['Path']} => {line['New']['Path']} {line['New']['Version']}"
        for line in replaced
        if "Version" in line["New"]
    ]
    return "\n".join(lines) + "\n"


def run(go: str, folder: Path, *arguments: str) -> str:
    """What a command of Go writes to standard output. Raises BuildError with its errors."""
    done = subprocess.run(
        [go, *arguments],
        cwd=folder,
        # Neither a workspace nor a vendor folder around us takes part.
        env={**os.environ, "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(
            f"`{go} {' '.join(arguments)}` failed, so there is no TiDB. Check that Go reaches its"
            f" module proxy. It said:\n{done.stderr.strip()[-2000:] or done.stdout.strip()[-2000:]}"
        )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
