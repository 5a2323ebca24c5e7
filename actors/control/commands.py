"""The commands that show and control a running task: status, pause, resume, stop and others.

Modules that show and ask are imported when they are used, so that `replicator --help` is fast.
"""

from __future__ import annotations

import os
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer

from actors.control.arguments import (
    AsJson,
    Everything,
    OnChangedRules,
    OptionalTaskName,
    TaskFile,
    TaskName,
    name_of,
)
from actors.control.exit_codes import FAILED, NOT_RUNNING, UNHEALTHY
from replicator.printable_text import shown_json
from replicator.terminal.consoles import complain, err, out, show, tell

if TYPE_CHECKING:
    from replicator.status import TaskStatus

RELOAD_SECONDS = 600.0
"""Maximum seconds until a task answers whether it uses a changed file."""

PURGE_SECONDS = 120.0
"""Maximum seconds for the deletion of files."""

WATCH_SECONDS = 1.0
"""Seconds between two requests of ``status --watch``."""

WATCH_PATIENCE = 3
"""Number of successive requests that fail before ``status --watch`` ends."""


def status(
    task: OptionalTaskName = None,
    everything: Everything = False,
    as_json: AsJson = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Refresh until the task ends. Keys open parts; q quits."),
    ] = False,
    tells_health: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 4 if something needs the operator.")
    ] = False,
) -> None:
    """Show what a task does: its sources, its targets, and what it waits for.

    Of very many targets and sources, show those that need you, and a summary of the others.
    Without TASK, show the tasks of this user on this host; if one does not answer, the list says so
    and the exit code is 1. With the task file of a task that does not run, show its saved state.
    """
    from replicator.api.open_task import OpenTask
    from replicator.status import needs_operator
    from replicator.terminal.status import render

    if as_json and watch:
        raise typer.BadParameter("--json and --watch don't go together: run --json repeatedly")
    if watch and task is None:
        raise typer.BadParameter("--watch needs a TASK")
    if task is None:
        _list(as_json, tells_health=tells_health)
        return
    if watch:
        raise typer.Exit(_watch(name_of(task)))
    found = OpenTask.open(task).status()
    if as_json:
        tell(shown_json(_values(found), indent=2))
    else:
        show(render(found, everything=everything))
    if tells_health and needs_operator(found):
        raise typer.Exit(UNHEALTHY)
    if tells_health and found.state == "stopped":
        raise typer.Exit(NOT_RUNNING)


def _values(status: TaskStatus) -> dict[str, Any]:
    """Return the status for JSON, with values that are derived from it."""
    from replicator.status import condition, needs_operator

    return {
        **status.to_dict(),
        "condition": condition(status),
        "needs_operator": needs_operator(status),
    }


def _list(as_json: bool, *, tells_health: bool) -> None:
    from actors.control.requests import statuses
    from replicator.status import needs_operator
    from replicator.terminal.status import render_tasks

    found, silent = anyio.run(statuses)
    if as_json:
        tell(shown_json([_values(status) for status in found], indent=2))
    else:
        show(render_tasks(found, list(silent)))
    for reason in silent.values():
        complain(reason)
    if silent:
        raise typer.Exit(FAILED)
    if tells_health and any(map(needs_operator, found)):
        raise typer.Exit(UNHEALTHY)


def shards(task: TaskName, as_json: AsJson = False) -> None:
    """List the shards that a running task follows, with what each lacks."""
    from replicator.api.open_task import OpenTask
    from replicator.status_json import plain
    from replicator.terminal.shards import render_shards

    found = OpenTask.open(task).shards()
    if as_json:
        tell(shown_json(plain(found), indent=2))
    else:
        show(render_shards(found))


Targets = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        help="Only this target, named as in `status`: schema.table, and a part with a dot or"
        " a backquote in backquotes. Repeat the option for several.",
    ),
]
Sources = Annotated[
    list[str] | None,
    typer.Option("--source", help="Only this source. Repeat the option for several."),
]


def relay(
    task: TaskName,
    source: Sources = None,
    purge: Annotated[
        bool,
        typer.Option("--purge", help="First delete all files that the task does not need."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the relay logs of a running task: their files, and from where on they are needed."""
    from actors.control.requests import command, status_of
    from replicator.status_json import plain
    from replicator.terminal.status import render_relay

    name = name_of(task)
    if purge:
        body = anyio.run(command, name, "relay", {"sources": source or []}, PURGE_SECONDS).body
        for one, files in dict(body.get("purged", {})).items():
            err.print(f"{one}: deleted {len(files)} files", markup=False, highlight=False)
    found = [one for one in anyio.run(status_of, name).sources if one.relay is not None]
    if source:
        found = [one for one in found if one.source in source]
    if as_json:
        tell(shown_json({one.source: plain(one.relay) for one in found}, indent=2))
        return
    for one in found:
        show(render_relay(one))
    if not found:
        err.print(f"task {name} has no relay log", markup=False, highlight=False)


def wait(
    task: TaskName,
    end: Annotated[
        list[str] | None,
        typer.Option(
            "--for",
            metavar="END",
            help="`now` (the default: everything that the sources have at this moment), a time, or"
            " SOURCE=POSITION, where POSITION is FILE:OFFSET or a GTID set. Repeat the option for"
            " several sources.",
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Wait no longer than this, for example 30s or 1h30m."),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Wait until a running task has applied everything up to END, and print its positions.

    This includes the rows that locks and blocked targets hold. If these, a fault or a pause keep
    the task from reaching END, the command says so and ends with 1. A task that does not run yet
    has 20 seconds to start.
    """
    from config.values import parse_duration
    from replicator.api.open_task import OpenTask
    from replicator.terminal.waiting import render_waited

    try:
        limit = parse_duration(timeout) if timeout else None
    except ValueError as error:
        raise typer.BadParameter(f"--timeout: {error}") from error
    most = limit if isinstance(limit, timedelta) else None
    try:
        found = OpenTask.open(task).wait(end or "now", timeout=most)
    except ValueError as error:
        raise typer.BadParameter(f"--for: {error}") from error
    if as_json:
        tell(shown_json(found.to_dict(), indent=2))
    else:
        show(render_waited(found.task, found.seconds, found.sources, applied=found.reached))
    if not found.reached:
        over = "the time is over; " if found.timed_out else ""
        complain(
            f"task {found.task} has not applied everything: {over}{'; '.join(found.reasons)}",
            remedies=found.remedies,
        )
        raise typer.Exit(FAILED)


def pause(task: TaskName, target: Targets = None, source: Sources = None) -> None:
    """Pause a running task, or parts of it, once the batch is finished and saved.

    The task holds the rows of a paused target, and does not read a paused source. The other parts
    continue.
    """
    from actors.control.requests import pause_parts, pause_task
    from replicator.terminal.status import fault_panel

    name = name_of(task)
    if target or source:
        found = anyio.run(pause_parts, name, target or [], source or [])
        out.print(f"task {name} is {found.state}", markup=False, highlight=False)
        for part in found.blocked:
            out.print(f"  {part.kind} {part.name} is blocked", markup=False, highlight=False)
        return
    found = anyio.run(pause_task, name)
    if found.state != "paused":
        complain(f"task {name} is {found.state}")
        raise typer.Exit(FAILED)
    out.print(f"task {name} is paused: {found.reason}", markup=False, highlight=False)
    if found.error:
        show(fault_panel(found.error, f"task {name}"))


def resume(task: TaskName, target: Targets = None, source: Sources = None) -> None:
    """Resume a paused task with all its blocked parts, or resume only some parts."""
    from actors.control.requests import command

    name = name_of(task)
    if target or source:
        parts = {"targets": target or [], "sources": source or []}
        anyio.run(command, name, "resume", parts)
        named = ", ".join([*parts["targets"], *parts["sources"]])
        out.print(f"task {name} goes on with {named}", markup=False, highlight=False)
        return
    anyio.run(command, name, "resume")
    out.print(f"task {name} goes on", markup=False, highlight=False)


def recopy(
    task: TaskName,
    target: Targets = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            help="All targets with shards of this source. If a fault blocks the source, the task"
            " follows it from the present end of its binlog. Repeat the option for several.",
        ),
    ] = None,
    truncate: Annotated[
        bool,
        typer.Option(
            "--truncate",
            help="Empty the targets, and copy all their shards. Until the rows are copied, readers"
            " do not see them.",
        ),
    ] = False,
) -> None:
    """Correct targets of a running task from their shards, while all other targets continue.

    The task must have task-mode all. It compares the targets with their shards and corrects the
    rows that differ, so readers always see all rows.
    """
    from actors.control.requests import command

    of = [f"all targets with shards of {', '.join(source)}"] if source else []
    named = ", ".join([*(target or ()), *of])
    if not named:
        raise typer.BadParameter("name the targets: --target SCHEMA.TABLE, or --source SOURCE")
    name = name_of(task)
    arguments = {"targets": target or [], "sources": source or [], "truncate": truncate}
    reply = anyio.run(command, name, "recopy", arguments)
    if not truncate:
        named = ", ".join(map(str, reply.body.get("targets", ())))
    verb = "copies {} again" if truncate else "reconciles {}: `replicator status` shows how far"
    out.print(f"task {name} {verb.format(named)}", markup=False, highlight=False)


def retire(
    task: TaskName,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", help="All shards of this source. Repeat the option for several sources."
        ),
    ] = None,
    shard: Annotated[
        list[str] | None,
        typer.Option(
            "--shard",
            metavar="SOURCE:SCHEMA.TABLE",
            help="Only this shard. Repeat the option for several.",
        ),
    ] = None,
    timeout: Annotated[
        str,
        typer.Option(metavar="TIME", help="Wait no longer than this, for example 30s or 1h30m."),
    ] = "",
) -> None:
    """Stop following shards of a running task; the target keeps their rows.

    The task first applies all rows that the shards have at this moment. Afterwards no schema change
    waits for them, and no comparison misses them or changes their rows. A source whose shards are
    all retired is not read any more, and may be removed from the task file.
    """
    from actors.control.retire_request import parse_shard, retire_shards
    from config.values import parse_duration

    if not source and not shard:
        raise typer.BadParameter("name --source SOURCE, or --shard SOURCE:SCHEMA.TABLE")
    try:
        shards = [parse_shard(text) for text in shard or ()]
    except ValueError as error:
        raise typer.BadParameter(f"--shard: {error}") from error
    try:
        limit = parse_duration(timeout) if timeout else None
    except ValueError as error:
        raise typer.BadParameter(f"--timeout: {error}") from error
    seconds = limit.total_seconds() if isinstance(limit, timedelta) else None
    name = name_of(task)
    reasons, remedies = anyio.run(retire_shards, name, source or [], shards, seconds)
    if reasons:
        complain(f"task {name} has retired nothing: {'; '.join(reasons)}", remedies=remedies)
        raise typer.Exit(FAILED)
    named = ", ".join([*(source or ()), *(shard or ())])
    out.print(
        f"task {name} no longer follows {named}; the target keeps the rows",
        markup=False,
        highlight=False,
    )


def reload(
    task_file: TaskFile,
    on_changed_rules: Annotated[
        OnChangedRules,
        typer.Option(
            help="If the changed rules concern rows that are on the targets: refuse the file, keep"
            " these rows as they are, or empty the targets concerned and copy them again."
        ),
    ] = OnChangedRules.STOP,
) -> None:
    """Let a running task read its changed task file; it copies new tables in the background.

    If the file can't be used, the task continues with the former file, and the command shows the
    reason. It also shows the parts of the task that are blocked under the new file. Passwords from
    the environment are those of this command.
    """
    from actors.control.requests import reload_task
    from config.loading import name_and_variables
    from replicator.terminal.status import blocked_panel

    name, variables = name_and_variables(task_file)
    # If the file has no name, loading it reports that.
    name = name or name_of(str(task_file))
    arguments = {
        "file": str(task_file.absolute()),
        "variables": {v: os.environ[v] for v in variables if v in os.environ},
        "on_changed_rules": on_changed_rules.value,
    }
    blocked = anyio.run(reload_task, name, arguments, RELOAD_SECONDS)
    out.print(f"task {name} runs by {task_file}", markup=False, highlight=False)
    for part in blocked:
        show(blocked_panel(part, ""), err)


def stop(task: TaskName) -> None:
    """Stop a running task once its batch is finished and saved, and wait until its process ends."""
    from actors.control.requests import stop_task

    name = name_of(task)
    anyio.run(stop_task, name)
    out.print(f"task {name} has ended", markup=False, highlight=False)


def _watch(name: str) -> int:
    """Show the status again and again until the task has ended or q is pressed.

    Return the exit code.
    """
    from actors.control.task_records import find_record, was_killed

    last = _watch_until_end(name, _first_status(name))
    if last is None:
        return 0
    record = find_record(name)
    if record is not None and was_killed(record):
        complain(f"task {name} was killed, or has crashed: its process {record.pid} is gone")
        return FAILED
    out.print(f"task {name} has ended", markup=False, highlight=False)
    return FAILED if last.error else 0


def _first_status(name: str) -> TaskStatus:
    """Return the status of a task; wait for a task that does not run yet."""
    from actors.control.client import NotRunningError
    from actors.control.requests import status_of

    told = False
    while True:
        try:
            return anyio.run(status_of, name)
        except NotRunningError as error:
            if not told:
                out.print(f"waiting for task {name}: {error}", markup=False, highlight=False)
            told = True
            time.sleep(WATCH_SECONDS)


def _watch_until_end(name: str, last: TaskStatus) -> TaskStatus | None:
    """Show what the keys choose until the task has ended; return its last status, or None for q."""
    from rich.live import Live

    from actors.control.client import NotRunningError
    from actors.control.protocol import ControlError
    from actors.control.requests import status_of
    from replicator.terminal.watch import View, WatchScreen, after_key, keyboard

    view, failures = View(), 0
    with keyboard() as keys:
        screen = WatchScreen(last, view, keys.listens)
        with Live(screen, console=out, auto_refresh=False) as live:
            while True:
                # Keys are not read in an event loop, which Ctrl-C would only ask to end.
                for key in keys.pressed(WATCH_SECONDS):
                    looked_at = after_key(view, key, last)
                    if looked_at is None:
                        return None
                    view = looked_at
                    live.update(WatchScreen(last, view), refresh=True)
                try:
                    last = anyio.run(status_of, name)
                except NotRunningError:
                    return last
                except ControlError:
                    # The task may be about to end.
                    failures += 1
                    if failures > WATCH_PATIENCE:
                        raise
                    continue
                failures = 0
                live.update(WatchScreen(last, view, keys.listens), refresh=True)
