"""The commands of `replicator binlog`: overrides of schema changes that can't be executed.

Modules for requests are imported when they are used, so that `replicator --help` is fast.
"""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import anyio
import typer

from actors.control.arguments import AsJson, TaskName, name_of
from replicator.printable_text import shown_json
from replicator.terminal.consoles import out, show, tell
from replicator.terminal.remedies import command_line

Statements = Annotated[
    list[str], typer.Argument(metavar="STATEMENT…", help="DDL, written like the shard's own.")
]
OfSource = Annotated[
    str, typer.Option(help="The source; by default the blocked one, or with --binlog-pos any.")
]
AtPosition = Annotated[
    str, typer.Option(help="FILE:OFFSET of the statement; by default the one that blocks the task.")
]


def skip(task: TaskName, source: OfSource = "", binlog_pos: AtPosition = "") -> None:
    """Skip a statement.

    The target does not execute it, and the task treats the shard as changed by it.
    """
    _give_override(task, "skip", [], source, binlog_pos)


def replace(
    task: TaskName, statements: Statements, source: OfSource = "", binlog_pos: AtPosition = ""
) -> None:
    """Execute other statements on the target in place of one."""
    _give_override(task, "replace", statements, source, binlog_pos)


def inject(
    task: TaskName, statements: Statements, source: OfSource = "", binlog_pos: AtPosition = ""
) -> None:
    """Execute other statements on the target before one."""
    _give_override(task, "inject", statements, source, binlog_pos)


def list_overrides(task: TaskName, as_json: AsJson = False) -> None:
    """Show the overrides that are still needed."""
    from actors.control.requests import command

    reply = anyio.run(command, name_of(task), "binlog", {"action": "list"})
    if as_json:
        tell(shown_json(dict(reply.body), indent=2))
    else:
        _print_overrides(reply.body["overrides"])


def _give_override(
    task: str, action: str, statements: list[str], source: str, position: str
) -> None:
    from actors.control.requests import command, status_of

    name = name_of(task)
    given = {"statements": statements, "source": source, "position": position}
    reply = anyio.run(command, name, "binlog", {"action": action, **given})
    _print_overrides(reply.body["overrides"])
    found = anyio.run(status_of, name)
    if found.state == "paused":
        out.print("the task is paused:")
        show(command_line(shlex.join(["replicator", "resume", name])))
    for part in found.blocked:
        if found.state != "paused" and part.error is not None:
            out.print(f"blocked by {part.error.event}:", markup=False, highlight=False)
            resume = shlex.join(["replicator", "resume", name, f"--{part.kind}", part.name])
            show(command_line(resume))


def _print_overrides(overrides: list[dict[str, Any]]) -> None:
    for override in overrides:
        place = f"{override['source']} {override['position']} {override['action']}"
        tell(" ".join([place, *map(shlex.quote, override["statements"])]))
