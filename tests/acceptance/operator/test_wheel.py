"""The wheel: what is in it, and its command in an environment of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PARTS = ("actors", "config", "replicator", "cli.py", "pyproject.toml", "README.md", "LICENSE")
DATA = (
    "config/task-schema.json",
    "config/examples/every-key.yaml",
    "config/examples/copy-then-follow.yaml",
    "config/examples/merge-two-sources.yaml",
    "config/monitoring/alerts.yml",
    "config/monitoring/dashboard.json",
    "replicator/events/log_events.yaml",
    "replicator/events/faults.yaml",
    *(f"{package}/py.typed" for package in ("actors", "config", "replicator")),
)

pytestmark = pytest.mark.slow


def run(*words: str | Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        capture_output=True,
        text=True,
        check=False,
        env=env,
        cwd="/",
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: the build writes beside the sources."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / part, source / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, source / part)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, "-w", folder, source)
    [found] = folder.glob("replicator-*.whl")
    return found


def test_the_wheel_has_all_modules_and_files(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {
        str(path.relative_to(ROOT))
        for package in ("actors", "config", "replicator")
        for path in (ROOT / package).rglob("*.py")
    }
    assert modules | {"cli.py"} <= names
    assert set(DATA) <= names
    assert not [name for name in names if name.startswith(("tests/", "scripts/", "benchmarks/"))]


def test_the_metadata_names_licence_and_kind(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    [metadata] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    headers = HeaderParser().parsestr(archive.read(metadata).decode())
    assert headers["License-Expression"] == "Apache-2.0"
    assert "Typing :: Typed" in (headers.get_all("Classifier") or ())
    [licence] = [name for name in archive.namelist() if name.endswith("licenses/LICENSE")]
    assert archive.read(licence).decode() == (ROOT / "LICENSE").read_text()


def test_the_command_works_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    own = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps")
    run(*pip, wheel)
    # The dependencies are those of this environment, without the project itself: a path is added,
    # and its own .pth files are not read.
    (own / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    replicator = tmp_path / "venv" / "bin" / "replicator"
    assert run(replicator, "--version", env=env).startswith("replicator ")
    place = "import cli, config, replicator; print(cli.__file__, config.__file__)"
    assert all(word.startswith(str(own)) for word in run(python, "-c", place, env=env).split())
    copied = run(replicator, "files", tmp_path / "files", env=env).split()
    expected = {name.removeprefix("config/") for name in DATA if name.startswith("config/")}
    expected.discard("py.typed")
    assert {str(Path(name).relative_to(tmp_path / "files")) for name in copied} == expected
    run(replicator, "encrypt", "--new-key", tmp_path / "key", env=env)

    again = subprocess.run(
        [replicator, "files", tmp_path / "files"], capture_output=True, text=True, check=False
    )
    assert again.returncode == 1
    assert "nothing is copied, since there is" in again.stderr
