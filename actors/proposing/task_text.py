"""The text of a proposed task file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from actors.proposing.proposals import Proposal, ProposedRoute
from actors.proposing.variables import SHARDS_PASSWORD, TARGET_PASSWORD
from replicator.checks.schema.key_collisions import distinguishing
from replicator.mysql.connection.address import DatabaseAddress
from replicator.mysql.names import Member

_SHOWN = 3
"""Maximum number of shards that a comment names."""


def task_text(
    name: str, sources: Mapping[str, DatabaseAddress], target: DatabaseAddress, proposal: Proposal
) -> str:
    """Return a commented task file with the proposed routes."""
    return "\n".join(
        [*_head(name, sources, target, proposal), *_routes(proposal), *_alone(proposal), ""]
    )


def _head(
    name: str, sources: Mapping[str, DatabaseAddress], target: DatabaseAddress, proposal: Proposal
) -> Iterator[str]:
    yield "# Proposed by `replicator init`. Read the routes before you run it."
    yield f"# Before the start: export {SHARDS_PASSWORD}=… {TARGET_PASSWORD}=…"
    yield ""
    yield f"name: {json.dumps(name)}"
    yield "task-mode: all               # copy what is there, then follow the binlogs"
    yield "shard-mode: pessimistic      # a schema change waits until all shards have made it"
    yield "meta-schema: dm_meta         # the saved state of the task, on the target"
    yield ""
    yield "target-database:"
    yield f"  {_login(target, TARGET_PASSWORD)}"
    yield ""
    yield "sources:"
    for source, address in sources.items():
        yield f"  - source-id: {source}"
        yield f"    from: {{{_login(address, SHARDS_PASSWORD, ', ')}}}"
    yield ""
    yield "mysql-instances:"
    rules = f"&routes [{', '.join(key for key, _ in _keyed(proposal))}]"
    for source in sources:
        yield f"  - {{source-id: {source}, block-allow-list: shards, route-rules: {rules}}}"
        rules = "*routes"
    yield ""


def _login(address: DatabaseAddress, variable: str, between: str = "\n  ") -> str:
    fields = (
        f"host: {json.dumps(address.host)}",
        f"port: {address.port}",
        f"user: {json.dumps(address.user)}",
        f'password: "${{{variable}}}"',
    )
    return between.join(fields)


def _routes(proposal: Proposal) -> Iterator[str]:
    yield "# A pattern that starts with ~ is a regular expression."
    yield "routes:"
    for key, route in _keyed(proposal):
        names = [f"{source} {table}" for source, table in route.shards]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        yield f"  {key}:    # {_one_line(', '.join(names[:_SHOWN]))}{more}"
        yield f"    schema-pattern: {json.dumps(route.schema_pattern)}"
        yield f"    table-pattern: {json.dumps(route.table_pattern)}"
        yield f"    target-schema: {json.dumps(route.target.schema)}"
        yield f"    target-table: {json.dumps(route.target.table)}"
        yield from _extracted(route)
    yield ""
    yield "# Only these tables are replicated."
    yield "block-allow-list:"
    yield "  shards:"
    yield "    do-tables:"
    for _, route in _keyed(proposal):
        schema, table = json.dumps(route.schema_pattern), json.dumps(route.table_pattern)
        yield f"      - {{db-name: {schema}, tbl-name: {table}}}"


def _extracted(route: ProposedRoute) -> Iterator[str]:
    """Yield the columns that distinguish the shards, as a comment."""
    yield "    # If shards have rows with equal keys, the target's key needs columns that"
    yield "    # tell the shard (`check` prints the statement that adds them):"
    for part in distinguishing({Member(source, name) for source, name in route.shards}):
        column = f"target-column: shard_{part}"
        yield f'    # extract-{part}: {{{part}-regexp: "(.*)", {column}}}'


def _alone(proposal: Proposal) -> Iterator[str]:
    if proposal.alone:
        yield ""
        yield "# Not replicated, since no other table has a name like these:"
    for source, table in proposal.alone:
        yield f"#   {source} {_one_line(str(table))}"


def _keyed(proposal: Proposal) -> list[tuple[str, ProposedRoute]]:
    """Return the routes with their names in the task file."""
    tables = [route.target.table for route in proposal.routes]
    return [
        (json.dumps(to.table if tables.count(to.table) == 1 else f"{to.schema}.{to.table}"), route)
        for route in proposal.routes
        for to in (route.target,)
    ]


def _one_line(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
