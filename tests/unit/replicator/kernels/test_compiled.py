"""What is compiled is kept for all who need it, and not taken for what other sources would give."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from replicator.kernels import compiled
from replicator.kernels import loop_folder as loop_module
from replicator.kernels.compilations import Compilations
from replicator.kernels.loop_folder import UNPACKED, loop_folder
from replicator.pipeline.spark.cluster import pack
from replicator.rows.decoder import field_text


def test_a_kernel_is_kept_by_a_name_that_changes_with_each_module(tmp_path: Path) -> None:
    folder = Path(field_text.__file__).parent
    kernel: Any = field_text.write_lines
    assert kernel.py_func.__qualname__ == f"write_lines_{compiled.sources_checksum(folder)}"
    seen = {compiled.sources_checksum(tmp_path)}
    for name, text in (("a.py", "1"), ("b.py", "1"), ("b.py", "2")):
        (tmp_path / name).write_text(text)
        compiled.sources_checksum.cache_clear()
        seen.add(compiled.sources_checksum(tmp_path))
    compiled.sources_checksum.cache_clear()
    assert len(seen) == 4


def import_kernels(root: Path, caches: Path) -> subprocess.Popen[str]:
    """Import a module with kernels, as another process does; it tells what it had to compile."""
    code = (
        "from replicator.kernels import gather\n"
        "kernels = [v for v in vars(gather).values() if hasattr(v, 'stats') and v.signatures]\n"
        "from replicator.kernels.compilations import COMPILATIONS\n"
        "assert bool(COMPILATIONS.loops) == (COMPILATIONS.seconds > 0)\n"
        "print(COMPILATIONS.loops, sum(len(k.stats.cache_hits) for k in kernels))"
    )
    env = {**os.environ, "PYTHONPATH": str(root), "XDG_CACHE_HOME": str(caches)}
    return subprocess.Popen(
        [sys.executable, "-c", code], cwd=root, env=env, stdout=subprocess.PIPE, text=True
    )


def told(process: subprocess.Popen[str]) -> tuple[int, int]:
    """How many kernels a process has compiled, and how many it has found."""
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    compiled_ones, found = map(int, out.split())
    return compiled_ones, found


def test_what_an_executor_has_unpacked_is_compiled_once_on_its_host(tmp_path: Path) -> None:
    archive = pack(tmp_path)
    roots = [tmp_path / name / UNPACKED for name in ("one", "two", "three")]
    for root in roots:
        shutil.unpack_archive(archive, root)
    caches = tmp_path / "caches"
    processes = [import_kernels(root, caches) for root in roots[:2]]
    (first, found_first), (second, found_second) = map(told, processes)
    # They take turns: each loop is compiled by one of them.
    kernels = first + second
    assert kernels > 0
    assert found_first + found_second == kernels
    assert told(import_kernels(roots[2], caches)) == (0, kernels)
    assert not list(tmp_path.glob(f"*/{UNPACKED}/replicator/*/__pycache__/*.nbi"))


def test_a_folder_that_others_may_write_to_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / UNPACKED / "rows"
    (tmp_path / "open" / "replicator").mkdir(parents=True)
    (tmp_path / "open" / "replicator").chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "open"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    loop_module._shared_folder.cache_clear()
    try:
        assert loop_folder(package).is_relative_to(tmp_path / "home")
    finally:
        loop_module._shared_folder.cache_clear()


def test_loops_are_kept_beside_modules_that_can_be_written_to(tmp_path: Path) -> None:
    assert loop_folder(tmp_path) == tmp_path / "__pycache__"


def test_the_first_compilation_of_a_process_is_reported_and_all_are_counted() -> None:
    reports: list[int] = []
    counted = Compilations(report=lambda: reports.append(counted.loops))
    counted.add(0, 0.5)
    assert (counted.loops, counted.seconds, reports) == (0, 0.0, [])
    counted.add(1, 2.0)
    counted.add(2, 3.5)
    assert (counted.loops, counted.seconds, reports) == (3, 5.5, [0])


def test_a_command_compiles_at_the_first_call_only_what_it_calls() -> None:
    code = (
        "import zlib\n"
        "from replicator.kernels.compilations import COMPILATIONS\n"
        "COMPILATIONS.at_first_call = True\n"
        "from replicator.rows.decoder import lines\n"
        "kernels = lines._checksums, lines._differ\n"
        "assert not any(kernel.signatures for kernel in kernels)\n"
        "for texts in ([b'abc', b''], [b'de']):\n"
        "    found = lines.lines_of(texts).checksums()\n"
        "    assert found.tolist() == [zlib.crc32(text) for text in texts]\n"
        "print([len(kernel.signatures) for kernel in kernels], COMPILATIONS.loops)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[1, 0] 0\n", done.stderr
