"""The image of the Containerfile: built, and run as its page says, until all rows are there.

The base image is made of Debian's packages where the machine has none.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.servers.apt_sources import machine_mirror
from tests.support.tasks.processes import LOOK_SECONDS, PATIENCE
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

TOOLS = ("podman", "buildah", "debootstrap")
pytestmark = [
    pytest.mark.slow,
    # Of which the first build takes most.
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        os.geteuid() != 0 or any(shutil.which(tool) is None for tool in TOOLS),
        reason=f"building an image takes root and {', '.join(TOOLS)}",
    ),
]

ROOT = Path(__file__).parents[3]
BASE, IMAGE = "localhost/debian:bookworm-slim", "localhost/replicator:test"
BUILD_SECONDS = 3000.0
RUNTIME = ("--runtime", "runc") if shutil.which("runc") else ()
"""Of the two that Debian has, the one that knows control groups of both versions."""


def podman(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["podman", *RUNTIME, *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=PATIENCE * 2
    )


def run(*words: str) -> None:
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The image; layers that are known are not built again."""
    folder = tmp_path_factory.mktemp("image")
    if podman("image", "exists", BASE).returncode != 0:
        base, packed = folder / "base", folder / "base.tar"
        run("debootstrap", "--variant=minbase", "bookworm", str(base), machine_mirror().uri)
        run("tar", "-C", str(base), "-cf", str(packed), ".")
        run("podman", "import", str(packed), BASE)
    mounts = []
    # Where pip gets packages, and whom it trusts, the machine decides.
    if (settings := Path("/etc/pip.conf")).is_file():
        own, authority = folder / "pip.conf", Path("/etc/ssl/certs/ca-certificates.crt")
        own.write_text(settings.read_text().replace(str(authority), "/authority.crt"))
        mounts = ["-v", f"{own}:/etc/pip.conf:ro", "-v", f"{authority}:/authority.crt:ro"]
    build = ["buildah", "build", "--isolation", "chroot", "--network", "host", "--layers"]
    run(*build, "--build-arg", f"BASE={BASE}", *mounts, "-t", IMAGE, "-f", "Containerfile", ".")
    return IMAGE


@pytest.fixture
def start(image: str, tmp_path: Path) -> Iterator[Callable[[Path], str]]:
    """Runs a task file in a container with 1 GiB, as the page says; gives its name."""
    names = []

    def started(file: Path) -> str:
        tmp_path.chmod(0o755)
        file.chmod(0o644)
        names.append(f"replicator-{uuid.uuid4().hex[:8]}")
        done = podman(
            *("run", "-d", "--name", names[-1], "--read-only", "--cap-drop=all"),
            *("--security-opt=no-new-privileges", "--memory", "1g", "--network", "host"),
            # Where root may not raise its own limits, podman may not either.
            *("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"),
            *("-v", f"{file.parent}:/etc/replicator:ro"),
            *(image, "run", f"/etc/replicator/{file.name}"),
        )
        assert done.returncode == 0, done.stderr
        return names[-1]

    yield started
    for name in names:
        podman("rm", "--force", "--volumes", name)


def until(name: str, holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE * 2
    while not holds():
        alive = podman("inspect", "-f", "{{.State.Running}}", name).stdout.strip()
        if alive != "true" or time.monotonic() > deadline:
            pytest.fail(f"no {what}:\n{podman('logs', name).stderr[-3000:]}")
        time.sleep(LOOK_SECONDS * 10)


def test_the_image_runs_a_task_without_root_and_without_writing_to_itself(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
    start: Callable[[Path], str],
) -> None:
    shards = Shards([mariadb_source], target_server, database_name)
    name = start(write_task(tmp_path, shards.task()))

    def runs() -> bool:
        told = podman("exec", name, "replicator", "status", database_name, "--json")
        return told.returncode == 0 and json.loads(told.stdout)["state"] == "running"

    def is_equal() -> bool:
        try:
            shards.assert_equal()
        except AssertionError:
            return False
        return True

    until(name, runs, "running task")
    shards.change()
    until(name, is_equal, "equal rows")
    assert podman("exec", name, "id", "-u").stdout.strip() == "10001"
    assert podman("exec", name, "touch", "/opt/replicator/x").returncode != 0
    records = [json.loads(line) for line in podman("logs", name).stderr.splitlines()]
    (settings,) = [r for r in records if r["event"] == "memory.settings"]
    assert (settings["available_mib"], settings["java_heap"]) == (1024, "512m")
    # The loops came with the image.
    assert "loops.compiling" not in {r["event"] for r in records}
    assert podman("stop", "--time", "150", name).returncode == 0
    state = podman("inspect", "-f", "{{.State.ExitCode}} {{.State.OOMKilled}}", name)
    assert state.stdout.split() == ["0", "false"]
    assert "task.stopped" in podman("logs", name).stderr
