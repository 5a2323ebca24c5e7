"""What a copy shows in the terminal it was started in: a bar, then a summary."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from replicator.sandbox.server import DatabaseServer
from tests.support.tasks.copying import copy_task
from tests.support.tasks.shards import Shards
from tests.support.tasks.task_files import write_task

pytestmark = pytest.mark.slow


def test_a_bar_and_a_summary(
    mariadb_source: DatabaseServer,
    target_server: DatabaseServer,
    database_name: str,
    tmp_path: Path,
) -> None:
    shards = Shards([mariadb_source], target_server, database_name)
    mariadb_source.execute(
        "INSERT INTO t1 SELECT seq, 'x', seq FROM seq_1_to_4000", database=database_name
    )
    values = copy_task(shards, mode="full", rows=500)
    values["copy"] = {"rows-per-second": 1000}
    code, shown = run_in_terminal("run", str(write_task(tmp_path, values)), folder=tmp_path)
    assert code == 0, shown
    shares = [int(share) for share in re.findall(r"(\d+) %", shown)]
    assert shares == sorted(shares)
    assert any(0 < share < 100 for share in shares), shown
    assert re.search(r"of 3 tables, [\d ]+ of about [\d ]+ rows, .* rows/s, .* left", shown), shown
    assert "copied 3 of 3 tables, 4 000 rows" in shown
    shards.assert_equal()


def run_in_terminal(*arguments: str, folder: Path) -> tuple[int, str]:
    """Exit code of a command of the CLI, and all that it wrote to a terminal of its own."""
    terminal, program_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "cli", *arguments, "--log-file", str(folder / "task.log")],
        stdin=program_end,
        stdout=program_end,
        stderr=program_end,
        env={**os.environ, "TMPDIR": str(folder), "TERM": "xterm", "COLUMNS": "200"},
        start_new_session=True,
    )
    os.close(program_end)
    shown = bytearray()
    # A read fails once the program and all that it started have closed their end.
    try:
        while data := os.read(terminal, 65536):
            shown += data
    except OSError:
        pass
    finally:
        os.close(terminal)
        code = process.wait()
    text = shown.decode(errors="replace")
    text = text.replace("\N{NARROW NO-BREAK SPACE}", " ")
    return code, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
