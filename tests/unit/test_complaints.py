"""What a command says when it fails: text on a terminal, a line of JSON elsewhere."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from rich.console import Console

import cli
from actors.errors.faults import FatalError
from replicator.terminal import consoles
from tests.unit.test_cli import invoke, private_runtime

__all__ = ["private_runtime"]

LONG = "the account can't be used: " + "it lacks rights, " * 20


def fail() -> None:
    raise FatalError(
        "a.b",
        LONG,
        "`GRANT [it]`",
        "wait",
        where="target [d].t",
    )


@pytest.fixture(params=[True, False])
def told(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> tuple[io.StringIO, bool]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=request.param, no_color=True, width=80)
    monkeypatch.setattr(consoles, "err", console)
    return stream, request.param


def test_a_fault_is_told_with_its_place_and_remedies(told: tuple[io.StringIO, bool]) -> None:
    stream, terminal = told
    with pytest.raises(typer.Exit) as ended:
        cli.with_messages(fail)()
    assert ended.value.exit_code == 1
    if not terminal:
        [line] = stream.getvalue().splitlines()
        record = json.loads(line)
        assert datetime.fromisoformat(record.pop("timestamp")).tzinfo is UTC
        assert record == {
            "event": "command.failed",
            "level": "error",
            "error": LONG,
            "where": "target [d].t",
            "remedies": ["`GRANT [it]`", "wait"],
        }
        return
    text = stream.getvalue()
    for part in ("error: ", LONG, "where: target [d].t", "`GRANT [it]`", "wait"):
        assert text.count(part) == 1, part


@pytest.mark.parametrize(
    ("arguments", "as_json"),
    [
        (("status", "nobody"), False),
        (("stop", "missing.yaml"), False),
        (("status", "nobody", "--json"), True),
        # What it writes is a log.
        (("run", "missing.yaml"), True),
    ],
    ids=str,
)
def test_a_person_who_sends_errors_to_a_file_gets_text(
    arguments: tuple[str, ...], as_json: bool, tmp_path: Path
) -> None:
    keyboard, typed = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            stdin=typed,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        )
    finally:
        os.close(keyboard)
        os.close(typed)
    assert done.returncode in (2, 3)
    assert done.stderr.startswith("{" if as_json else "error: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ("status", "nobody"),
        ("run", "missing.yaml"),
        ("check", "missing.yaml"),
        ("remove", "missing.yaml"),
        ("remove", "nobody"),
        ("status", "--watch"),
        ("stop", "missing.yaml"),
    ],
)
def test_where_nobody_has_a_terminal_each_line_is_json(arguments: tuple[str, ...]) -> None:
    code, _, err = invoke(*arguments)
    assert code in (2, 3)
    [line] = err.splitlines()
    assert json.loads(line)["event"] == "command.failed"


def test_a_task_file_with_several_faults_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "orders.yaml"
    file.write_text("name: orders\nfoo: bar\n")
    code, _, err = invoke("check", file)
    assert code == 2
    [line] = err.splitlines()
    assert "foo" in json.loads(line)["error"]
