"""Which tables may be parents or children by foreign keys with actions."""

from __future__ import annotations

import pytest

from actors.reading.cascade_routes import CascadeRoutes
from replicator.ddl.parser.statement_kinds import classify
from replicator.mysql.names import Member, TableName
from replicator.schema.effects.ddl_effects import effects_of
from replicator.schema.registry.registry import SchemaRegistry

CHILD = "CREATE TABLE c (p INT, CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)"
ADD = "ALTER TABLE c ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL"


def route(name: TableName) -> TableName | None:
    return TableName("m", name.table) if name.schema == "s" else None


@pytest.mark.parametrize(
    ("statements", "concerned"),
    [
        ((CHILD,), "cp"),
        ((CHILD, "DROP TABLE c"), ""),
        ((CHILD, "ALTER TABLE c DROP FOREIGN KEY k"), ""),
        ((CHILD, "DROP TABLE c", "CREATE TABLE c (p INT)"), ""),
        ((CHILD, "DROP TABLE c", "CREATE TABLE IF NOT EXISTS c (p INT)"), ""),
        ((CHILD, "CREATE TABLE IF NOT EXISTS c (p INT)"), "cp"),
        ((CHILD, "ALTER TABLE c DROP FOREIGN KEY k", ADD), "cp"),
        ((CHILD, "RENAME TABLE c TO d"), "dp"),
        ((CHILD, "RENAME TABLE p TO q"), "cpq"),
        ((CHILD, "RENAME TABLE p TO q", "ALTER TABLE c DROP FOREIGN KEY k"), ""),
        ((CHILD.replace("CASCADE", "RESTRICT"),), ""),
        (("CREATE TABLE c (p INT)", ADD), "cp"),
    ],
)
def test_tables_with_actions_now(statements: tuple[str, ...], concerned: str) -> None:
    registry, members = SchemaRegistry(), {TableName("s", "p")}
    registry.join(Member("a", TableName("s", "p")), TableName("m", "p"))
    routes = CascadeRoutes("a", registry, members, 4)
    for sql in statements:
        effects = effects_of(classify(sql, default_schema="s"), route, members)
        for effect in effects:
            members.discard(effect.table)
            if effect.kind.value in ("create", "alter", "move in"):
                members.add(effect.table)
        routes.follow(effects)
    found = {name for name in "cdpq" if routes.family(TableName("s", name))}
    assert found == set(concerned)
