"""Named steps between reading and checkpoint at which tests kill the process.

`reach` is called at each of them; it does nothing unless the environment variable
``REPLICATOR_CRASH_AT`` names the step, optionally as ``name:n`` for the n-th time it is reached. It
can also be the path of a file that gets such a text later. Then the process of
``REPLICATOR_CRASH_PID`` (executors get the driver's), if it is set, and this process are killed
with SIGKILL: no clean-up, as after a power failure.
"""

from __future__ import annotations

import os
import signal
import threading
from enum import StrEnum
from pathlib import Path


class Failpoint(StrEnum):
    """Every step at which the process may die; a test hits each."""

    RELAY_WRITTEN = "relay-written"
    """Events are in a file of the relay; a power failure may still undo that."""
    RELAY_SYNCED = "relay-synced"
    """They survive a power failure."""
    RELAY_ROTATED = "relay-rotated"
    """A file of the relay is complete, the next one is not begun."""
    RELAY_PURGED = "relay-purged"
    """The relay has deleted one file of several."""
    SEGMENT_READ = "segment-read"
    """A chunk was read from the binlog; it exists nowhere else."""
    BATCH_SUBMITTED = "batch-submitted"
    """A batch is about to be passed to the tasks that apply it."""
    PARTS_SENT = "parts-sent"
    """Each task has been sent its part of a batch; some may have written already."""
    PART_RECEIVED = "part-received"
    """In an executor: a task has its part of a batch, nothing of it is decoded."""
    ROWS_WRITTEN = "rows-written"
    """In an executor: a bucket's rows are written, its watermarks are not."""
    WATERMARKS_WRITTEN = "watermarks-written"
    """In an executor: rows and watermarks are written, the transaction is not committed."""
    BUCKET_COMMITTED = "bucket-committed"
    """In an executor: one bucket is committed, the others may not be."""
    PART_APPLIED = "part-applied"
    """In an executor: all buckets of a task are committed, the driver does not know it yet."""
    BATCH_APPLIED = "batch-applied"
    """All buckets of a batch are committed, the driver has not recorded it."""
    CHECKPOINT_OPEN = "checkpoint-open"
    """The checkpoint is written but not committed."""
    CHECKPOINT_SAVED = "checkpoint-saved"
    """The checkpoint is committed."""
    DDL_RECORDED = "ddl-recorded"
    """The write-ahead record of a DDL is saved, the DDL is not executed."""
    DOUBLES_REMOVED = "doubles-removed"
    """Rows that a new unique key refuses are removed from the target, it has no such key yet."""
    DDL_EXECUTED = "ddl-executed"
    """The DDL is executed on the target, the record does not say so."""
    DDL_FINISHED = "ddl-finished"
    """The record says that the DDL is executed, the checkpoint is older."""
    ITEM_RECORDED = "item-recorded"
    """A shard's DDL is an open item, nothing of it is saved."""
    LOCK_AGREED = "lock-agreed"
    """All shards have reached an item, or it was unlocked; the decision is not saved."""
    LOCK_DECIDED = "lock-decided"
    """The decision is saved, older rows may not be applied yet."""
    ANSWER_EXECUTED = "answer-executed"
    """A statement is answered, its consequences are executed; no later row is applied."""
    RELEASE_DUE = "release-due"
    """Held rows may be applied, nothing is under way; that is not saved."""
    RELEASE_SAVED = "release-saved"
    """That is saved; nothing is read again."""
    UNLOCK_SAVED = "unlock-saved"
    """The operator's answer to an open statement is saved, without consequences so far."""
    MODE_OPEN = "mode-open"
    """The saved state is converted to another shard-mode; that is not committed."""
    MODE_CHANGED = "mode-changed"
    """It is committed; the task has not begun to run in this mode."""
    ROWS_RELEASED = "rows-released"
    """Rows that were held in memory go to the writer; none of them is applied."""
    SOURCE_RESTARTED = "source-restarted"
    """A source begins to read its held events again."""
    GHOST_READ = "ghost-read"
    """The statements on a ghost table are read and not saved."""
    GHOST_RECORDED = "ghost-recorded"
    """The statements on a ghost table are saved, none is passed on."""
    GHOSTS_FORGOTTEN = "ghosts-forgotten"
    """The records of ghost tables that no reading can need are removed, nothing is read yet."""
    TABLES_ADDED = "tables-added"
    """Tables are saved as shards that are to be copied, no copy of them has begun."""
    COPY_BEGUN = "copy-begun"
    """The position that a source's copy starts from is saved, no chunk is planned."""
    CHUNKS_PLANNED = "chunks-planned"
    """Chunks are planned and saved, not copied."""
    CHUNK_WRITTEN = "chunk-written"
    """In an executor: the rows of a chunk are written, its record is not."""
    CHUNK_RECORDED = "chunk-recorded"
    """In an executor: rows and record are written, the transaction is not committed."""
    CHUNK_COMMITTED = "chunk-committed"
    """In an executor: a chunk is committed, the driver does not know it yet."""
    COPY_COMPLETE = "copy-complete"
    """All chunks of a source are committed, the end of its copy is not saved."""
    COPY_FINISHED = "copy-finished"
    """The end of a source's copy is saved, its binlog is not read."""
    KEYS_LOOKED_UP = "keys-looked-up"
    """Keys that the target lacks were found in the shards, nothing is put back."""
    KEYS_FORGOTTEN = "keys-forgotten"
    """Keys that one shard has, or none, are not recorded any more."""
    FAILOVER_OPEN = "failover-open"
    """The saved state of a source is rewritten for another server, not committed."""
    FAILOVER_SAVED = "failover-saved"
    """That is committed, nothing is read of the other server."""
    COPY_BEGUN_AGAIN = "copy-begun-again"
    """Deferred shards are recorded as being copied once more, no chunk is planned."""
    RULES_ACCEPTED = "rules-accepted"
    """Shards and targets are recorded as changed rules have them; nothing is emptied, and the
    rules are not saved."""
    TARGET_EMPTIED = "target-emptied"
    """A target is emptied to be copied again, which is not recorded."""
    RECOPY_ASKED = "recopy-asked"
    """The operator's request to copy targets again without emptying them is saved."""
    SHARDS_LEFT = "shards-left"
    """Shards that are being retired have left their targets' answers; nothing else is saved."""
    SHARDS_RETIRED = "shards-retired"
    """Shards are retired, and no run has begun without them."""
    SAFE_MODE_ENDED = "safe-mode-ended"
    """A reconciled target is not in the queue any more, its sources are still in safe mode."""
    RECONCILING_BEGUN = "reconciling-begun"
    """A pass over the rows of a target that is reconciled is saved as begun, nothing is read."""
    CORRECTION_OPEN = "correction-open"
    """Rows of a target are corrected, the transaction is not committed."""
    ROWS_CORRECTED = "rows-corrected"
    """Rows of a target are corrected and committed; the saved state of the pass is older."""
    RECONCILING_SAVED = "reconciling-saved"
    """The progress of a pass is saved."""
    VERIFICATION_SAVED = "verification-saved"
    """The progress of a rolling verification is saved."""
    RECONCILING_ENDED = "reconciling-ended"
    """All rows of a target are compared, and the queue still has the entry."""
    SWITCH_REHEARSED = "switch-rehearsed"
    """All rows are compared and the task validates its rows, while the application writes."""
    SWITCH_RECORDED = "switch-recorded"
    """The variables that a switch is about to set are saved, none is set."""
    SWITCH_FROZEN = "switch-frozen"
    """The command has made the sources read-only."""
    SWITCH_APPLIED = "switch-applied"
    """Everything up to the ends of the binlogs is applied, the changed rows are not compared."""
    SWITCH_COMPARED = "switch-compared"
    """They are compared, AUTO_INCREMENT is not set."""
    SWITCH_CERTIFIED = "switch-certified"
    """The certificate is made, the task is not asked to save it."""
    SWITCH_FINISHED = "switch-finished"
    """The task has saved its end and the certificate, and runs; the files are not written."""


_reached: dict[str, int] = {}
_lock = threading.Lock()


def reach(point: Failpoint) -> None:
    """Die here if the environment asks for it; otherwise do nothing."""
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
    """In an executor: die if the driver's environment asks for it, and kill the driver, too."""
    if point:
        os.environ["REPLICATOR_CRASH_AT"] = point
        os.environ["REPLICATOR_CRASH_PID"] = process
    else:
        os.environ.pop("REPLICATOR_CRASH_AT", None)
