"""`replicator init`: writes a task file for given servers, with routes for their sharded tables."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from actors.proposing.variables import SHARDS_PASSWORD, TARGET_PASSWORD
from replicator.kernels.compilations import COMPILATIONS
from replicator.terminal.consoles import out

if TYPE_CHECKING:
    from replicator.mysql.connection.address import DatabaseAddress
    from replicator.mysql.names import TableName

Sources = Annotated[
    list[str],
    typer.Option(
        "--source",
        metavar="USER@HOST:PORT",
        help="A server with shards. Repeat the option for several. The password of all of them is"
        f" in the environment ({SHARDS_PASSWORD}), or the command asks for it.",
    ),
]
Target = Annotated[
    str,
    typer.Option(
        "--target",
        metavar="USER@HOST:PORT",
        help=f"The server to merge into; its password: {TARGET_PASSWORD}.",
    ),
]


def init(
    source: Sources,
    target: Target,
    output: Annotated[
        Path, typer.Option(help="The task file to write; it must not exist yet.")
    ] = Path("task.yaml"),
    name: Annotated[str, typer.Option(help="The name of the task.")] = "merge",
) -> None:
    """Write a task file for these servers, and check it.

    Tables whose names differ only in numbers (shop_1.orders_3, shop_2.orders_4), and tables with
    the same name on several servers, are taken as shards of one table (shop.orders). Other tables
    are listed in comments. Read the file before you run it.
    """
    COMPILATIONS.at_first_call = True
    from actors.proposing.proposals import propose
    from actors.proposing.task_text import task_text
    from actors.task.commands import check

    if output.exists():
        raise typer.BadParameter(f"{output} exists already: name another file by --output")
    passwords = {key: _password(key) for key in (SHARDS_PASSWORD, TARGET_PASSWORD)}
    sources = {
        f"shard-{number}": _address("--source", text, passwords[SHARDS_PASSWORD])
        for number, text in enumerate(source, 1)
    }
    to = _address("--target", target, passwords[TARGET_PASSWORD])
    proposal = propose(anyio.run(_tables, sources))
    if not proposal.routes:
        raise typer.BadParameter(
            "no tables of these servers have names that differ in numbers only, or are the same on"
            " several servers: write the task file by hand (docs/start/tutorial.md)"
        )
    output.write_text(task_text(name, sources, to, proposal), encoding="utf-8")
    shards = sum(len(route.shards) for route in proposal.routes)
    out.print(
        f"{output}: {shards} shards of {len(proposal.routes)} tables; its checks:",
        markup=False,
        highlight=False,
    )
    # The file takes the passwords from the environment.
    os.environ.update(passwords)
    check(output, "sample")


async def _tables(sources: Mapping[str, DatabaseAddress]) -> dict[str, list[TableName]]:
    """Return the tables of all sources. Raises BadParameter."""
    from pymysql.err import MySQLError

    from replicator.mysql.connection.asyncio_connection import (
        Connection,
        DatabaseUnavailableError,
    )
    from replicator.mysql.errors import error_text
    from replicator.schema.structure.inspection import list_tables

    found: dict[str, list[TableName]] = {}

    async def read(source: str, address: DatabaseAddress) -> None:
        with closing(Connection(address)) as connection:
            try:
                found[source] = await list_tables(connection)
            except DatabaseUnavailableError as error:
                failures[source] = str(error)
            except MySQLError as error:
                failures[source] = f"{address}: {error_text(error)}"

    failures: dict[str, str] = {}
    async with anyio.create_task_group() as group:
        for source, address in sources.items():
            group.start_soon(read, source, address)
    if failures:
        raise typer.BadParameter(
            "; ".join(failures[source] for source in sources if source in failures)
        )
    return {source: found[source] for source in sources}


def _address(option: str, text: str, password: str) -> DatabaseAddress:
    """Return the address that a text contains. Raises BadParameter."""
    from replicator.mysql.connection.address import DatabaseAddress

    user, _, server = text.rpartition("@")
    host, _, port = server.rpartition(":")
    if not (user and host and port.isascii() and port.isdigit()):
        raise typer.BadParameter(f"{option} {text}: write USER@HOST:PORT")
    return DatabaseAddress(host.strip("[]"), int(port), user, password)


def _password(variable: str) -> str:
    """Return the value of a variable, or prompt for it. Raises BadParameter."""
    value = os.environ.get(variable)
    if value is None and not sys.stdin.isatty():
        raise typer.BadParameter(f"export {variable} first: the task file takes it from there")
    return str(typer.prompt(variable, hide_input=True, default="")) if value is None else value
