"""Which table goes where: routes, allow lists, filters."""

from replicator.routing.allow_list import SYSTEM_SCHEMAS, AllowList, TableFilter
from replicator.routing.report import UnusedRoute, unused_routes
from replicator.routing.router import Router
from replicator.routing.routes import RouteError, RouteRule, Routes, TargetName
from replicator.routing.wildcards import NamePattern, PatternError

__all__ = [
    "SYSTEM_SCHEMAS",
    "AllowList",
    "NamePattern",
    "PatternError",
    "RouteError",
    "RouteRule",
    "Router",
    "Routes",
    "TableFilter",
    "TargetName",
    "UnusedRoute",
    "unused_routes",
]
