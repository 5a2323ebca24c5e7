"""The commands for schema changes that wait for shards: show-ddl-locks, unlock-ddl-lock.

Code for output and requests is imported on use, so that `replicator --help` is fast.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import anyio
import typer

from actors.control.arguments import AsJson, Everything, TaskName, name_of
from replicator.mysql.names import TableName
from replicator.terminal.consoles import out, show, tell


class UnlockAction(StrEnum):
    """What to do with the statement of an unlocked lock."""

    EXEC = "exec"
    SKIP = "skip"


def show_ddl_locks(task: TaskName, everything: Everything = False, as_json: AsJson = False) -> None:
    """Show the schema changes that wait for shards, and how to resolve them."""
    from replicator.api.open_task import OpenTask
    from replicator.terminal.locks import locks_json, render_locks

    found = OpenTask.open(name_of(task)).status()
    if as_json:
        tell(locks_json(found.task, found.locks, found.differing))
    else:
        show(render_locks(found.locks, found.differing, everything=everything))


def unlock_ddl_lock(
    task: TaskName,
    lock: Annotated[
        str,
        typer.Argument(metavar="LOCK_ID", help="The id of the lock, as show-ddl-locks shows it."),
    ],
    owner: Annotated[
        str,
        typer.Option(
            "--owner",
            "--source",
            help="The source whose statement counts; by default the owner of the lock. Required"
            " if shards have made different statements: without it, the command lists them.",
        ),
    ] = "",
    shard: Annotated[
        str,
        typer.Option(
            metavar="SCHEMA.TABLE",
            help="The shard of --owner whose statement counts, if shards of this source differ.",
        ),
    ] = "",
    database: Annotated[
        str, typer.Option(help="With --table: the same as --shard, in two parts.")
    ] = "",
    table: Annotated[str, typer.Option(help="With --database: the shard's table.")] = "",
    action: Annotated[
        UnlockAction, typer.Option(help="Execute the statement on the target, or skip it.")
    ] = UnlockAction.EXEC,
) -> None:
    """Resolve a lock without waiting for the shards that lack its statement or have another one.

    If shards have made different statements, choose by --owner or --action skip. Without a choice
    the command does nothing, lists each choice with its command, and exits with 1.
    """
    from actors.control.requests import command

    skip = action is UnlockAction.SKIP
    if bool(database) != bool(table):
        raise typer.BadParameter("--database and --table name a shard together")
    if table:
        shard = str(TableName(database, table))
    if shard and not owner:
        raise typer.BadParameter("--shard needs --owner: the source that the shard is in")
    arguments = {"lock": lock, "owner": owner, "shard": shard, "skip": skip}
    anyio.run(command, name_of(task), "unlock-ddl-lock", arguments)
    doing = "skipped" if skip else "executed"
    out.print(f"lock {lock} is unlocked: its statement is being {doing}", markup=False)
