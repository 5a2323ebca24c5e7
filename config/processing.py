"""Settings of the stages (dump, load, sync), of Spark, of the copy and of the writer."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from config.base import Section
from config.values import Duration, Flag, Mebibytes, Size, Whole, none_if_empty


def _listening(address: str) -> str:
    """An address to listen at: ``host:port``, or ``[::1]:port``."""
    if address:
        host_and_port(address)
    return address


def host_and_port(address: str) -> tuple[str, int]:
    """The two parts of ``host:port``. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ValueError("write it as an address and a port, such as 127.0.0.1:9216")
    return host, int(port)


_Count = Annotated[Whole, Field(ge=1)]

_CHUNK_BYTES = 64 << 20

OnDuplicate = Literal["replace", "error", "ignore"]
"""What happens when a key is in the target already."""


class Mydumper(Section):
    """The reading side of the full copy."""

    mydumper_path: str = ""
    """Program of old versions."""
    threads: _Count = 4
    """The number of connections that read from a source at the same time."""
    chunk_filesize: Annotated[
        Mebibytes, AfterValidator(lambda size: size or _CHUNK_BYTES), Field(ge=1 << 16)
    ] = _CHUNK_BYTES
    """Size of a chunk, at most: in MiB where no unit is given, from 64KiB; 0: the default. A chunk
    is written in one transaction."""
    statement_size: Whole | None = None
    """Size of a statement, in bytes."""
    rows: Annotated[Whole, Field(ge=0)] = 0
    """Rows in a chunk, at most; 0: 200,000."""
    where: str = ""
    """Condition on the rows that are copied."""
    skip_tz_utc: Flag = False
    """Don't read timestamps as UTC."""
    extra_args: str = ""
    """Further arguments of the dump program."""


class Loader(Section):
    """The writing side of the full copy."""

    pool_size: _Count = 16
    """Chunks that are written at the same time, over all sources; of several loaders, the largest
    counts."""
    dir: str = ""
    """Folder of the dump."""
    import_mode: str = ""
    """How the data are imported."""
    sorting_dir_physical: str = ""
    """Folder for sorting, when DM imports into the target's files."""
    on_duplicate_physical: str = ""
    """Duplicates in such an import."""
    disk_quota_physical: int | str = 0
    """Disk space for sorting."""
    checksum_physical: str = ""
    """Checksums after such an import."""
    analyze: str = ""
    """ANALYZE after such an import."""
    range_concurrency: Whole | None = None
    """Ranges that are imported at the same time."""
    compress_kv_pairs: str = ""
    """Compression on the way to the target."""
    pd_addr: str = ""
    """Address of TiDB's placement driver."""
    on_duplicate_logical: Annotated[
        OnDuplicate, BeforeValidator(lambda given: given if given != "" else "error")
    ] = "error"
    """What happens to a row whose key is in the target already: `error` blocks the target and names
    both shards, `replace` overwrites the one that is there, `ignore` keeps the one that is there.
    DM's default is `replace`, by which a row of another shard is lost. Old spelling:
    `on-duplicate`."""


class Copy(Section):
    """The speed of the full copy."""

    rows_per_second: Annotated[Whole, Field(ge=0)] = 0
    """The most rows to copy in a second, over all sources; 0: no limit."""


class Syncer(Section):
    """The replication from the binlog."""

    checkpoint_flush_interval: _Count = 30
    """Seconds between two saves of the checkpoint."""
    safe_mode: Flag = False
    """Overwrite rows that exist already, and accept missing ones."""
    safe_mode_duration: Annotated[Duration | None, BeforeValidator(none_if_empty)] = None
    """How long safe mode stays on after a start, such as `60s`."""
    worker_count: _Count = 16
    """Workers that write."""
    batch: _Count = 100
    """Rows in a transaction."""
    queue_size: Whole | None = None
    """Length of the queue to a worker."""
    compact: Flag = False
    """Merge changes of one row."""
    multiple_rows: Flag = False
    """Merge rows into one statement."""
    enable_ansi_quotes: Flag = False
    """Read statements with ANSI quotes."""
    meta_file: str = ""
    """File of the position, in old versions."""
    max_retry: Whole | None = None
    """How often something is tried again, in old versions."""
    auto_fix_gtid: Flag = False
    """Repair of GTID sets, in old versions."""
    enable_gtid: Flag = False
    """Following by GTID, in old versions."""
    disable_detect: Flag = False
    """Not looking for conflicts between workers."""


class Validator(Section):
    """The validation of rows while a task runs: keys that were applied are read again from shard
    and target, and compared."""

    mode: Literal["none", "fast", "full"] = "none"
    """`none`: no validation; `fast`: the rows must be there; `full`: with the shard's values."""
    worker_count: _Count = 4
    """Spark tasks that read keys at the same time; of several validators, the largest counts."""
    validate_interval: Duration = timedelta(seconds=10)
    """Time between the applying of a row and the first look at it."""
    check_interval: Duration = timedelta(seconds=5)
    """Time between two looks at a row that differs."""
    row_error_delay: Duration = timedelta(seconds=10)
    """For how long a row must differ to count as an error. A row that the task has not caught up
    with never does."""
    batch_query_size: _Count = 500
    """Keys that are read with one query."""
    max_pending_row_count: _Count = 1_000_000
    """Keys that wait for their validation, at most. Further ones are not validated, and counted as
    skipped."""
    meta_flush_interval: str = ""
    """Time between two savings of its state."""
    max_pending_row_size: int | str = ""
    """Memory for rows that wait."""


class Spark(Section):
    """Where Spark processes the rows."""

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    """Spark master: `local[*]` is this machine with all cores, `local[2]` with two; or the URL
    of a cluster, such as `spark://host:7077`."""
    conf: dict[str, str] = Field(default_factory=dict)
    """Further Spark settings, such as `spark.driver.memory: 2g`."""


class Writer(Section):
    """How rows are gathered into batches and written."""

    buckets: Annotated[Whole, Field(ge=1, le=64)] = 4
    """Parts that the key space of a target is divided into, 1 to 64: that many transactions can
    write to it at the same time, each remembering on its own how far it came. More use more
    connections and cores of the target. Many targets are written side by side anyway, three
    by each task of Spark."""
    batch_bytes: Annotated[Size, Field(ge=1 << 16, le=1 << 30)] | None = None
    """Row events are written when this many bytes of them are gathered, at the latest; bytes, or
    like `16MiB`, from 64KiB to 1GiB. Default: 64MiB, or less by the memory that there is: 8MiB for
    each GiB of it. A batch is smaller when the writer is idle. More is faster when far behind, and
    takes more memory and larger transactions."""
    mailbox_segments: Annotated[Whole, Field(ge=1, le=1024)] = 8
    """Segments of the binlog that wait between a source and the writer before the source stops
    reading, 1 to 1024. More smooths out bursts and takes more memory."""


class Metrics(Section):
    """Metrics, for Prometheus."""

    listen: Annotated[str, AfterValidator(_listening)] = ""
    """Address and port that tell the metrics (`/metrics`), whether the task is well (`/healthz`,
    `/readyz`), and the status as a page (`/`), such as `127.0.0.1:9216`; empty: none. They need no
    password and name tables and statements: let only those reach it who may see these."""


class Limits(Section):
    """What is taken of servers, lest a broken or hostile one uses up the memory."""

    largest_event: Annotated[Size, Field(ge=1 << 20, le=1 << 30)] | None = None
    """The largest event, the largest row, and the largest answer to a look-up that is taken, also
    after expanding; from 1MiB to 1GiB, which is what the protocol allows. Default: 1GiB, or an
    eighth of the memory that there is, if that is less."""
