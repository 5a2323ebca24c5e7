"""The models of the task file, which check the values and fill in defaults."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from config.base import Section
from config.endpoints import Endpoint, TargetDatabase
from config.problems import Problem
from config.processing import (
    Copy,
    Limits,
    Loader,
    Metrics,
    Mydumper,
    Spark,
    Syncer,
    Validator,
    Writer,
)
from config.rules import AllowListRules, ColumnMapping, EventFilterRules, ExpressionFilter, Route
from config.values import Flag, Moment, Size, TableRule, Timezone, Whole, none_if_empty

FIRST_EVENT = 4
"""Offset of the first event of a binlog file: the magic number before it has four bytes."""

_SHADOW_TABLES = (r"^_(.+)_(?:new|gho)$",)
_TRASH_TABLES = (r"^_(.+)_(?:ghc|del|old)$",)


class RelayPurge(Section):
    """When files of the relay log are deleted. Files that the task still needs are always kept."""

    interval: Annotated[Whole, Field(ge=1)] = 3600
    """Seconds between two checks for files to delete."""
    expires: Annotated[Whole, Field(ge=0)] = 0
    """Hours after which a file is deleted. 0: its age does not matter."""
    remain_space: Annotated[Whole, Field(ge=0)] = 15
    """GiB of free disk space; if there is less, the oldest files are deleted."""


class Source(Section):
    """One upstream server."""

    source_id: Annotated[str, Field(min_length=1, max_length=32)]
    """Name of the source, at most 32 characters. Instances refer to it."""
    connection: Annotated[Endpoint, Field(alias="from")]
    """The server and the account."""
    enable_gtid: Flag = False
    """Follow the source by GTID set instead of file and position."""
    server_id: Annotated[Whole, Field(ge=0, le=2**32 - 1)] = 0
    """Server id that the task uses as a replica of the source. 0: the task chooses one."""
    flavor: Literal["", "mysql", "mariadb"] = ""
    """Kind of server. Empty: the task asks the server."""
    case_sensitive: Flag = False
    """Match names case-sensitively in the rules for this source."""
    filters: tuple[EventFilterRules, ...] = ()
    """Event filters for all instances of this source."""
    enable: Flag = True
    """Whether DM may use the source."""
    charset: str = ""
    """Character set of DM's connections to the source."""
    auto_fix_gtid: Flag = False
    """Repair of GTID sets in old versions of DM."""
    meta_dir: str = ""
    """Directory of the relay log's position in old versions of DM."""
    tracer: dict[str, Any] = Field(default_factory=dict)
    """Tracing in old versions of DM."""
    enable_relay: Flag = False
    """Keep a local copy of the binlog (relay log) in `relay-dir`, and read it instead of the
    source. When false, the copy begins when the source is about to purge what the task needs.
    """
    relay_dir: str = ""
    """Directory of the relay log. Empty: there is none."""
    relay_binlog_name: str = ""
    """Binlog file where the relay log starts."""
    relay_binlog_gtid: str = ""
    """GTID set where the relay log starts."""
    purge: RelayPurge = Field(default_factory=lambda: RelayPurge())
    """Deletion of files of the relay log that the task no longer needs."""
    checker: dict[str, Any] = Field(default_factory=dict)
    """Automatic resume of a paused task."""


class Meta(Section):
    """The position at which incremental replication of a source starts without a checkpoint."""

    binlog_name: Annotated[str, Field(pattern=r"^(.+\.[0-9]+)?$")] = ""
    """Binlog file, such as `mysql-bin.000042`."""
    binlog_pos: Annotated[
        Whole, Field(ge=0), AfterValidator(lambda offset: max(offset, FIRST_EVENT))
    ] = FIRST_EVENT
    """Offset in the file."""
    binlog_gtid: str = ""
    """GTID set."""
    start_time: Moment | None = None
    """Instead of a position: start with the first transaction at or after this time, by the
    source's clock. Example: `2026-11-20 10:00:00` (UTC, or with an offset such as `+02:00`)."""

    @model_validator(mode="after")
    def _some_start(self) -> Meta:
        place = bool(self.binlog_name or self.binlog_gtid)
        if place == (self.start_time is not None):
            raise ValueError(
                "needs one of `binlog-name` (with `binlog-pos`), `binlog-gtid` and `start-time`"
            )
        return self


class Instance(Section):
    """A source of the task, and the rules for it."""

    source_id: Annotated[str, Field(min_length=1)]
    """The `source-id` of the source."""
    meta: Meta | None = None
    """Start of incremental replication when there is no checkpoint. After a full copy, replication
    starts where the copy began."""
    route_rules: tuple[str, ...] = ()
    """Names of `routes`."""
    filter_rules: tuple[str, ...] = ()
    """Names of `filters`."""
    column_mapping_rules: tuple[str, ...] = ()
    """Names of `column-mappings`."""
    expression_filters: tuple[str, ...] = ()
    """Names of `expression-filter`."""
    block_allow_list: str = ""
    """Name of a `block-allow-list`. Old spelling: `black-white-list`."""
    mydumper_config_name: str = ""
    """Name of one of the `mydumpers`."""
    mydumper: Mydumper | None = None
    """The settings of a mydumper, inline."""
    mydumper_thread: Annotated[Whole, Field(ge=0)] = 0
    """Overrides `threads` of the mydumper. 0: not set."""
    loader_config_name: str = ""
    """Name of one of the `loaders`."""
    loader: Loader | None = None
    """The settings of a loader, inline."""
    loader_thread: Annotated[Whole, Field(ge=0)] = 0
    """Overrides `pool-size` of the loader. 0: not set."""
    syncer_config_name: str = ""
    """Name of one of the `syncers`."""
    syncer: Syncer | None = None
    """The settings of a syncer, inline."""
    syncer_thread: Annotated[Whole, Field(ge=0)] = 0
    """Overrides `worker-count` of the syncer. 0: not set."""
    validator_config_name: str = ""
    """Name of one of the `validators`."""


class Task(Section):
    """The merge task."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,48}$")]
    """Name of the task: 1 to 49 letters, digits, `_`, `.` or `-`; the first is a letter, a digit or
    `_`. The names of its meta tables start with it. If the target ignores the case of table
    names (TiDB, `lower_case_table_names` 1 or 2), two names that differ only in case are the same
    task."""
    task_mode: Literal["full", "incremental", "all"]
    """`full`: copy the tables once. `incremental`: follow the binlogs. `all`: copy, then follow."""
    shard_mode: Literal["", "pessimistic", "optimistic"] = ""
    """How schema changes of shards are merged. `pessimistic`: the target changes after all shards
    have executed the change. `optimistic`: the target changes as soon as it can hold the rows of
    all shards. Empty: as `optimistic`, and a target is dropped with its last shard.
    """
    is_sharding: Flag = False
    """Old spelling: `true` means `shard-mode: pessimistic`."""
    meta_schema: Annotated[str, Field(min_length=1, max_length=64)] = "dm_meta"
    """Schema of the meta tables on the target."""
    remove_meta: Flag = False
    """Delete the saved progress at every start, and start over."""
    timezone: Annotated[Timezone | None, BeforeValidator(none_if_empty)] = None
    """Time zone of the source hosts, such as `+08:00` or `Asia/Tokyo`. It is needed only if a
    server does not know the offset of its own zone."""
    case_sensitive: Flag = False
    """Match names case-sensitively in routes, filters and allow lists."""
    online_ddl: Flag = True
    """Follow gh-ost and pt-online-schema-change: skip the rows of ghost and trash tables, and apply
    the schema changes of a ghost table when it replaces the real table."""
    online_ddl_scheme: Literal["", "gh-ost", "pt"] = ""
    """Old spelling: either value turns `online-ddl` on."""
    shadow_table_rules: Annotated[
        tuple[TableRule, ...], AfterValidator(lambda rules: rules or _SHADOW_TABLES)
    ] = _SHADOW_TABLES
    """Regular expressions for the names of ghost tables. Their one group is the name of the real
    table. An empty list means the default."""
    trash_table_rules: Annotated[
        tuple[TableRule, ...], AfterValidator(lambda rules: rules or _TRASH_TABLES)
    ] = _TRASH_TABLES
    """Regular expressions for the names of trash tables. Their one group is the name of the real
    table. An empty list means the default."""
    secret_key_file: str = ""
    """File with the key of the passwords that `replicator encrypt` encrypted. Only its owner may
    read it. A relative path starts at the directory of the task file. Default: the file named by
    the environment variable REPLICATOR_SECRET_KEY_FILE."""
    show_row_values: Flag = False
    """Show row values in faults, status, log and comparisons: the key of a row that the target
    refuses, rows that differ, and values that servers quote in their errors. When false, messages
    name the shard, the column and the binlog position, and show `…` for each value."""
    ignore_checking_items: tuple[str, ...] = ()
    """Names of checks to skip."""
    target_database: TargetDatabase
    """The server that all tables are merged into."""
    sources: tuple[Source, ...] = ()
    """The sources, inline."""
    source_files: tuple[str, ...] = ()
    """Files with one source each. A relative path starts at the directory of the task file."""
    mysql_instances: Annotated[tuple[Instance, ...], Field(min_length=1)]
    """The sources of the task, with their rules."""
    routes: dict[str, Route] = Field(default_factory=dict)
    """The target table that each shard is written to."""
    filters: dict[str, EventFilterRules] = Field(default_factory=dict)
    """The kinds of events that are skipped."""
    block_allow_list: dict[str, AllowListRules] = Field(default_factory=dict)
    """The tables that are replicated. Old spelling: `black-white-list`."""
    expression_filter: dict[str, ExpressionFilter] = Field(default_factory=dict)
    """The rows that are skipped."""
    column_mappings: dict[str, ColumnMapping] = Field(default_factory=dict)
    """The key columns that are rewritten so that keys of shards do not collide."""
    mydumpers: dict[str, Mydumper] = Field(default_factory=dict)
    """How the full copy reads."""
    loaders: dict[str, Loader] = Field(default_factory=dict)
    """How the full copy writes."""
    syncers: dict[str, Syncer] = Field(default_factory=dict)
    """How the binlog is followed."""
    validators: dict[str, Validator] = Field(default_factory=dict)
    """How rows are validated while the task runs."""
    full_copy: Annotated[Copy, Field(alias="copy")] = Copy()
    """The speed limit of the full copy."""
    spark: Spark = Spark()
    """The settings of Spark, which processes the rows."""
    writer: Writer = Writer()
    """How the task collects and writes rows."""
    memory: Annotated[Size, Field(ge=1 << 30, le=1 << 40)] | None = None
    """Memory for the driver, its Java process and the workers on this host together, at least 1GiB.
    The sizes of batches, events and Java's heap follow from it. Default and upper limit: the memory
    limit of the control group, or the memory of the machine."""
    limits: Limits = Limits()
    """The largest event that the task accepts."""
    metrics: Metrics = Metrics()
    """The address of the metrics and the status page."""
    enable_heartbeat: Flag = False
    """Heartbeat table of old versions of DM."""
    heartbeat_update_interval: Whole | None = None
    """Seconds between heartbeats."""
    heartbeat_report_interval: Whole | None = None
    """Seconds between reports of the lag."""
    ansi_quotes: Flag = False
    """Read statements with ANSI quotes."""
    clean_dump_file: Flag = True
    """Delete the dump files after loading them."""
    strict_optimistic_shard_mode: Flag = False
    """With `shard-mode: optimistic` or `""`: a statement that cannot be applied at once pauses the
    task, instead of waiting with the rows of its shard."""
    on_unproven_change: Literal["reconcile", "stop"] = "reconcile"
    """What happens to a statement after which only a shard knows the values of existing rows, such
    as `ADD c DATETIME DEFAULT now()`. `reconcile`: the target executes it, and the task reads the
    values from the shards. `stop`: the target is blocked, or the shard's rows wait, until the
    operator answers. Rows that validation finds wrong are corrected with `reconcile` only."""
    collation_compatible: Annotated[str, Field(alias="collation_compatible")] = ""
    """Whether DM writes the collations of the shards into CREATE TABLE (`strict`) or not
    (`loose`)."""
    experimental: dict[str, Any] = Field(default_factory=dict)
    """Experimental settings of DM."""

    _warnings: tuple[Problem, ...] = PrivateAttr(default=())
    _variables: tuple[str, ...] = PrivateAttr(default=())
    _open_files: tuple[str, ...] = PrivateAttr(default=())
    _file: str = PrivateAttr(default="TASK.yaml")
    _retired: frozenset[tuple[str, str, str]] = PrivateAttr(default=frozenset())

    @property
    def file(self) -> str:
        """The path of the task file, in a form that commands accept from any folder."""
        return self._file

    @property
    def warnings(self) -> tuple[str, ...]:
        """The parts of the file that have no effect, each with its file, line and key."""
        return tuple(map(str, self._warnings))

    @property
    def keys_without_effect(self) -> tuple[str, ...]:
        """The keys that `warnings` are about, each once, in the order of the file."""
        return tuple(dict.fromkeys(problem.key for problem in self._warnings))

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that passwords were taken from."""
        return self._variables

    @property
    def open_files(self) -> tuple[str, ...]:
        """The files with secrets that other accounts may read or change, each with a remedy."""
        return self._open_files

    def with_notes(
        self,
        warnings: tuple[Problem, ...],
        variables: tuple[str, ...],
        open_files: tuple[str, ...],
        file: str,
    ) -> Task:
        """Return this task with notes from loading it.

        The notes are the path of its file, the warnings of the file, the environment variables of
        its passwords, and the files with secrets that other accounts may access.
        """
        task = self.model_copy()
        task._warnings = warnings
        task._variables = variables
        task._open_files = open_files
        task._file = file
        return task

    def without(self, sources: Collection[str], shards: Collection[tuple[str, str, str]]) -> Task:
        """Return this task without some sources and without some shards (source, schema, table)."""
        left = tuple(i for i in self.mysql_instances if i.source_id not in sources)
        task = self.model_copy(update={"mysql_instances": left})
        task._retired = frozenset(shards)
        return task

    def retired_of(self, instance: Instance) -> frozenset[tuple[str, str]]:
        """The shards of an instance (schema, table) that are excluded whatever its rules say."""
        return frozenset(
            (schema, table)
            for source, schema, table in self._retired
            if source == instance.source_id
        )

    @property
    def follows_online_ddl(self) -> bool:
        """Return whether gh-ost and pt-online-schema-change are followed, by any spelling."""
        return self.online_ddl or bool(self.online_ddl_scheme)

    @property
    def pool_size(self) -> int:
        """Return how many chunks a full copy writes at the same time, over all sources."""
        return max(self.loader_of(instance).pool_size for instance in self.mysql_instances)

    def source(self, source_id: str) -> Source:
        """Return the source with this id. Raises KeyError if there is none."""
        for source in self.sources:
            if source.source_id == source_id:
                return source
        raise KeyError(source_id)

    def routes_of(self, instance: Instance) -> tuple[Route, ...]:
        """Return the routes of an instance, in the order in which it names them."""
        return tuple(self.routes[name] for name in instance.route_rules)

    def filters_of(self, instance: Instance) -> tuple[tuple[str, EventFilterRules], ...]:
        """Return the event filters of an instance and of its source, each with its name."""
        own = [(name, self.filters[name]) for name in instance.filter_rules]
        given = self.source(instance.source_id).filters
        return (*own, *((f"filter {n} of the source", f) for n, f in enumerate(given, 1)))

    def mappings_of(self, instance: Instance) -> tuple[tuple[str, ColumnMapping], ...]:
        """Return the column mappings of an instance with their names."""
        return tuple((name, self.column_mappings[name]) for name in instance.column_mapping_rules)

    def expression_filters_of(self, instance: Instance) -> tuple[tuple[str, ExpressionFilter], ...]:
        """Return the expression filters of an instance with their names."""
        return tuple((name, self.expression_filter[name]) for name in instance.expression_filters)

    def allow_list_of(self, instance: Instance) -> AllowListRules:
        """Return the allow list of an instance; if it names none, a list that allows everything."""
        name = instance.block_allow_list
        return self.block_allow_list[name] if name else AllowListRules()

    def mydumper_of(self, instance: Instance) -> Mydumper:
        """Return how a full copy reads from an instance: by inline, named or default settings."""
        name = instance.mydumper_config_name
        given = instance.mydumper or (self.mydumpers[name] if name else Mydumper())
        threads = instance.mydumper_thread
        return given.model_copy(update={"threads": threads}) if threads else given

    def loader_of(self, instance: Instance) -> Loader:
        """Return how a full copy writes an instance: inline, named or default settings."""
        name = instance.loader_config_name
        given = instance.loader or (self.loaders[name] if name else Loader())
        size = instance.loader_thread
        return given.model_copy(update={"pool_size": size}) if size else given

    def validator_of(self, instance: Instance) -> Validator:
        """Return how the rows of an instance are validated: named settings, or no validation."""
        name = instance.validator_config_name
        return self.validators[name] if name else Validator()

    def syncer_of(self, instance: Instance) -> Syncer:
        """Return the replication settings of an instance: inline, named or default settings."""
        if instance.syncer is not None:
            return instance.syncer
        name = instance.syncer_config_name
        return self.syncers[name] if name else Syncer()
