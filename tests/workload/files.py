"""Which of MariaDB's test files are a workload, and why the others are none.

Left out, as whole classes:

* about reading (``select``, ``join*``, ``subselect*``, ``func_*``, ``win_*``, ``group_*``,
  ``order_by*``, ``range*``, ``opt_trace*``, ``cte_*``, ``explain*``, ``information_schema*``): they
  make a few tables of plain types and then only ask;
* about accounts, plugins, variables and the client programs (``grant*``, ``plugin*``, ``ssl*``,
  ``mysql*``, ``sys_vars``, ``roles``): nothing that a task carries over;
* that need several servers, restarts, a debug build or a crash (``rpl``, ``galera``, ``*_debug``,
  ``*_sync``, ``innodb.*crash*``, ``innodb.foreign_key``, ``innodb.update-cascade``,
  ``mariabackup``): the client alone can't execute them;
* that reset the binlog (``ctype_cp932_binlog_row``), or put files under the server
  (``type_temporal_mysql56``): a task can't follow that;
* about stored programs, views and events (``sp*``, ``view*``, ``events*``, ``ps*``): their rows
  come with the binlog as any others. A few with triggers are in;
* of engines that can't be had here, or that log no rows (``federated``, ``s3``, ``spider``,
  ``blackhole``, ``merge``);
* most of ``versioning``, which needs a plugin of the server's own tests;
* the big ones (``*_big``, ``*-big``, ``stress``, ``parts.partition_alter*``): hours, and the same
  statements again.
"""

from __future__ import annotations

from collections.abc import Mapping

ALTERING = (
    "alter_table",
    "alter_table_errors",
    "alter_table_online",
    "alter_table_trans",
    "rename",
    "drop",
    "truncate",
    "comment_column",
    "innodb.instant_alter",
    "innodb.instant_alter_charset",
    "innodb.alter_not_null",
)

CREATING = (
    "create",
    "create_or_replace",
    "create_drop_db",
    "create_utf8",
    "temp_table",
    "table_options",
    "lowercase_table",
    "ddl_i18n_koi8r",
    "ddl_i18n_utf8",
)

CHANGING = (
    "insert",
    "insert_returning",
    "insert_select",
    "insert_update",
    "update",
    "update_use_source",
    "delete",
    "delete_returning",
    "multi_update",
    "multi_update_innodb",
    "replace",
    "replace_returning",
    "bulk_replace",
    "loaddata",
    "commit",
    "rollback",
    "trigger",
    "foreign_key",
    "xa",
)

TYPES = (
    "type_binary",
    "type_bit",
    "type_bit_innodb",
    "type_blob",
    "type_char",
    "type_date",
    "type_datetime",
    "type_datetime_hires",
    "type_decimal",
    "type_enum",
    "type_float",
    "type_int",
    "type_json",
    "type_newdecimal",
    "type_num",
    "type_set",
    "type_temporal_innodb",
    "type_time",
    "type_timestamp",
    "type_uint",
    "type_varbinary",
    "type_varchar",
    "type_year",
    "gis",
    "strict",
    "column_compression",
    "json.json_table",
)

COLUMNS_AND_KEYS = (
    "auto_increment",
    "auto_increment_ranges_innodb",
    "check_constraint",
    "constraints",
    "default",
    "function_defaults_innodb",
    "invisible_field",
    "invisible_partition",
    "ignored_index",
    "key",
    "long_unique",
    "long_unique_bugs",
    "long_unique_innodb",
    "null",
    "unique",
    "innodb.innodb",
    "period.create",
    "period.update",
    "period.delete",
    "period.overlaps",
)

GENERATED = (
    "gcol.gcol_ins_upd_innodb",
    "gcol.gcol_keys_innodb",
    "gcol.gcol_supported_sql_funcs_innodb",
    "gcol.gcol_bugfixes",
    "vcol.update",
    "vcol.vcol_misc",
    "vcol.vcol_syntax",
    "vcol.cross_db",
    "vcol.charsets",
)

PARTITIONS = (
    "partition",
    "partition_column",
    "partition_default",
    "partition_exchange",
    "partition_innodb",
    "partition_list",
    "partition_range",
    "partition_truncate",
    "parts.alter_table",
)

HISTORY_AND_SEQUENCES = (
    "versioning.insert2",
    "versioning.misc",
    "versioning.simple",
    "sql_sequence.create",
    "sql_sequence.alter",
    "sql_sequence.next",
)

CHARSETS = (
    "ctype_big5",
    "ctype_collate",
    "ctype_collate_database",
    "ctype_create",
    "ctype_gbk",
    "ctype_latin1_de",
    "ctype_many",
    "ctype_nopad_8bit",
    "ctype_uca",
    "ctype_ucs",
    "ctype_utf16",
    "ctype_utf32",
    "ctype_utf8",
    "ctype_utf8mb4",
)

FILES = (
    *ALTERING,
    *CREATING,
    *CHANGING,
    *TYPES,
    *COLUMNS_AND_KEYS,
    *GENERATED,
    *PARTITIONS,
    *HISTORY_AND_SEQUENCES,
    *CHARSETS,
)
"""All of them, as `debian.TestPackage.file` takes them."""

AS_A_REPLICA: Mapping[str, tuple[str, str]] = {"vcol.vcol_syntax": ("test.tmp", "columns")}
"""Files with a table, and the kind of `comparison.Difference`, in which a replica differs as well.

A CREATE … SELECT from information_schema makes columns that may be NULL and have no default, and
MariaDB logs a CREATE TABLE in which they have DEFAULT NULL: a MariaDB 10.11 that replicates from
another shows ``NULL`` in their COLUMN_DEFAULT, where that one shows nothing.
"""
