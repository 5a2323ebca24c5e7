"""Settings of the stages (dump, load, sync), of Spark, of the copy and of the writer."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from config.base import Section
from config.values import Duration, Flag, Mebibytes, Size, Whole, none_if_empty


def _listening(address: str) -> str:
    """Check an address to listen at: ``host:port``, or ``[::1]:port``."""
    if address:
        host_and_port(address)
    return address


def host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of ``host:port``. Raises ValueError."""
    host, colon, port = address.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ValueError("write it as an address and a port, such as 127.0.0.1:9216")
    return host, int(port)


_Count = Annotated[Whole, Field(ge=1)]

_CHUNK_BYTES = 64 << 20

OnDuplicate = Literal["replace", "error", "ignore"]
"""What happens if a key is on the target already."""


class Mydumper(Section):
    """How the full copy reads."""

    mydumper_path: str = ""
    """Dump program of old versions of DM."""
    threads: _Count = 4
    """Connections that read from a source at the same time."""
    chunk_filesize: Annotated[
        Mebibytes, AfterValidator(lambda size: size or _CHUNK_BYTES), Field(ge=1 << 16)
    ] = _CHUNK_BYTES
    """Maximum size of a chunk; in MiB if no unit is given, at least 64KiB. 0 means the default.
    Each chunk is written in one transaction.
    """
    statement_size: Whole | None = None
    """Size of a statement in bytes."""
    rows: Annotated[Whole, Field(ge=0)] = 0
    """Maximum number of rows in a chunk. 0: 200,000."""
    where: str = ""
    """Condition for the rows to copy."""
    skip_tz_utc: Flag = False
    """Do not read timestamps as UTC."""
    extra_args: str = ""
    """More arguments of the dump program."""


class Loader(Section):
    """How the full copy writes."""

    pool_size: _Count = 16
    """Chunks that are written at the same time, over all sources. The task uses the largest value
    of its loaders."""
    dir: str = ""
    """Directory of the dump."""
    import_mode: str = ""
    """How the data is imported."""
    sorting_dir_physical: str = ""
    """Directory for sorting in a physical import."""
    on_duplicate_physical: str = ""
    """What happens to duplicates in a physical import."""
    disk_quota_physical: int | str = 0
    """Disk space for sorting in a physical import."""
    checksum_physical: str = ""
    """Checksums after a physical import."""
    analyze: str = ""
    """ANALYZE after a physical import."""
    range_concurrency: Whole | None = None
    """Ranges that are imported at the same time."""
    compress_kv_pairs: str = ""
    """Compression of data sent to the target."""
    pd_addr: str = ""
    """Address of TiDB's placement driver."""
    on_duplicate_logical: Annotated[
        OnDuplicate, BeforeValidator(lambda given: given if given != "" else "error")
    ] = "error"
    """What happens to a row whose key is already on the target. `error`: the target is blocked, and
    the fault names both shards. `replace`: the new row overwrites the old one. `ignore`: the old
    row stays. DM's default is `replace`, which loses rows of other shards. Old spelling:
    `on-duplicate`."""


class Copy(Section):
    """The speed limit of the full copy."""

    rows_per_second: Annotated[Whole, Field(ge=0)] = 0
    """Maximum number of rows copied per second, over all sources. 0: no limit."""


class Syncer(Section):
    """How the binlog is followed."""

    checkpoint_flush_interval: _Count = 30
    """Seconds between two saves of the checkpoint."""
    safe_mode: Flag = False
    """Overwrite rows that are already on the target, and accept updates and deletes of rows that
    are not there."""
    safe_mode_duration: Annotated[Duration | None, BeforeValidator(none_if_empty)] = None
    """Duration of safe mode after a start, such as `60s`."""
    worker_count: _Count = 16
    """Number of writing workers."""
    batch: _Count = 100
    """Rows in a transaction."""
    queue_size: Whole | None = None
    """Length of a worker's queue."""
    compact: Flag = False
    """Merge the changes of a row."""
    multiple_rows: Flag = False
    """Merge rows into one statement."""
    enable_ansi_quotes: Flag = False
    """Read statements with ANSI quotes."""
    meta_file: str = ""
    """File of the position in old versions of DM."""
    max_retry: Whole | None = None
    """Number of retries in old versions of DM."""
    auto_fix_gtid: Flag = False
    """Repair of GTID sets in old versions of DM."""
    enable_gtid: Flag = False
    """Follow by GTID, in old versions of DM."""
    disable_detect: Flag = False
    """Do not look for conflicts between workers."""


class Validator(Section):
    """Validation of rows while the task runs.

    In the modes `fast` and `full`, the task reads the keys that it has applied again, from shard
    and target, and compares the rows. The other keys except `cycle` concern these two modes.
    """

    mode: Literal["none", "fast", "full", "rolling"] = "none"
    """`none`: no validation. `fast`: the row must exist on the target. `full`: its values must be
    the shard's. `rolling`: all rows of the source's targets are compared once per `cycle`."""
    cycle: Annotated[Duration, Field(ge=timedelta(seconds=1))] = timedelta(hours=24)
    """Time between two comparisons of all rows of a target. The task uses the smallest value of its
    validators."""
    worker_count: _Count = 4
    """Spark tasks that read keys at the same time. The task uses the largest value of its
    validators."""
    validate_interval: Duration = timedelta(seconds=10)
    """Time between applying a row and its first comparison."""
    check_interval: Duration = timedelta(seconds=5)
    """Time between two comparisons of a row that differs."""
    row_error_delay: Duration = timedelta(seconds=10)
    """How long a row must differ before it counts as an error. A row with changes that the task has
    not applied yet never counts."""
    batch_query_size: _Count = 500
    """Number of keys in a query."""
    max_pending_row_count: _Count = 1_000_000
    """Maximum number of keys that wait for validation.

    Further keys are not validated, and are counted as skipped.
    """
    meta_flush_interval: str = ""
    """Time between two saves of the validation's state."""
    max_pending_row_size: int | str = ""
    """Memory for rows that wait for validation."""


class Spark(Section):
    """Where Spark runs."""

    master: Annotated[str, Field(min_length=1)] = "local[*]"
    """Spark master. `local[*]`: this machine with all cores; `local[2]`: with two cores. Or the URL
    of a cluster, such as `spark://host:7077`."""
    conf: dict[str, str] = Field(default_factory=dict)
    """More Spark settings, such as `spark.driver.memory: 2g`."""


class Writer(Section):
    """How row events are batched and written."""

    buckets: Annotated[Whole, Field(ge=1, le=64)] = 4
    """Number of parts, 1 to 64, that the keys of a target are divided into. Each part has its own
    transactions and its own checkpoint, so that many transactions write to a target at the same
    time. More buckets use more connections and more cores of the target. Different targets are
    written in parallel anyway, up to three by each Spark task."""
    batch_bytes: Annotated[Size, Field(ge=1 << 16, le=1 << 30)] | None = None
    """A batch is written at the latest when its row events reach this size: bytes, or a size such
    as `16MiB`, from 64KiB to 1GiB. Default: 64MiB, but at most 8MiB per GiB of memory. When the
    writer is idle, batches are smaller. Larger batches catch up faster, and need more memory and
    larger transactions."""
    mailbox_segments: Annotated[Whole, Field(ge=1, le=1024)] = 8
    """Number of binlog segments, 1 to 1024, that wait between a source and the writer before the
    source stops reading. More segments smooth out bursts and need more memory."""


class Metrics(Section):
    """Metrics for Prometheus, and the status page."""

    listen: Annotated[str, AfterValidator(_listening)] = ""
    """Address and port, such as `127.0.0.1:9216`, of the metrics (`/metrics`), the health checks
    (`/healthz`, `/readyz`) and the status page (`/`). Empty: none. There is no password, and the
    pages show table names and statements: restrict access to the port to people who may see these.
    """


class Limits(Section):
    """Limits on what servers may send, so that a broken or hostile server cannot use up the
    memory."""

    largest_event: Annotated[Size, Field(ge=1 << 20, le=1 << 30)] | None = None
    """Maximum size of the binlog events, rows and query results that the task accepts.

    From 1MiB to 1GiB (the protocol's limit), after decompression. Default: 1GiB, or an eighth of
    the memory if that is less.
    """
