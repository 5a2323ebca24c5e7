"""Tables that the routes take and the account can't see, with rights of every kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replicator.checks.result import CheckResult
from replicator.checks.source.source_checks import check_hidden_tables
from replicator.mysql.connection.asyncio_connection import Connection
from replicator.routing.allow_list import AllowList, TableFilter
from replicator.routing.routes import Router, RouteRule, Routes
from replicator.sandbox.server import DatabaseServer
from replicator.schema.structure.inspection import list_tables
from tests.support.tasks.checking import address, routed

ROUTES = (("shop_*", "t*"),)


async def found(
    server: DatabaseServer,
    *grants: str,
    routes: tuple[tuple[str, str], ...] = ROUTES,
    tables: tuple[tuple[str, str], ...] = (),
    copies: bool = True,
) -> list[CheckResult]:
    """What is found for a user with these rights, and nothing else."""
    server.execute(
        "CREATE DATABASE shop_1",
        "CREATE DATABASE shop_2",
        *(f"CREATE TABLE shop_{s}.t{t} (id INT PRIMARY KEY)" for s in (1, 2) for t in (1, 2)),
        "CREATE USER 'some'@'%' IDENTIFIED BY 'x'",
    )
    connection = Connection(address(server, "some", "x"))
    try:
        server.execute(*grants)
        rules = Routes(
            [RouteRule(f"r{n}", s, t, "merged", "t") for n, (s, t) in enumerate(routes)],
            case_sensitive=False,
        )
        allow = AllowList(do_tables=[TableFilter(*pair) for pair in tables], case_sensitive=False)
        source = replace(
            routed(address(server, "some", "x")),
            router=Router(allow, rules),
            routes=rules,
            copies_rows=copies,
            allowed=tables,
        )
        return await check_hidden_tables(source, connection, await list_tables(connection))
    finally:
        connection.close()
        server.execute(
            "DROP USER 'some'@'%'",
            "DROP DATABASE shop_1",
            "DROP DATABASE shop_2",
        )


def states(results: list[CheckResult]) -> list[str]:
    return [result.state for result in results]


@pytest.mark.parametrize("kind", ["mariadb_source", "mysql56_source", "mysql_source"])
async def test_rights_are_compared_with_routes(request: pytest.FixtureRequest, kind: str) -> None:
    server: DatabaseServer = request.getfixturevalue(kind)
    everything = await found(server, "GRANT SELECT ON *.* TO 'some'@'%'")
    assert states(everything) == ["passed"]
    by_pattern = await found(server, r"GRANT SELECT ON `shop\_%`.* TO 'some'@'%'")
    assert states(by_pattern) == ["passed"]
    one_schema = "GRANT SELECT ON shop_1.* TO 'some'@'%'"
    [warned] = await found(server, one_schema)
    assert (warned.state, "'shop_*'" in warned.finding) == ("warning", True)
    assert r"ON `shop\_%`.* TO 'some'@'%';" in warned.remedies[0]
    assert "`do-dbs:`" in warned.remedies[1]
    assert states(await found(server, one_schema, routes=(("shop_1", "t*"),))) == ["passed"]
    # Named, and perhaps not there at all.
    both = (("shop_1", "t*"), ("shop_2", "t*"))
    [failed] = await found(server, one_schema, routes=both)
    assert failed.state == "failed"
    assert failed.finding.startswith("shop_2 is named")
    assert failed.remedies[0] == r"GRANT SELECT ON `shop\_2`.* TO 'some'@'%';"
    assert "add shop_2 to `ignore-dbs:`" in failed.remedies[1]
    assert "ignore-checking-items: [hidden_tables]" in failed.remedies[-1]
    [warned] = await found(server, one_schema, routes=both, copies=False)
    assert warned.state == "warning"
    # Named, and certainly not there: another source may have it.
    for right in (r"`shop\_%`.*", "*.*"):
        everything = await found(
            server,
            f"GRANT SELECT ON {right} TO 'some'@'%'",
            routes=(("shop_*", "t*"),),
            tables=(("shop_1", "t*"), ("shop_9", "t*")),
        )
        [warned] = everything
        assert warned.state == "warning"
        assert warned.finding.startswith("shop_9 is named in block-allow-list")
    # Named, and perhaps there.
    [failed] = await found(
        server, one_schema, tables=(("shop_1", "t*"), ("shop_9", "t*")), routes=(("shop_1", "t*"),)
    )
    assert failed.state == "failed"
    assert failed.finding.startswith("shop_9 is named")
    by_route = await found(
        server, "GRANT SELECT ON *.* TO 'some'@'%'", routes=(*both, ("shop_9", "t*"))
    )
    assert states(by_route) == ["passed"]
    one_table = "GRANT SELECT ON shop_1.t1 TO 'some'@'%'"
    [failed] = await found(server, one_table, routes=(("shop_1", "t*"),))
    assert failed.state == "failed"
    assert failed.finding.startswith("the user sees only some tables of shop_1 (shop_1.t1)")
    assert failed.remedies == (r"GRANT SELECT ON `shop\_1`.* TO 'some'@'%';",)
    # All that is wanted is seen.
    wanted: tuple[tuple[str, str], ...] = (("shop_1", "t1"),)
    assert states(await found(server, one_table, routes=wanted, tables=wanted)) == ["passed"]
    wanted = (("shop_1", "t1"), ("shop_1", "t2"))
    [failed] = await found(server, one_table, tables=wanted)
    assert (failed.state, "'t2'" in failed.finding) == ("failed", True)


async def test_roles_and_partial_revokes(
    mysql_source: DatabaseServer, mariadb_source: DatabaseServer
) -> None:
    in_role = ("CREATE ROLE reader", "GRANT SELECT ON shop_1.* TO reader")
    only = (("shop_1", "t*"),)
    for server, default in (
        (mysql_source, "SET DEFAULT ROLE reader TO 'some'@'%'"),
        (mariadb_source, "SET DEFAULT ROLE reader FOR 'some'@'%'"),
    ):
        try:
            grants = (*in_role, "GRANT reader TO 'some'@'%'")
            assert states(await found(server, *grants, default, routes=only)) == ["passed"]
        finally:
            server.execute("DROP ROLE reader")
    mysql_source.execute("SET GLOBAL partial_revokes = ON")
    try:
        revoked = ("GRANT SELECT ON *.* TO 'some'@'%'", "REVOKE SELECT ON shop_2.* FROM 'some'@'%'")
        [warned] = await found(mysql_source, *revoked)
        assert (warned.state, warned.finding[:7]) == ("warning", "shop_2 ")
    finally:
        mysql_source.execute("SET GLOBAL partial_revokes = OFF")
