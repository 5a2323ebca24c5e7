"""The command `replicator validation`: the errors found, and the operator's answers.

Modules for requests are imported when they are used, so that `replicator --help` is fast.
"""

from __future__ import annotations

from typing import Annotated, Any

import anyio
import typer

from actors.control.arguments import AsJson, name_of
from replicator.printable_text import shown_json
from replicator.terminal.consoles import out, tell


def validation(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ACTION] TASK [ID]…",
            help="The task, as its name or task file. Before it show-error, ignore-error,"
            " resolve-error or clear-error; after it the numbers of errors.",
        ),
    ],
    every: Annotated[
        bool,
        typer.Option(
            "--all",
            help="All new errors; with clear-error, all others.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the validation of rows while a task runs, and answer its errors.

    A row that differs from its shard for longer than row-error-delay is an error. show-error lists
    the errors, ignore-error and resolve-error mark them, clear-error removes them. The task
    corrects the rows itself, unless the task file has `on-unproven-change: stop`.
    """
    from actors.control.requests import command
    from actors.validating.operator_answers import ACTIONS

    action = words[0] if words[0] in ACTIONS else ""
    name, *given = words[1:] if action else words
    ids = [int(number) if number.isdigit() else 0 for number in given]
    if not all(ids):
        raise typer.BadParameter("errors are named by their numbers, as show-error lists them")
    if (given or every) and action in ("", "show-error"):
        raise typer.BadParameter("only an answer to errors takes numbers or --all")
    if action not in ("", "show-error") and bool(given) == every:
        raise typer.BadParameter(f"{action} takes the numbers of errors, or --all")
    reply = anyio.run(command, name_of(name), "validation", {"action": action, "ids": ids})
    if as_json:
        tell(shown_json(dict(reply.body), indent=2))
        return
    _print(dict(reply.body))


def _print(body: dict[str, Any]) -> None:
    counts = body["validation"]
    if counts is None:
        out.print("the task validates no rows: see `validators` of the task file", highlight=False)
        return
    for error in body.get("errors", ()):
        key, columns = ", ".join(error["key"]), error["columns"]
        out.print(
            f"{error['id']}  {error['state']}  {error['target']}  {error['kind']}"
            f"  key {key}  {error['shard'] or 'in no shard'}{'  ' if columns else ''}{columns}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    out.print(
        f"errors: {counts['errors']} new, {counts['ignored']} ignored,"
        f" {counts['resolved']} resolved, {counts['corrected']} corrected by the task\n"
        f"keys: {counts['checked']:,} checked, {counts['waiting']:,} waiting"
        f" ({counts['seconds_behind']:.0f} s), {counts['skipped']:,} skipped;"
        f" {counts['suspects']:,} rows differ and are looked at again",
        markup=False,
        highlight=False,
    )
    for text in counts["left_out"]:
        out.print(f"not validated: {text}", markup=False, highlight=False)
