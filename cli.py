"""The command line: all commands, which are defined in the modules of their rooms.

Exit codes: 0 success, 1 failure, 2 wrong usage or configuration, 3 no such running task.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Annotated, ParamSpec

import typer

from actors.comparing.commands import compare
from actors.control.commands import (
    pause,
    recopy,
    relay,
    reload,
    resume,
    retire,
    shards,
    status,
    stop,
    wait,
)
from actors.control.exit_codes import (
    ASKING_CODES,
    CHANGES_CODES,
    CHECK_CODES,
    COMPARE_CODES,
    DEMO_CODES,
    ENCRYPT_CODES,
    FILES_CODES,
    INCOMPLETE,
    REMOVE_CODES,
    REPORT_CODES,
    RUN_CODES,
    SERVICE_CODES,
    STATUS_CODES,
    SWITCH_CODES,
    WAIT_CODES,
    WRONG_USAGE,
    exit_code,
    innermost,
)
from actors.proposing.commands import init
from actors.reading.commands import inject, list_overrides, replace, skip
from actors.reconciling.commands import reconcile
from actors.reporting.commands import report
from actors.service.commands import service
from actors.setup.commands import encrypt, files
from actors.sharding.commands import show_ddl_locks, unlock_ddl_lock
from actors.switching.commands import changes, switch
from actors.task.commands import check, list_structures, remove, run, set_structure
from actors.validating.commands import validation
from replicator.demo.commands import demo
from replicator.terminal.consoles import (
    complain,
    complains_as_json,
    err,
    errors_as_json,
    is_typed,
    out,
)

P = ParamSpec("P")


def with_messages(
    command: Callable[P, None], *, unable: int | None = None, logs: bool = False
) -> Callable[P, None]:
    """Turn errors that the user can fix into a message and an exit code.

    ``unable`` is the exit code if the command could not do its work, whatever the reason. ``logs``
    says that the command's standard error output is a log, which consists of JSON unless it is a
    terminal.
    """

    def as_json(given: Mapping[str, object]) -> bool:
        return not (err.is_terminal if logs else is_typed()) or bool(given.get("as_json"))

    @wraps(command)
    def run_command(*args: P.args, **kwargs: P.kwargs) -> None:
        with errors_as_json(as_json(kwargs)):
            checked(*args, **kwargs)

    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except typer.Exit:
            raise
        except typer.BadParameter as error:
            if not complains_as_json():
                raise
            complain(error.format_message())
            raise typer.Exit(WRONG_USAGE) from None
        except KeyboardInterrupt:
            raise typer.Exit(unable or 0) from None
        except Exception as error:
            cause = innermost(error)
            code = exit_code(cause)
            if code is None:
                if unable is None:
                    raise
                traceback.print_exception(error)
                raise typer.Exit(unable) from None
            remedies = getattr(cause, "remedies", ())
            # The text of a fault already contains its remedies.
            message = getattr(cause, "message", "") if remedies else str(cause)
            complain(message, where=getattr(cause, "where", ""), remedies=remedies)
            raise typer.Exit(unable or code) from None

    return run_command


def _print_version(wanted: bool) -> None:
    if wanted:
        # Imported here, because no other command needs it, and the import is slow.
        import importlib.metadata

        out.print(f"replicator {importlib.metadata.version('replicator')}", highlight=False)
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and end."
        ),
    ] = False,
) -> None:
    """Merge the tables of a sharded MySQL / MariaDB estate into one, and keep it merged."""


app = typer.Typer(
    name="replicator",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(options)
app.command(epilog=RUN_CODES)(with_messages(run, logs=True))
app.command(epilog=CHECK_CODES)(with_messages(init))
app.command(epilog=CHECK_CODES)(with_messages(check))
app.command(epilog=COMPARE_CODES)(with_messages(compare, unable=INCOMPLETE))
app.command(epilog=STATUS_CODES)(with_messages(status))
app.command(epilog=WAIT_CODES)(with_messages(wait))
app.command(epilog=SWITCH_CODES)(with_messages(switch))
app.command(epilog=CHANGES_CODES)(with_messages(changes))
for _command in (
    pause,
    resume,
    stop,
    recopy,
    reload,
    reconcile,
    relay,
    retire,
    shards,
    show_ddl_locks,
    unlock_ddl_lock,
    validation,
):
    app.command(epilog=ASKING_CODES)(with_messages(_command))
app.command(epilog=REPORT_CODES)(with_messages(report))
app.command(epilog=SERVICE_CODES)(with_messages(service))
app.command(epilog=REMOVE_CODES)(with_messages(remove))
app.command(epilog=ENCRYPT_CODES)(with_messages(encrypt))
app.command(epilog=FILES_CODES)(with_messages(files))
# The demo writes to its terminal itself.
app.command(epilog=DEMO_CODES)(demo)

binlog = typer.Typer(
    no_args_is_help=True, help="Overrides of schema changes that can't be executed."
)
binlog.command("skip", epilog=ASKING_CODES)(with_messages(skip))
binlog.command("replace", epilog=ASKING_CODES)(with_messages(replace))
binlog.command("inject", epilog=ASKING_CODES)(with_messages(inject))
binlog.command("list", epilog=ASKING_CODES)(with_messages(list_overrides))
app.add_typer(binlog, name="binlog")

schema = typer.Typer(
    no_args_is_help=True, help="The structures that rows of the shards are read by."
)
schema.command("list", epilog=ASKING_CODES)(with_messages(list_structures))
schema.command("set", epilog=ASKING_CODES)(with_messages(set_structure))
app.add_typer(schema, name="schema")


def main() -> None:
    """Run the console script."""
    app()


if __name__ == "__main__":
    main()
