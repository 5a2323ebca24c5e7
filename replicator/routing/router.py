"""Allow list and routes in one question: where does this table go, if anywhere?"""

from __future__ import annotations

from replicator.routing.allow_list import AllowList
from replicator.routing.routes import Routes, TargetName


class Router:
    """Routes the tables of one source. Answers are kept: it is asked for every row event."""

    def __init__(self, allow_list: AllowList, routes: Routes) -> None:
        self._allow_list = allow_list
        self._routes = routes
        self._known: dict[tuple[str, str], TargetName | None] = {}

    def route(self, schema: str, table: str) -> TargetName | None:
        """Return the target of a table, None if it is not replicated.

        Raises `RouteError` if two routes claim the table.
        """
        key = (schema, table)
        if key not in self._known:
            allowed = self._allow_list.allows(schema, table)
            self._known[key] = self._routes.target(schema, table) if allowed else None
        return self._known[key]

    def route_schema(self, schema: str) -> str | None:
        """Return the target of a schema, None if it is not replicated.

        Raises `RouteError` if two routes claim the schema.
        """
        if not self._allow_list.allows_schema(schema):
            return None
        return self._routes.target_schema(schema)
