"""One process at a time has a lock file, and its end frees it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from actors.control.lock_file import LockFile


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "task.lock"
    with closing(LockFile(path)) as first, closing(LockFile(path)) as second:
        assert first.holder() == ""
        assert first.acquire()
        assert not second.acquire()
        assert second.holder() == str(os.getpid())
    with closing(LockFile(path)) as third:
        assert third.acquire()
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_id_of_another_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "task.lock"
    path.write_text("1234567890\n")
    with closing(LockFile(path)) as lock:
        assert lock.holder() == "1234567890"
        assert lock.acquire()
        assert lock.holder() == str(os.getpid())


def test_the_end_of_a_process_ends_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "task.lock"
    code = (
        "import sys\nfrom pathlib import Path\nfrom actors.control.lock_file import LockFile\n"
        "lock = LockFile(Path(sys.argv[1]))\nprint(lock.acquire(), flush=True)\ninput()\n"
    )
    with (
        subprocess.Popen(
            [sys.executable, "-c", code, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
        closing(LockFile(path)) as lock,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        assert not lock.acquire()
        assert lock.holder() == str(process.pid)
        process.kill()
        process.wait()
        assert lock.acquire()
