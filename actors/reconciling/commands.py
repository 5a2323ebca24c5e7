"""The command reconcile: queue targets of a running task to be compared and corrected."""

from __future__ import annotations

from typing import Annotated

import anyio
import typer

from actors.control.arguments import TaskName, name_of
from actors.control.commands import Targets
from replicator.terminal.consoles import out


def reconcile(
    task: TaskName,
    target: Targets = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="All targets with shards of this source. Repeat the option for several.",
        ),
    ] = None,
    where: Annotated[
        str, typer.Option(help="Rows to reconcile, as an SQL condition on columns of both sides.")
    ] = "",
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Remove the targets from the queue instead.")
    ] = False,
) -> None:
    """Compare targets of a running task with their shards, and correct the rows that differ.

    The task continues meanwhile, and readers see all rows. Without --target and --source, it
    reconciles all targets. `replicator status` shows the progress, also after a restart.
    """
    from actors.control.requests import command

    name = name_of(task)
    arguments = {
        "targets": target or [],
        "sources": source or [],
        "where": where,
        "cancel": cancel,
    }
    reply = anyio.run(command, name, "reconcile", arguments)
    verb = "does not reconcile" if cancel else "reconciles"
    named = ", ".join(map(str, reply.body.get("targets", ()))) or "no target"
    out.print(f"task {name} {verb} {named}", markup=False, highlight=False)
