"""The command line: one thin function per command.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 no such running task.
"""

from __future__ import annotations

import importlib.metadata
import json
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import anyio
import pymysql.err
import structlog
import typer
from rich.console import Console
from rich.live import Live
from rich.text import Text

import config
from actors.control.client import NotRunningError
from actors.control.protocol import ControlError
from actors.control.requests import command, pause_task, status_of, stop_task
from actors.control.server import AlreadyRunningError
from actors.task.check_scope import task_to_check
from actors.task.prechecks import PrecheckError
from replicator import logs
from replicator.checks import CheckResult, run_checks
from replicator.mysql.connection import DatabaseUnavailableError
from replicator.routing.routes import RouteError
from replicator.status import StatusFormatError
from replicator.terminal.checks import checks_json, render_checks
from replicator.terminal.locks import locks_json, render_locks
from replicator.terminal.status import fault_panel, render

FAILED, WRONG_USAGE, NOT_RUNNING = 1, 2, 3
WATCH_SECONDS = 1.0
"""Time between two looks of ``status --watch``."""

app = typer.Typer(
    name="replicator",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
binlog = typer.Typer(no_args_is_help=True, help="Rules for schema changes that can't be executed.")
app.add_typer(binlog, name="binlog")
out = Console()
err = Console(stderr=True)

TaskFile = Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file.")]
TaskName = Annotated[
    str, typer.Argument(metavar="TASK", help="The name of a running task, or its task file.")
]
Statements = Annotated[
    list[str], typer.Argument(metavar="STATEMENT…", help="DDL, written like the shard's own.")
]
OfSource = Annotated[
    str, typer.Option(help="The source; else the one that is held up, or all with --binlog-pos.")
]
AtPosition = Annotated[
    str, typer.Option(help="FILE:OFFSET of the statement; else the one that holds the task up.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


class LogLevel(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class OnError(StrEnum):
    """What a task does on an error that it can't get over by itself."""

    PAUSE = "pause"
    EXIT = "exit"


class UnlockAction(StrEnum):
    """What becomes of the statement of a lock that is unlocked."""

    EXEC = "exec"
    SKIP = "skip"


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"replicator {importlib.metadata.version('replicator')}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Merge the tables of a sharded MySQL / MariaDB estate into one, and keep it merged."""


@app.command()
def run(
    task_file: TaskFile,
    log_file: Annotated[
        Path | None, typer.Option(help="Append the log to this file, as JSON lines.")
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="How much to log.")] = LogLevel.INFO,
    on_error: Annotated[
        OnError, typer.Option(help="On an error that needs you: pause and wait, or exit with 1.")
    ] = OnError.PAUSE,
    remove_meta: Annotated[
        bool, typer.Option("--remove-meta", help="Forget the checkpoint and start anew.")
    ] = False,
) -> None:
    """Run a task in the foreground. SIGTERM or Ctrl-C finishes the batch, saves and ends it."""
    with _expected_errors():
        task = config.load_task(task_file)
        logs.configure(log_level.value, log_file, task=task.name)
        log = structlog.get_logger()
        for warning in task.warnings:
            log.warning("task-file.no-effect", finding=warning)
        if remove_meta:
            task = task.model_copy(update={"remove_meta": True})
        code = _run(task, exit_on_error=on_error is OnError.EXIT)
    raise typer.Exit(code)


@app.command()
def check(task_file: TaskFile, as_json: AsJson = False) -> None:
    """Try out everything a task needs, and say how to mend what is missing."""
    with _expected_errors():
        task = config.load_task(task_file)
        results = anyio.run(_check, task)
        if as_json:
            typer.echo(checks_json(task.name, results))
        else:
            for warning in task.warnings:
                out.print(Text.assemble(("! ", "yellow"), warning))
            out.print(render_checks(results))
    if any(result.state == "failed" for result in results):
        raise typer.Exit(FAILED)


@app.command()
def status(
    task: TaskName,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep looking until Ctrl-C.")] = False,
) -> None:
    """Show what a running task does: its sources, targets, and what it waits for."""
    if as_json and watch:
        raise typer.BadParameter("--json and --watch don't go together: run --json repeatedly")
    with _expected_errors():
        name = _task_name(task)
        if watch:
            anyio.run(_watch, name)
            return
        found = anyio.run(status_of, name)
    if as_json:
        typer.echo(found.to_json())
    else:
        out.print(render(found))


@app.command()
def pause(task: TaskName) -> None:
    """Let a running task finish its batch and save, and wait until it has."""
    with _expected_errors():
        name = _task_name(task)
        found = anyio.run(pause_task, name)
    if found.state != "paused":
        err.print(f"task {name} is {found.state}", markup=False, highlight=False)
        raise typer.Exit(FAILED)
    out.print(f"task {name} is paused", markup=False, highlight=False)
    if found.error:
        out.print(fault_panel(found.error, f"task {name}"))


@app.command()
def resume(task: TaskName) -> None:
    """Let a paused task go on from where it saved."""
    with _expected_errors():
        name = _task_name(task)
        anyio.run(command, name, "resume")
    out.print(f"task {name} goes on", markup=False, highlight=False)


@app.command()
def stop(task: TaskName) -> None:
    """Let a running task finish its batch, save and end, and wait until its process has ended."""
    with _expected_errors():
        name = _task_name(task)
        anyio.run(stop_task, name)
    out.print(f"task {name} has ended", markup=False, highlight=False)


@app.command()
def show_ddl_locks(task: TaskName, as_json: AsJson = False) -> None:
    """Show the schema changes that wait for shards, what they wait for, and the ways out."""
    with _expected_errors():
        found = anyio.run(status_of, _task_name(task))
    if as_json:
        typer.echo(locks_json(found.task, found.locks))
    else:
        out.print(render_locks(found.locks))


@app.command()
def unlock_ddl_lock(
    task: TaskName,
    lock: Annotated[
        str, typer.Argument(metavar="LOCK_ID", help="The lock's id, as show-ddl-locks tells it.")
    ],
    owner: Annotated[
        str, typer.Option(help="The source whose statement counts; else that of the lock's owner.")
    ] = "",
    action: Annotated[
        UnlockAction, typer.Option(help="Execute the statement on the target, or leave it out.")
    ] = UnlockAction.EXEC,
) -> None:
    """Resolve a lock without the shards that lack its statement, or have another one."""
    skip = action is UnlockAction.SKIP
    with _expected_errors():
        name = _task_name(task)
        arguments = {"lock": lock, "owner": owner, "skip": skip}
        anyio.run(command, name, "unlock-ddl-lock", arguments)
    doing = "passed over" if skip else "executed"
    out.print(f"lock {lock} is unlocked: its statement is being {doing}", markup=False)


@binlog.command()
def skip(task: TaskName, source: OfSource = "", binlog_pos: AtPosition = "") -> None:
    """Execute nothing on the target for a statement; its shard counts as having it."""
    _give_rule(task, "skip", [], source, binlog_pos)


@binlog.command()
def replace(
    task: TaskName, statements: Statements, source: OfSource = "", binlog_pos: AtPosition = ""
) -> None:
    """Execute other statements in place of one."""
    _give_rule(task, "replace", statements, source, binlog_pos)


@binlog.command()
def inject(
    task: TaskName, statements: Statements, source: OfSource = "", binlog_pos: AtPosition = ""
) -> None:
    """Execute other statements on the target before one."""
    _give_rule(task, "inject", statements, source, binlog_pos)


@binlog.command(name="list")
def list_rules(task: TaskName, as_json: AsJson = False) -> None:
    """Show the overrides that were given, until what they are for is saved."""
    with _expected_errors():
        reply = anyio.run(command, _task_name(task), "binlog", {"action": "list"})
    if as_json:
        typer.echo(json.dumps(dict(reply.body), indent=2, ensure_ascii=False))
    else:
        _print_overrides(reply.body["overrides"])


@app.command()
def demo(
    seconds: Annotated[int, typer.Option(min=1, help="How long the shards are written to.")] = 30,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave all running at the end, to look around.")
    ] = False,
) -> None:
    """Start private databases, merge their shards while they are written to, and prove it."""
    from replicator.demo.show import play

    raise typer.Exit(play(run_seconds=seconds, keep=keep))


def _give_rule(task: str, action: str, statements: list[str], source: str, position: str) -> None:
    with _expected_errors():
        name = _task_name(task)
        given = {"statements": statements, "source": source, "position": position}
        reply = anyio.run(command, name, "binlog", {"action": action, **given})
        _print_overrides(reply.body["overrides"])
        if anyio.run(status_of, name).state == "paused":
            out.print(f"the task is paused: replicator resume {name}", markup=False)


def _print_overrides(overrides: list[dict[str, Any]]) -> None:
    for override in overrides:
        place = f"{override['source']} {override['position']} {override['action']}"
        typer.echo(" ".join([place, *map(shlex.quote, override["statements"])]))


def main() -> None:
    """The console script."""
    app()


async def _check(task: config.Task) -> list[CheckResult]:
    return await run_checks(await task_to_check(task), frozenset(task.ignore_checking_items))


def _run(task: config.Task, *, exit_on_error: bool) -> int:
    # Here, not above: Spark comes along, which the other commands need not wait for.
    from actors.task.foreground import MissingProgramError, run_in_foreground

    try:
        return run_in_foreground(task, err, exit_on_error=exit_on_error)
    except MissingProgramError as error:
        err.print(Text.assemble(("error: ", "bold red"), str(error)), soft_wrap=True)
        raise typer.Exit(FAILED) from None
    except Exception as error:
        cause = _innermost(error)
        code = _exit_code(cause)
        if isinstance(cause, PrecheckError):
            err.print(render_checks(cause.results))
        structlog.get_logger().error("task.failed", error=str(cause), exc_info=code is None)
        if code is None:
            raise
        raise typer.Exit(code) from None


async def _watch(name: str) -> None:
    with Live(render(await status_of(name)), console=out, auto_refresh=False) as live:
        while True:
            await anyio.sleep(WATCH_SECONDS)
            live.update(render(await status_of(name)), refresh=True)


def _task_name(task: str) -> str:
    path = Path(task)
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return config.load_task(path).name
    return task


@contextmanager
def _expected_errors() -> Iterator[None]:
    """Turn the errors that a user can do something about into a message and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(0) from None
    except Exception as error:
        code = _exit_code(_innermost(error))
        if code is None:
            raise
        message = Text.assemble(("error: ", "bold red"), str(_innermost(error)))
        err.print(message, soft_wrap=True)
        raise typer.Exit(code) from None


def _innermost(error: BaseException) -> BaseException:
    # A task group wraps what its tasks raise, however few they are.
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _exit_code(error: BaseException) -> int | None:
    match error:
        case NotRunningError():
            return NOT_RUNNING
        case config.TaskFileError() | logs.LogFileError() | RouteError():
            return WRONG_USAGE
        case ControlError() | AlreadyRunningError() | StatusFormatError():
            return FAILED
        case PrecheckError():
            return FAILED
        case DatabaseUnavailableError() | pymysql.err.OperationalError():
            return FAILED
    return None


if __name__ == "__main__":
    main()
