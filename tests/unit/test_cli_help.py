"""What the command line says of itself: help, exit codes, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cli
from tests.unit.test_cli import Task, invoke, private_runtime, task

__all__ = ["private_runtime", "task"]

COMMANDS = [
    *("run", "check", "status", "pause", "resume", "stop", "show-ddl-locks", "unlock-ddl-lock"),
    *("remove", "encrypt", "demo", "binlog skip", "binlog replace", "binlog inject", "binlog list"),
    *(
        "schema list",
        "schema set",
        "compare",
        "validation",
        "recopy",
        "relay",
        "reconcile",
        "report",
        "service",
        "shards",
        "wait",
        "switch",
        "reload",
        "retire",
        "changes",
        "init",
        "files",
    ),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_each_command_tells_its_exit_codes(command: str) -> None:
    code, out, _ = invoke(*command.split(), "--help")
    assert code == 0
    assert "Exit codes: 0 " in " ".join(out.split())


def test_no_command_is_left_out_above() -> None:
    groups = {group.name: group.typer_instance for group in cli.app.registered_groups}
    apps = {"": cli.app, **{f"{name} ": app for name, app in groups.items() if app}}
    found = [
        f"{prefix}{command.name or getattr(command.callback, '__name__', '').replace('_', '-')}"
        for prefix, app in apps.items()
        for command in app.registered_commands
    ]
    assert sorted(found) == sorted(COMMANDS)


def test_bash_completes_commands_and_tasks(task: Task, tmp_path: Path) -> None:
    (tmp_path / "orders-all.yaml").touch()
    (tmp_path / "notes.txt").touch()
    script = """
        eval "$(_REPLICATOR_COMPLETE=source_bash replicator)"
        COMP_WORDS=(replicator st) COMP_CWORD=1; _replicator_completion replicator
        echo "${COMPREPLY[@]}"
        COMP_WORDS=(replicator status o) COMP_CWORD=2; _replicator_completion replicator
        echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == ["status stop", "orders orders-all.yaml"], done.stderr


def test_zsh_completes_commands() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "replicator")],
        env={
            **os.environ,
            "_REPLICATOR_COMPLETE": "complete_zsh",
            "_TYPER_COMPLETE_ARGS": "replicator show",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert '"show-ddl-locks"' in done.stdout
