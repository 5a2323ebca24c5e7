"""Converts the task file's models to what actors need: addresses, routers, starts, columns."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

import config.rules
from actors.errors.faults import FatalError, fault, of_target
from config.endpoints import Endpoint, Security, TargetDatabase
from config.models import Instance, Meta, Source, Task
from replicator.binlog.connection.dump_connection import BinlogSource
from replicator.binlog.relay.relay import Relay
from replicator.binlog.relay.relay_log import RelaySettings
from replicator.checks.check_items import ALL, FOREIGN_KEYS
from replicator.downstream.meta.row_owners import MarksOf
from replicator.mysql.connection.address import ServerKey
from replicator.mysql.connection.asyncio_connection import DatabaseAddress
from replicator.mysql.connection.tls import Pem, Tls
from replicator.mysql.names import Member, TableName
from replicator.mysql.server.identity import ServerIdentity
from replicator.routing.allow_list import AllowList, TableFilter
from replicator.routing.columns.column_mapping import MappingRule
from replicator.routing.columns.member_columns import (
    ColumnRules,
    Extraction,
    MemberColumns,
    NamePart,
)
from replicator.routing.columns.row_marks import marks_of_rules
from replicator.routing.columns.rule_set import RuleSet
from replicator.routing.event_filter import EventFilter, FilterAction, FilterRule
from replicator.routing.expression.expression_filter import ExpressionFilters, ExpressionRule
from replicator.routing.online_tables import NO_ONLINE_NAMES, OnlineNames
from replicator.routing.routes import RouteError, Router, RouteRule, Routes, routes_of

SEGMENT_TARGET_BYTES = 1 << 20
"""Size in bytes after which a segment ends at the next transaction boundary."""

SEGMENT_MAX_BYTES = 4 << 20
"""A larger transaction is cut into segments of this size."""

SEGMENT_WIDEST = 16
"""Factor by which a segment may be larger if its rows go to many targets."""

SEGMENTS_OF_A_BATCH = 4
"""Minimum size of a target's part in such a segment."""


@dataclass(frozen=True, slots=True)
class ReplicaSetup:
    """The task as a replica of a source.

    ``relay`` keeps a copy of the binlog, from when it is started on.
    """

    server_id: int
    relay: Relay | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SourceSetup:
    """One source of a task: its server, and what is read from it.

    ``rules`` are the rules that ``columns`` and the filters implement. ``accepts_cascades``:
    whether the operator accepts that foreign keys change rows without logging the changes.
    """

    source: str
    address: DatabaseAddress
    replica: ReplicaSetup
    use_gtid: bool
    meta: Meta | None
    router: Router
    routes: Routes
    rules: RuleSet
    columns: ColumnRules
    event_filter: EventFilter
    expression_filters: ExpressionFilters
    accepts_cascades: bool

    @property
    def relay(self) -> Relay | None:
        """Return the relay of the source, if it has one."""
        return self.replica.relay

    def leaves_out_rows(self, table: TableName) -> bool:
        """Return whether filters skip rows of a table."""
        filtered = self.expression_filters.concern(table.schema, table.table)
        return filtered or bool(self.event_filter.rows_left_out(table.schema, table.table))


def address_of(endpoint: Endpoint) -> DatabaseAddress:
    """Return the address of a server."""
    session: tuple[tuple[str, str], ...] = ()
    if isinstance(endpoint, TargetDatabase):
        session = tuple((name, str(value)) for name, value in endpoint.session.items())
    return DatabaseAddress(
        host=endpoint.host,
        port=endpoint.port,
        user=endpoint.user,
        password=endpoint.password.get_secret_value(),
        tls=_tls_of(endpoint.security),
        session=session,
        server_key=_server_key_of(endpoint.security),
    )


def _server_key_of(security: Security | None) -> ServerKey:
    """Return the key with which a password may be encrypted."""
    if security is None:
        return ServerKey()
    return ServerKey(Pem(security.server_public_key_path), security.get_server_public_key)


def _tls_of(security: Security | None) -> Tls | None:
    """Return the TLS settings of the connections to a server; None without any."""
    if security is None:
        return None
    ca, cert, key = (Pem(p.file, p.text.get_secret_value()) for p in security.parts())
    tls = Tls(ca, cert, key, security.cert_allowed_cn)
    return tls if tls != Tls() else None


def binlog_source(setup: SourceSetup, expected: ServerIdentity | None) -> BinlogSource:
    """Return how to request the binlog of a source; ``expected`` is the server that must answer."""
    return BinlogSource(setup.address, setup.replica.server_id, expected, relay=setup.relay)


def source_setups(task: Task) -> tuple[SourceSetup, ...]:
    """Return the sources of a task, in the order of its instances.

    Raises RouteError, ExpressionError.
    """
    return tuple(_setup(task, instance) for instance in task.mysql_instances)


def _setup(task: Task, instance: Instance) -> SourceSetup:
    source = task.source(instance.source_id)
    case_sensitive = task.case_sensitive or source.case_sensitive
    rules = _rule_set(task, instance, case_sensitive=case_sensitive)
    routes = routes_of(rules.routes, case_sensitive=case_sensitive)
    allowed = task.allow_list_of(instance)
    allow_list = AllowList(
        do_dbs=allowed.do_dbs,
        ignore_dbs=allowed.ignore_dbs,
        do_tables=[TableFilter(t.db_name, t.tbl_name) for t in allowed.do_tables],
        ignore_tables=[TableFilter(t.db_name, t.tbl_name) for t in allowed.ignore_tables],
        case_sensitive=case_sensitive,
        never=(task.meta_schema,),
    )
    server_id = source.server_id or _server_id(task.name, source.source_id, socket.gethostname())
    return SourceSetup(
        source=source.source_id,
        address=address_of(source.connection),
        replica=ReplicaSetup(server_id, _relay(source, server_id)),
        use_gtid=source.enable_gtid,
        meta=instance.meta,
        router=Router(allow_list, routes, _online_names(task), task.retired_of(instance)),
        routes=routes,
        rules=rules,
        columns=rules.columns(),
        event_filter=rules.event_filter(),
        expression_filters=rules.expression_filters(),
        accepts_cascades=bool({ALL, FOREIGN_KEYS}.intersection(task.ignore_checking_items)),
    )


def _relay(source: Source, server_id: int) -> Relay | None:
    if not source.relay_dir:
        return None
    settings = RelaySettings(
        source.source_id,
        Path(source.relay_dir, quote(source.source_id, safe="")),
        enabled=source.enable_relay,
        purge_interval=source.purge.interval,
        purge_expires=source.purge.expires,
        purge_remain_space=source.purge.remain_space,
    )
    return Relay(settings, _server_id("relay", f"{server_id}"))


def _rule_set(task: Task, instance: Instance, *, case_sensitive: bool) -> RuleSet:
    routes = tuple(zip(instance.route_rules, task.routes_of(instance), strict=True))
    return RuleSet(
        instance.source_id,
        case_sensitive,
        tuple(
            RouteRule(
                name,
                route.schema_pattern,
                route.table_pattern,
                route.target_schema,
                route.target_table,
            )
            for name, route in routes
        ),
        tuple((name, _extractions(route)) for name, route in routes),
        tuple(_mapping_rule(name, rule) for name, rule in task.mappings_of(instance)),
        tuple(_filter_rule(name, rule) for name, rule in task.filters_of(instance)),
        tuple(_expression_rule(name, rule) for name, rule in task.expression_filters_of(instance)),
    )


def _extractions(route: config.rules.Route) -> tuple[Extraction, ...]:
    found = []
    if (table := route.extract_table) is not None:
        found.append(Extraction(NamePart.TABLE, table.table_regexp, table.target_column))
    if (schema := route.extract_schema) is not None:
        found.append(Extraction(NamePart.SCHEMA, schema.schema_regexp, schema.target_column))
    if (source := route.extract_source) is not None:
        found.append(Extraction(NamePart.SOURCE, source.source_regexp, source.target_column))
    return tuple(found)


def _mapping_rule(name: str, rule: config.rules.ColumnMapping) -> MappingRule:
    instance, schema, table, separator = (*map(str, rule.arguments), "")[:4]
    return MappingRule(
        name,
        rule.schema_pattern,
        rule.table_pattern,
        rule.target_column,
        int(instance) if instance else None,
        schema,
        table,
        separator,
    )


def _online_names(task: Task) -> OnlineNames:
    if not task.follows_online_ddl:
        return NO_ONLINE_NAMES
    return OnlineNames(task.shadow_table_rules, task.trash_table_rules)


def _filter_rule(name: str, rule: config.rules.EventFilterRules) -> FilterRule:
    return FilterRule(
        name,
        rule.schema_pattern,
        rule.table_pattern,
        rule.events,
        rule.sql_pattern,
        FilterAction(rule.action),
    )


def _expression_rule(name: str, rule: config.rules.ExpressionFilter) -> ExpressionRule:
    return ExpressionRule(
        name,
        rule.db,
        rule.table,
        insert=rule.insert_value_expr,
        update_old=rule.update_old_value_expr,
        update_new=rule.update_new_value_expr,
        delete=rule.delete_value_expr,
    )


def beside(setups: Mapping[str, SourceSetup]) -> dict[str, SourceSetup]:
    """Return the same sources, for reading their binlogs in parallel to their readers.

    They have other server ids, because a server serves one replica per server id.
    """
    return {
        source: replace(
            setup, replica=ReplicaSetup(_server_id("beside", f"{setup.replica.server_id}"))
        )
        for source, setup in setups.items()
    }


def _server_id(*names: str) -> int:
    """Return the same id for the same names at every start, far from ids that people choose.

    It depends on the host. If another host ran the task and lost its connection, the server would
    otherwise wait until this connection times out (a minute by default) before it sends a binlog to
    the same id again.
    """
    return 0x40000000 | zlib.crc32("\0".join(names).encode()) & 0x3FFFFFFF


ColumnsOf = Callable[[Member], MemberColumns]
"""Returns the rules for a member's columns. Raises FatalError if its name does not fit the
rules."""


def columns_of(setups: Mapping[str, SourceSetup]) -> ColumnsOf:
    """Return the rules for the columns of these sources' members."""

    def of(member: Member) -> MemberColumns:
        setup, name = setups[member.source], member.name
        try:
            return setup.columns.of(name.schema, name.table)
        except RouteError as error:
            target = setup.router.route(name.schema, name.table)
            raise fault(
                "rows.no-plan",
                "rule",
                scope=None if target is None else of_target(TableName(*target)),
                error=error,
                member=member,
            ) from error

    return of


def marks_of(columns: ColumnsOf) -> MarksOf:
    """Return the values that all rows of a shard have on its target, according to these rules."""

    def of(member: Member) -> str:
        try:
            return marks_of_rules(columns(member)).text()
        except FatalError:
            return ""  # Its rows have no plan, so none is written.

    return of
