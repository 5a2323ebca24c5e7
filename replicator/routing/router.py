"""Allow list and routes in one question: where does this table go, if anywhere?"""

from __future__ import annotations

from replicator.routing.allow_list import AllowList
from replicator.routing.online_tables import NO_ONLINE_NAMES, OnlineNames, OnlineTable
from replicator.routing.routes import Routes, TargetName


class Router:
    """Routes the tables of one source. Answers are kept: it is asked for every row event.

    Tables that tools make beside a replicated one, to change its structure, go nowhere.
    """

    def __init__(
        self, allow_list: AllowList, routes: Routes, online: OnlineNames = NO_ONLINE_NAMES
    ) -> None:
        self._allow_list = allow_list
        self._routes = routes
        self._online = online
        self._known: dict[tuple[str, str], TargetName | None] = {}

    def route(self, schema: str, table: str) -> TargetName | None:
        """Return the target of a table, None if it is not replicated.

        Raises `RouteError` if two routes claim the table.
        """
        key = (schema, table)
        if key not in self._known:
            beside = self.online(schema, table)
            self._known[key] = self._target(schema, table) if beside is None else None
        return self._known[key]

    def online(self, schema: str, table: str) -> OnlineTable | None:
        """What a table is to an online schema change of a replicated table; None for others.

        Raises `RouteError` if two routes claim the replicated one.
        """
        beside = self._online.read(table)
        if beside is None or self._target(schema, beside.real) is None:
            return None
        return beside

    def _target(self, schema: str, table: str) -> TargetName | None:
        allowed = self._allow_list.allows(schema, table)
        return self._routes.target(schema, table) if allowed else None

    def route_schema(self, schema: str) -> str | None:
        """Return the target of a schema, None if it is not replicated.

        Raises `RouteError` if two routes claim the schema.
        """
        if not self._allow_list.allows_schema(schema):
            return None
        return self._routes.target_schema(schema)
