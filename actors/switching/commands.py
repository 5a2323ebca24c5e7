"""The command switch: from the shards to their targets, with a certificate."""

from __future__ import annotations

import json
import signal
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from actors.control.arguments import AsJson, TaskFile
from actors.control.exit_codes import FAILED
from replicator.printable_text import shown_json
from replicator.terminal.consoles import complain, err, out, show, tell

if TYPE_CHECKING:
    from actors.switching.switching import Switch, Switched, SwitchOptions
    from config import Task
    from replicator.switch.certificate import SwitchCertificate

ENDED_SECONDS = 120.0
"""Maximum seconds to wait for the end of the task."""

Timeout = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Abort if the sources are read-only for longer than this, for example 30s.",
    ),
]


DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only make the checks, and show what the target lacks.")
]
Freeze = Annotated[
    bool,
    typer.Option(
        "--freeze",
        help="Make the sources read-only. Without this option, the command waits until somebody"
        " else makes them read-only.",
    ),
]
Abort = Annotated[
    bool,
    typer.Option("--abort", help="Undo the settings of a switch that was killed before it ended."),
]
Output = Annotated[
    Path | None,
    typer.Option(
        help="Write the certificate to this file, and as a page beside it (.html). Default:"
        " TASK.certificate.json beside the task file."
    ),
]


def switch(
    task_file: TaskFile,
    dry_run: DryRun = False,
    freeze: Freeze = False,
    timeout: Timeout = "60s",
    abort: Abort = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Switch from the shards to their targets: finish a running task, and certify its rows.

    All rows are compared first, while the sources are written to. Then they are read-only for some
    seconds: the task applies the rest, the changed rows are compared, AUTO_INCREMENT is set, and
    the task ends for good. If the command is aborted before the task has ended, everything
    continues as before.
    """
    from actors.switching.switch_lock import only_switch
    from actors.switching.switching import SwitchOptions, switch_record
    from config import load_task
    from replicator import logs
    from replicator.memory import set_largest_event
    from replicator.switch.certificate import SwitchCertificate

    task = load_task(task_file)
    logs.configure("warning", task=task.name)
    set_largest_event(task.limits.largest_event)
    options = SwitchOptions(freeze, _seconds(timeout))
    record = anyio.run(switch_record, task)
    path = output or task_file.with_name(f"{task.name}.certificate.json")
    if abort:
        _abort(task)
    elif record.finished:
        certificate = SwitchCertificate.from_json(record.certificate)
        _report(certificate, None, _written(certificate, path), as_json=as_json)
    elif dry_run:
        raise typer.Exit(_dry_run(task, freeze=freeze, as_json=as_json))
    else:
        for file in (path, path.with_suffix(".html")):
            _try_to_write(file)
        with only_switch(task.name):
            found = anyio.run(_switched, task, options)
        if found is None:
            complain(f"the switch of task {task.name} was aborted by a signal")
            raise typer.Exit(FAILED)
        written = _written(found.certificate, path)
        _report(found.certificate, found.seconds, written, as_json=as_json)


def _seconds(timeout: str) -> float:
    from config.values import parse_duration

    try:
        limit = parse_duration(timeout)
    except ValueError as error:
        raise typer.BadParameter(f"--timeout: {error}") from error
    if not isinstance(limit, timedelta) or limit.total_seconds() <= 0:
        raise typer.BadParameter(f"--timeout {timeout}: it has to be longer than nothing")
    return limit.total_seconds()


def _abort(task: Task) -> None:
    from actors.switching.switch_lock import only_switch
    from actors.switching.switching import abort

    with only_switch(task.name):
        undone = anyio.run(abort, task)
    what = "its sources have their former settings" if undone else "its sources were not changed"
    out.print(f"the switch of task {task.name} is aborted: {what}", markup=False, highlight=False)


def _dry_run(task: Task, *, freeze: bool, as_json: bool) -> int:
    """Show the checks; return the exit code."""
    from actors.switching.switching import checked
    from replicator.terminal.checks import checks_json, render_checks

    _, results = anyio.run(partial(checked, task, freeze=freeze, rehearsal=True))
    if as_json:
        tell(checks_json(task.name, results, (), ()))
    else:
        show(render_checks(results, verbose=True, allowed=("the switch", "begin")))
    return FAILED if any(result.state == "failed" for result in results) else 0


def _try_to_write(path: Path) -> None:
    """Fail before anything is done if a file can't be written at the end."""
    there = path.exists()
    try:
        path.open("ab").close()
    except OSError as error:
        raise typer.BadParameter(f"{path} can't be written: {error}") from error
    if not there:
        path.unlink()


def _written(certificate: SwitchCertificate, path: Path) -> tuple[Path, Path]:
    """Write the certificate and its page."""
    from replicator.switch.certificate_page import certificate_page

    page = path.with_suffix(".html")
    path.write_text(certificate.to_json() + "\n", encoding="utf-8")
    page.write_text(certificate_page(certificate), encoding="utf-8")
    return path, page


def _report(
    certificate: SwitchCertificate,
    seconds: float | None,
    files: tuple[Path, Path],
    *,
    as_json: bool,
) -> None:
    if as_json:
        values = {
            "task": certificate.task,
            "finished": True,
            "frozen_seconds": None if seconds is None else round(seconds, 3),
            "files": [str(file) for file in files],
            "certificate": json.loads(certificate.to_json()),
        }
        tell(shown_json(values, indent=2))
        return
    took = "" if seconds is None else f"; the sources were read-only for {seconds:.1f} s before"
    rows = sum(target.rows for target in certificate.targets)
    lines = [
        f"task {certificate.task} is finished{took}",
        f"  {len(certificate.targets)} targets, {rows:,} rows, equal to their shards",
        f"  certificate: {files[0]}, {files[1]}",
        "  the sources stay read-only: let the application use the targets now",
    ]
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


async def _switched(task: Task, options: SwitchOptions) -> Switched | None:
    """Make the switch, and wait until the task has ended; return None if a signal aborted it."""
    from actors.switching.switching import Switch
    from actors.task.resources.spark import TaskSpark

    spark = TaskSpark(task)
    found: list[Switched] = []
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_abort_by_signal, tasks.cancel_scope)
            made = Switch(task, options, spark.context, _tell)
            await _run(made, found)
            tasks.cancel_scope.cancel()
    finally:
        await spark.close()
    if found:
        await _until_ended(task.name)
    return found[0] if found else None


async def _run(made: Switch, found: list[Switched]) -> None:
    found.append(await made.run())


async def _until_ended(name: str) -> None:
    from actors.control.client import NotRunningError
    from actors.control.protocol import ControlError
    from actors.control.requests import status_of

    with anyio.move_on_after(ENDED_SECONDS):
        while True:
            try:
                await status_of(name)
            except NotRunningError:
                return
            except ControlError:
                pass
            await anyio.sleep(0.1)


async def _abort_by_signal(scope: anyio.CancelScope) -> None:
    wanted = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    with anyio.open_signal_receiver(*wanted) as signals:
        async for _ in signals:
            scope.cancel()


def _tell(step: str) -> None:
    err.print(step, markup=False, highlight=False, soft_wrap=True)


def changes(
    task_file: TaskFile,
    since_switch: Annotated[
        bool, typer.Option("--since-switch", help="Begin at the end of the switch.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Write the files to this folder. Default: TASK.changes beside the file."),
    ] = None,
) -> None:
    """Write the changes of the targets since the switch as SQL: the way back to the shards.

    Each shard gets a file. A change that no rule gives to one shard is in unplaced.sql, as a
    comment with its reason; the exit code is 1 then.
    """
    from actors.switching.since_switch import UNPLACED, write_changes
    from actors.switching.switching import switch_record
    from config import load_task
    from replicator import logs
    from replicator.switch.certificate import SwitchCertificate

    if not since_switch:
        raise typer.BadParameter("say since when: --since-switch")
    task = load_task(task_file)
    logs.configure("warning", task=task.name)
    record = anyio.run(switch_record, task)
    if not record.certificate:
        complain(f"task {task.name} was not switched: there is nothing to go back from")
        raise typer.Exit(FAILED)
    folder = output or task_file.with_name(f"{task.name}.changes")
    if folder.exists() and any(folder.iterdir()):
        raise typer.BadParameter(f"{folder} is not empty")
    certificate = SwitchCertificate.from_json(record.certificate)
    found = anyio.run(write_changes, task, certificate, folder)
    for member, number in sorted(found.statements.items()):
        out.print(f"{member}: {number:,} statements", markup=False, highlight=False)
    out.print(f"read up to {found.end}; files in {folder}", markup=False, highlight=False)
    if found.unplaced:
        unplaced = folder / UNPLACED
        complain(
            f"{found.unplaced:,} changes are of no certain shard: {unplaced}",
            remedies=[
                f"read the reasons in {unplaced}, and execute each change on the shard that you"
                " choose for it: no other file has it, and the shards lack it until then"
            ],
        )
        raise typer.Exit(FAILED)
