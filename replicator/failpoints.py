"""Named steps between reading and checkpoint at which tests kill the process.

The program calls `reach` at each step. It does nothing unless the environment variable
``REPLICATOR_CRASH_AT`` names the step, optionally as ``name:n`` for the n-th call. The variable can
also be the path of a file into which a test writes such a text later. Then the process of
``REPLICATOR_CRASH_PID`` (if it is set; executors get the driver's) and this process are killed with
SIGKILL: nothing is cleaned up, as after a power failure.
"""

from __future__ import annotations

import os
import signal
import threading
from enum import StrEnum
from pathlib import Path


class Failpoint(StrEnum):
    """Every step at which the process may be killed; a test covers each step."""

    RELAY_WRITTEN = "relay-written"
    """Events are in a file of the relay; a power failure may still lose them."""
    RELAY_SYNCED = "relay-synced"
    """The events in the relay are on disk and survive a power failure."""
    RELAY_ROTATED = "relay-rotated"
    """A file of the relay is complete; the next file is not started."""
    RELAY_PURGED = "relay-purged"
    """The relay has deleted one of several files."""
    SEGMENT_READ = "segment-read"
    """A segment was read from the binlog; it exists only in memory."""
    BATCH_SUBMITTED = "batch-submitted"
    """A batch is about to be passed to the Spark tasks that apply it."""
    PARTS_SENT = "parts-sent"
    """Each Spark task has been sent its part of a batch; some may already have written rows."""
    PART_RECEIVED = "part-received"
    """In an executor: a Spark task has its part of a batch, and has decoded nothing."""
    ROWS_WRITTEN = "rows-written"
    """In an executor: a bucket's rows are written, its watermarks are not."""
    WATERMARKS_WRITTEN = "watermarks-written"
    """In an executor: rows and watermarks are written, the transaction is not committed."""
    BUCKET_COMMITTED = "bucket-committed"
    """In an executor: one bucket is committed, the others may not be."""
    PART_APPLIED = "part-applied"
    """In an executor: all buckets of a Spark task are committed; the driver does not know it."""
    BATCH_APPLIED = "batch-applied"
    """All buckets of a batch are committed; the driver has not recorded it."""
    CHECKPOINT_OPEN = "checkpoint-open"
    """The checkpoint is written but not committed."""
    CHECKPOINT_SAVED = "checkpoint-saved"
    """The checkpoint is committed."""
    DDL_RECORDED = "ddl-recorded"
    """The write-ahead record of a DDL is saved; the DDL is not executed."""
    DOUBLES_REMOVED = "doubles-removed"
    """Rows that a new unique key refuses are removed from the target, which has no such key yet."""
    DDL_EXECUTED = "ddl-executed"
    """The DDL is executed on the target; its record does not say so."""
    DDL_FINISHED = "ddl-finished"
    """The record says that the DDL is executed; the checkpoint is older."""
    ITEM_RECORDED = "item-recorded"
    """A shard's DDL is an open item in memory; nothing about it is saved."""
    LOCK_AGREED = "lock-agreed"
    """All shards have reached an item, or it was unlocked; the decision is not saved."""
    LOCK_DECIDED = "lock-decided"
    """The decision on an item is saved; older rows may not be applied yet."""
    ANSWER_EXECUTED = "answer-executed"
    """The answer to a statement is executed with its consequences; no later row is applied."""
    RELEASE_DUE = "release-due"
    """Held rows may be applied, and nothing is in progress; the release is not saved."""
    RELEASE_SAVED = "release-saved"
    """The release of held rows is saved; no row is read again."""
    UNLOCK_SAVED = "unlock-saved"
    """The operator's answer to an open statement is saved; it has had no consequences yet."""
    MODE_OPEN = "mode-open"
    """The saved state is converted to another shard-mode; this is not committed."""
    MODE_CHANGED = "mode-changed"
    """The change of shard-mode is committed; the task does not run in the new mode yet."""
    ROWS_RELEASED = "rows-released"
    """Rows that were held in memory go to the writer; none of them is applied."""
    SOURCE_RESTARTED = "source-restarted"
    """A source starts to read its held events again."""
    GHOST_READ = "ghost-read"
    """The statements on a ghost table are read and not saved."""
    GHOST_RECORDED = "ghost-recorded"
    """The statements on a ghost table are saved; none is passed on."""
    GHOSTS_FORGOTTEN = "ghosts-forgotten"
    """The records of ghost tables that are no longer needed are removed; nothing is read yet."""
    TABLES_ADDED = "tables-added"
    """Tables are saved as shards that are to be copied; their copy has not started."""
    COPY_BEGUN = "copy-begun"
    """The position at which a source's copy starts is saved; no chunk is planned."""
    CHUNKS_PLANNED = "chunks-planned"
    """Chunks are planned and saved, not copied."""
    CHUNK_WRITTEN = "chunk-written"
    """In an executor: the rows of a chunk are written, its record is not."""
    CHUNK_RECORDED = "chunk-recorded"
    """In an executor: the rows and the record of a chunk are written, but not committed."""
    CHUNK_COMMITTED = "chunk-committed"
    """In an executor: a chunk is committed; the driver does not know it."""
    COPY_COMPLETE = "copy-complete"
    """All chunks of a source are committed; the end of its copy is not saved."""
    COPY_FINISHED = "copy-finished"
    """The end of a source's copy is saved; its binlog has not been read."""
    KEYS_LOOKED_UP = "keys-looked-up"
    """Keys that the target lacks were found in the shards; no row is written to the target."""
    KEYS_FORGOTTEN = "keys-forgotten"
    """The records of keys that at most one shard has are removed."""
    FAILOVER_OPEN = "failover-open"
    """The saved state of a source is rewritten for another server; this is not committed."""
    FAILOVER_SAVED = "failover-saved"
    """The state for another server is committed; nothing has been read from that server."""
    COPY_BEGUN_AGAIN = "copy-begun-again"
    """Deferred shards are recorded as being copied once more; no chunk is planned."""
    RULES_ACCEPTED = "rules-accepted"
    """Shards and targets are recorded according to changed rules.

    No target is emptied, and the rules are not saved.
    """
    TARGET_EMPTIED = "target-emptied"
    """A target is emptied to be copied again; this is not recorded."""
    RECOPY_ASKED = "recopy-asked"
    """The operator's request to copy targets again without emptying them is saved."""
    SHARDS_LEFT = "shards-left"
    """Shards that are being retired are removed from their targets' answers, and only this is
    saved."""
    SHARDS_RETIRED = "shards-retired"
    """Shards are retired; the task has not run without them."""
    SAFE_MODE_ENDED = "safe-mode-ended"
    """A reconciled target is removed from the queue; its sources are still in safe mode."""
    RECONCILING_BEGUN = "reconciling-begun"
    """A pass over the rows of a reconciled target is saved as started; no row is read."""
    CORRECTION_OPEN = "correction-open"
    """Rows of a target are corrected; the transaction is not committed."""
    ROWS_CORRECTED = "rows-corrected"
    """Rows of a target are corrected and committed; the saved state of the pass is older."""
    RECONCILING_SAVED = "reconciling-saved"
    """The progress of a reconciliation pass is saved."""
    VERIFICATION_SAVED = "verification-saved"
    """The progress of a rolling verification is saved."""
    RECONCILING_ENDED = "reconciling-ended"
    """All rows of a target are compared; the queue still has its entry."""
    SWITCH_REHEARSED = "switch-rehearsed"
    """The switch has compared all rows, and the task validates rows; the application still
    writes."""
    SWITCH_RECORDED = "switch-recorded"
    """The variables that a switch is about to set are saved; none is set."""
    SWITCH_FROZEN = "switch-frozen"
    """The switch has made the sources read-only."""
    SWITCH_APPLIED = "switch-applied"
    """Everything up to the ends of the binlogs is applied; the changed rows are not compared."""
    SWITCH_COMPARED = "switch-compared"
    """The changed rows are compared; AUTO_INCREMENT is not set."""
    SWITCH_CERTIFIED = "switch-certified"
    """The certificate is made; the task has not been asked to save it."""
    SWITCH_FINISHED = "switch-finished"
    """The task has saved its end and the certificate, and still runs; the files are not written."""


_reached: dict[str, int] = {}
_lock = threading.Lock()


def reach(point: Failpoint) -> None:
    """Kill the process here if the environment names this step; otherwise do nothing."""
    wanted = os.environ.get("REPLICATOR_CRASH_AT")
    if not wanted:
        return
    if wanted.startswith("/"):
        wanted = Path(wanted).read_text() if Path(wanted).exists() else ""
    name, _, count = wanted.partition(":")
    if name != point.value:
        return
    with _lock:
        _reached[name] = _reached.get(name, 0) + 1
        if _reached[name] != int(count or 1):
            return
    for process in (os.environ.get("REPLICATOR_CRASH_PID"), os.getpid()):
        if process:
            os.kill(int(process), signal.SIGKILL)


def take_settings(point: str, process: str) -> None:
    """In an executor: if the driver's environment names this step, kill both processes."""
    if point:
        os.environ["REPLICATOR_CRASH_AT"] = point
        os.environ["REPLICATOR_CRASH_PID"] = process
    else:
        os.environ.pop("REPLICATOR_CRASH_AT", None)
