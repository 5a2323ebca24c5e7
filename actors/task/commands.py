"""The commands that take a task file: run, check, remove; and `replicator schema`.

Modules that run and check tasks are imported when they are used, so that other commands are fast.
"""

from __future__ import annotations

import gc
import os
import shlex
import signal
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer
from rich.text import Text

from actors.control.arguments import AsJson, OnChangedRules, RunOptions, TaskFile, TaskName, name_of
from actors.control.exit_codes import FAILED, exit_code, innermost
from replicator.kernels.compilations import COMPILATIONS
from replicator.printable_text import shown_json
from replicator.terminal.consoles import err, out, show, tell
from replicator.terminal.remedies import command_line

if TYPE_CHECKING:
    from actors.control.arguments import Until
    from config import Task
    from replicator.checks.result import CheckResult
    from replicator.checks.source.estimates import TargetEstimate
    from replicator.pipeline.copy.copy_preview import TargetPreview
    from replicator.pipeline.spark.direct_launch import StartedJava


class LogLevel(StrEnum):
    """The minimum level of logged records."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class OnError(StrEnum):
    """What a task does at a fault that needs the operator."""

    PAUSE = "pause"
    EXIT = "exit"


LogMaxSize = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Rotate the log file when it has this size, for example 100MiB, and keep five older"
        " ones beside it. Without this option, you can rotate the file by renaming it;"
        " a signal is not needed.",
    ),
]

StartTime = Annotated[
    str,
    typer.Option(
        metavar="TIME",
        help="Begin each source without a checkpoint at its first transaction of this time or"
        " later, for example '2026-11-20 10:00:00' (UTC), instead of at its meta: in the"
        " task file. For task-mode incremental.",
    ),
]

UntilEnd = Annotated[
    list[str] | None,
    typer.Option(
        metavar="END",
        help="End with 0 when everything up to END is applied: `now`, a time, or"
        " SOURCE=POSITION (FILE:OFFSET or a GTID set). Repeat the option for several sources."
        " The task may also apply later changes.",
    ),
]

MetricsAddress = Annotated[
    str,
    typer.Option(
        metavar="ADDRESS:PORT",
        help="Publish metrics for Prometheus, and the status as a page, at this address instead"
        " of metrics.listen of the task file.",
    ),
]

DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Write nothing to any server: make the checks that don't write, and show the target"
        " of each shard, the plan of the full copy, and its first rows as the copy would"
        " write them.",
    ),
]

Standby = Annotated[
    bool,
    typer.Option(
        "--standby",
        help="While another host runs the task, wait, and take over when that ends or is gone. If"
        " a host takes over from this one, wait again.",
    ),
]

Reopen = Annotated[
    bool,
    typer.Option(
        "--reopen",
        help="Run a task that `switch` has finished. Only if nothing has been written to its"
        " targets since: the task writes what the shards have.",
    ),
]

OnChangedRulesOption = Annotated[
    OnChangedRules,
    typer.Option(
        help="If the rules of the task file have changed since the rows on the target were"
        " written: stop with a fault, keep these rows as they are, or empty the targets"
        " concerned and copy them again."
    ),
]


def run(
    task_file: TaskFile,
    log_file: Annotated[
        Path | None, typer.Option(help="Append the log to this file, as JSON lines.")
    ] = None,
    log_max_size: LogMaxSize = "",
    log_level: Annotated[LogLevel, typer.Option(help="The lowest level to log.")] = LogLevel.INFO,
    on_error: Annotated[
        OnError, typer.Option(help="At a fault that needs you: pause and wait, or exit with 1.")
    ] = OnError.PAUSE,
    remove_meta: Annotated[
        bool, typer.Option("--remove-meta", help="Forget all saved progress and start over.")
    ] = False,
    on_changed_rules: OnChangedRulesOption = OnChangedRules.STOP,
    start_time: StartTime = "",
    until: UntilEnd = None,
    metrics: MetricsAddress = "",
    dry_run: DryRun = False,
    standby: Standby = False,
    reopen: Reopen = False,
) -> None:
    """Run a task in the foreground.

    SIGTERM, Ctrl-C and the end of its terminal (SIGHUP) end it, after it has saved its batch.
    """
    if dry_run:
        raise typer.Exit(_dry_run(task_file, start_time, remove_meta=remove_meta))
    # Garbage collection while modules are loaded would take a fifth of the time.
    gc.disable()
    import structlog

    from config import load_task
    from replicator import logs

    _outlive_rotations()
    task = load_task(task_file)
    environment = _keep_from_children(task)
    most_bytes = _log_size(log_max_size) if log_max_size else 0
    logs.configure(log_level.value, log_file, task=task.name, most_bytes=most_bytes)
    if keys := task.keys_without_effect:
        structlog.get_logger().warning("task-file.no-effect", keys=keys, findings=task.warnings)
    _keep_to_memory(task)
    for finding in task.open_files:
        structlog.get_logger().warning("task-file.open-to-others", finding=finding)
    if metrics:
        task = _with_metrics(task, metrics)
    if start_time:
        task = _with_start_time(task, start_time)
    end = _until(task, until) if until else None
    if remove_meta:
        task = task.model_copy(update={"remove_meta": True})
    if standby and task.remove_meta:
        raise typer.BadParameter(
            "--standby goes on from what another host has saved: leave out --remove-meta, and"
            " remove-meta of the task file"
        )
    # The first start of an installation compiles loops when their modules are imported.
    structlog.get_logger().info("task.step", step="programs")
    options = RunOptions(
        on_error is OnError.EXIT, on_changed_rules, end, standby, reopen, environment
    )
    raise typer.Exit(_run(task, task_file, options))


def _outlive_rotations() -> None:
    """Ignore SIGHUP without a terminal.

    Log rotation sends it, and the log file does not need it.
    """
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)


def check(
    task_file: TaskFile,
    keys: Annotated[
        str,
        typer.Option(
            help="How to look for key values that several shards have: `sample`, `sample:N` (about"
            " N values of all targets together), `exact` (all values, by a Spark job) or `none`."
        ),
    ] = "sample",
    as_json: AsJson = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show each check that passed.")
    ] = False,
) -> None:
    """Check everything that a task needs, and show the remedy for each failure.

    Failed checks come first, then warnings, then the targets with their shards and the rows and
    bytes that the sources estimate.
    """
    from config import load_task
    from replicator import logs
    from replicator.memory import set_largest_event
    from replicator.terminal.checks import checks_json, render_checks

    COMPILATIONS.at_first_call = True
    size = _sample_size(keys)
    task = load_task(task_file)
    _keep_from_children(task)
    # Only the results go to the standard output.
    logs.configure("warning", task=task.name)
    set_largest_event(task.limits.largest_event)
    results, targets = anyio.run(_check, task, keys, size)
    left_out = task.ignore_checking_items
    if as_json:
        tell(checks_json(task.name, results, left_out, targets))
    else:
        for warning in (*(task.warnings if verbose else ()), *task.open_files):
            out.print(Text.assemble(("! ", "yellow"), warning))
        if task.warnings and not verbose:
            keys = f"without effect in the task file: {', '.join(task.keys_without_effect)}"
            out.print(Text.assemble(("! ", "yellow"), f"{keys} (--verbose shows why)"))
        show(render_checks(results, left_out, targets, verbose=verbose))
    if any(result.state == "failed" for result in results):
        raise typer.Exit(FAILED)


def _dry_run(task_file: Path, start_time: str, *, remove_meta: bool) -> int:
    """Show what a run would do; return the exit code."""
    from config import load_task
    from replicator import logs
    from replicator.memory import set_largest_event
    from replicator.terminal.checks import render_checks

    COMPILATIONS.at_first_call = True
    task = load_task(task_file)
    _keep_from_children(task)
    logs.configure("warning", task=task.name)
    set_largest_event(task.limits.largest_event)
    if start_time:
        task = _with_start_time(task, start_time)
    if remove_meta:
        task = task.model_copy(update={"remove_meta": True})
    results, previews, resuming = anyio.run(_look, task)
    show(render_checks(results, task.ignore_checking_items))
    if resuming:
        out.print(f"task {task.name} has run before: it goes on from what it has saved")
    if previews is not None:
        from replicator.terminal.copy_preview import render_preview

        show(render_preview(previews))
    failed = any(result.state == "failed" for result in results)
    return FAILED if failed or any(preview.problem for preview in previews or ()) else 0


async def _look(task: Task) -> tuple[list[CheckResult], list[TargetPreview] | None, bool]:
    """Return the checks, the preview of a copy (None if unknown), and whether the run continues."""
    from actors.copying.dry_run import preview_copy
    from actors.task.startup.check_scope import task_to_check
    from replicator.checks.check_items import CONNECTION
    from replicator.checks.run.all_checks import run_checks

    found = await task_to_check(task, writes_nothing=True)
    results = await run_checks(found, frozenset(task.ignore_checking_items))
    unfit = {r.name for r in results if r.state == "failed"} & {CONNECTION, "routes"}
    if unfit:
        return results, None, found.resuming
    copies = task.task_mode != "incremental" and not found.resuming
    return results, await preview_copy(task, copies=copies), found.resuming


def remove(
    task_file: Annotated[
        str, typer.Argument(metavar="TASK.yaml", help="The task file: it names the target.")
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask.")] = False,
) -> None:
    """Remove a stopped task: drop its meta tables, and keep its targets as they are."""
    from actors.control.task_records import forget_record
    from actors.task.operator.removal import remains_of, remove_task
    from config import load_task
    from replicator.terminal.remains import render_remains, render_removed

    path = Path(task_file)
    if path.suffix not in (".yaml", ".yml") and not path.is_file():
        raise typer.BadParameter(
            f"{task_file} is no file: give the task file, which says where the meta tables are"
        )
    task = load_task(path)
    remains = anyio.run(remains_of, task)
    if not remains.tables:
        forget_record(task.name)
        out.print(f"task {task.name} has no meta tables in {task.meta_schema}: nothing to remove")
        return
    out.print(
        render_remains(task.name, map(str, remains.tables), remains.positions), soft_wrap=True
    )
    if not yes:
        if not sys.stdin.isatty():
            raise typer.BadParameter("nothing was removed: without a terminal, give --yes")
        typer.confirm("Remove it?", abort=True)
    anyio.run(remove_task, task)
    forget_record(task.name)
    out.print(render_removed(task.name, [name.quoted for name in remains.targets]), soft_wrap=True)


def _log_size(given: str) -> int:
    from config.values import parse_size

    try:
        size = parse_size(given)
    except ValueError as error:
        raise typer.BadParameter(f"--log-max-size: {error}") from error
    if not isinstance(size, int) or size < 1 << 16:
        raise typer.BadParameter(f"--log-max-size {given}: it has to be 64KiB or more")
    return size


def _with_metrics(task: Task, address: str) -> Task:
    """Return the task with another address for its metrics. Raises BadParameter."""
    from config.processing import Metrics, host_and_port

    try:
        host_and_port(address)
    except ValueError as error:
        raise typer.BadParameter(f"--metrics {address}: {error}") from error
    return task.model_copy(update={"metrics": Metrics(listen=address)})


def _with_start_time(task: Task, given: str) -> Task:
    """Return the task with a start time for each of its sources. Raises BadParameter."""
    from config.models import Meta
    from config.values import parse_moment

    if task.task_mode != "incremental":
        raise typer.BadParameter(
            f"--start-time is for task-mode incremental, and this task has {task.task_mode}, which"
            " goes on from where its copy began"
        )
    try:
        meta = Meta.model_validate({"start-time": parse_moment(given)})
    except ValueError as error:
        raise typer.BadParameter(f"--start-time: {error}") from error
    instances = [i.model_copy(update={"meta": meta}) for i in task.mysql_instances]
    return task.model_copy(update={"mysql_instances": tuple(instances)})


def _until(task: Task, given: list[str]) -> Until:
    from actors.control.end_positions import parse_until

    if task.task_mode == "full":
        raise typer.BadParameter("--until: a task with task-mode full ends by itself")
    try:
        return parse_until(given, [i.source_id for i in task.mysql_instances])
    except ValueError as error:
        raise typer.BadParameter(f"--until: {error}") from error


def _keep_to_memory(task: Task) -> None:
    """Limit what servers may send, and log the sizes derived from the available memory."""
    import structlog

    from replicator.memory import (
        MIB,
        batch_bytes,
        granted_memory,
        largest_event,
        set_largest_event,
        set_memory,
    )
    from replicator.pipeline.spark.java import driver_memory

    set_memory(task.memory)
    set_largest_event(task.limits.largest_event)
    structlog.get_logger().info(
        "memory.settings",
        available_mib=granted_memory() // MIB,
        batch_mib=round(batch_bytes(task.writer.batch_bytes) / MIB, 2),
        largest_event_mib=largest_event() // MIB,
        java_heap=driver_memory(task.spark.conf),
    )


def _keep_from_children(task: Task) -> dict[str, str]:
    """Remove the variables with passwords, which the JVM and its workers would get; return them."""
    from replicator.pipeline.spark.direct_launch import hide_variables

    hide_variables(task.variables)
    return {name: os.environ.pop(name) for name in task.variables if name in os.environ}


def _log_compiling() -> None:
    import structlog

    reason = "the first start of this version on this host"
    structlog.get_logger().info("loops.compiling", reason=reason)


def _run(task: Task, task_file: Path, options: RunOptions) -> int:
    """Run a task; return the exit code. Errors are logged; a terminal also shows a failed check."""
    import structlog

    log = structlog.get_logger()
    try:
        java = _begin_java(task)
        COMPILATIONS.report = _log_compiling
        # This import takes as long as the start of Java, which runs at the same time.
        from actors.task.resources.spark import TaskSpark

        spark = TaskSpark(task, java)
        if java is not None and sys.platform == "linux":
            # Modules loaded before the fork are in memory only once, so all modules of the workers
            # are loaded
            # here.
            import replicator.pipeline.apply.batch  # noqa: F401
            from replicator.pipeline import worker_daemon
            from replicator.pipeline.spark.worker_fork import start_worker_fork

            # Without the fork, each worker loads all modules.
            with suppress(OSError):
                start_worker_fork(java.folder, worker_daemon.load, worker_daemon.manage)
        # This import precedes Spark's thread, which changes the environment that modules read.
        from actors.task.foreground import run_in_foreground

        if COMPILATIONS.loops:
            seconds = round(COMPILATIONS.seconds, 1)
            log.info("loops.compiled", loops=COMPILATIONS.loops, seconds=seconds)
        spark.begin()
        gc.freeze()
        gc.enable()
        return run_in_foreground(task, spark, err, options)
    except Exception as error:
        from actors.task.outcome import remedies_of
        from actors.task.startup.prechecks import PrecheckError
        from replicator.pipeline.spark.java import JavaMissingError
        from replicator.terminal.checks import render_checks

        cause = innermost(error)
        code = FAILED if isinstance(cause, JavaMissingError) else exit_code(cause)
        if isinstance(cause, PrecheckError):
            code = FAILED
            if err.is_terminal:
                show(render_checks(cause.results, task.ignore_checking_items), err)
            for result in cause.failed:
                log.error(
                    "check.failed",
                    check=result.name,
                    where=result.where,
                    finding=result.finding,
                    remedies=result.remedies,
                )
        remedies = remedies_of(cause, task.name, task_file)
        log.error("task.failed", error=str(cause), remedies=remedies, exc_info=code is None)
        return FAILED if code is None else code


def _begin_java(task: Task) -> StartedJava | None:
    """Start the Java of a local Spark before anything else. Raises JavaMissingError."""
    from replicator.pipeline.spark.direct_launch import begin_java
    from replicator.pipeline.spark.java import check_java

    check_java()
    return begin_java(task.spark.master, task.spark.conf)


OfSource = Annotated[str, typer.Option(help="The source; by default any.")]
ShardTable = Annotated[
    str,
    typer.Option(
        help="The shard, as schema.table; put a part with a dot or a backquote in backquotes."
    ),
]


def list_structures(
    task: TaskName, source: OfSource = "", table: ShardTable = "", as_json: AsJson = False
) -> None:
    """Show the structures by which the task reads the rows of shards."""
    from actors.control.requests import command

    wanted = {"action": "list", "source": source, "table": table}
    reply = anyio.run(command, name_of(task), "schema", wanted)
    if as_json:
        tell(shown_json(dict(reply.body), indent=2))
    else:
        _print_structures(reply.body["structures"])


def set_structure(
    task: TaskName,
    table: ShardTable = "",
    source: OfSource = "",
    file: Annotated[
        Path | None, typer.Option(help="A file with a CREATE TABLE of any name.")
    ] = None,
    sql: Annotated[str, typer.Option(help="The CREATE TABLE itself.")] = "",
    from_source: Annotated[
        bool, typer.Option("--from-source", help="The structure that the source has now.")
    ] = False,
    from_target: Annotated[
        bool, typer.Option("--from-target", help="The structure that the target has now.")
    ] = False,
) -> None:
    """Declare the structure of rows whose unknown structure blocks a task."""
    from actors.control.requests import command, status_of

    if [file is not None, bool(sql), from_source, from_target].count(True) != 1:
        raise typer.BadParameter("give one of --file, --sql, --from-source and --from-target")
    if file is not None:
        try:
            sql = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(f"{file} can't be read: {error}") from error
    given = "source" if from_source else "target" if from_target else "sql"
    wanted = {"action": "set", "source": source, "table": table, "given": given, "sql": sql}
    name = name_of(task)
    reply = anyio.run(command, name, "schema", wanted)
    _print_structures(reply.body["structures"])
    paused = anyio.run(status_of, name).state == "paused"
    target = [w for s in reply.body["structures"] if not paused for w in ("--target", s["target"])]
    resume = shlex.join(["replicator", "resume", name, *target])
    out.print(f"{'the task' if paused else 'the target'} is paused:")
    show(command_line(resume))


def _print_structures(structures: list[dict[str, Any]]) -> None:
    for held in structures:
        since = f"since {held['since']}" if held["since"] else "from the start"
        doubt = f": {held['doubt']}" if held["doubt"] else ""
        place = f"-- {held['source']} {held['table']} -> {held['target']}"
        tell(f"{place}, {held['provenance']}, {since}{doubt}")
        tell(f"{held['create']};\n" if held["create"] else "-- no structure\n")


def _sample_size(keys: str) -> int | None:
    """Return the number in ``sample:N``; None if there is none. Raises BadParameter."""
    kind, _, size = keys.partition(":")
    if keys in ("sample", "exact", "none"):
        return None
    if kind == "sample" and size.isascii() and size.isdigit() and int(size):
        return int(size)
    raise typer.BadParameter(
        f"--keys {keys}: write sample, sample:N with a number N from 1 on, exact or none"
    )


async def _check(
    task: Task, keys: str, size: int | None
) -> tuple[list[CheckResult], list[TargetEstimate]]:
    from actors.task.startup.check_scope import task_to_check
    from replicator.checks.check_items import ALL, CONNECTION
    from replicator.checks.run.all_checks import run_checks
    from replicator.checks.source.estimates import estimate_targets

    found = await task_to_check(task)
    results = await run_checks(found, frozenset(task.ignore_checking_items))
    estimates = [] if ALL in task.ignore_checking_items else await estimate_targets(found)
    away = any(r.name == CONNECTION and r.state == "failed" for r in results)
    # A task that has run before would have reported the values that its shards share.
    if away or keys == "none" or (keys == "sample" and found.resuming):
        return results, estimates
    from actors.task.startup.key_check import KeyCheck, KeyCheckScope

    scope = KeyCheckScope(exact=keys == "exact")
    if size is not None:
        scope = KeyCheckScope(size=size)
    return results + await KeyCheck(task, scope).run(), estimates
