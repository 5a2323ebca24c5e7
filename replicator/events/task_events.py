"""Events of the log: the task and its process."""

from __future__ import annotations

from dataclasses import replace

from replicator.events.log_event import debug, error, info, warning

TASK_EVENTS = (
    info(
        "task.starting",
        "The task starts",
    ),
    info(
        "task.running",
        "The task follows its sources, or copies",
    ),
    info(
        "task.pausing",
        "The task finishes what is under way, and then pauses",
    ),
    info(
        "task.paused",
        "The task pauses. The operator asked for it, or a fault needs an answer",
    ),
    info(
        "task.stopping",
        "The task finishes what is under way, saves, and then ends",
    ),
    info(
        "task.stopped",
        "The task has ended",
    ),
    info(
        "task.progress",
        "How the task is doing, once a minute",
        condition="the word of `replicator status` ([status](status.md#the-list))",
        lag_seconds="the largest lag of all sources; null where it is not known",
        rows_per_second="rows written, on average since the last of these records",
        rows="rows written since the start of the process",
        queued_bytes="row events that are read and not applied",
        checkpoint_age_seconds="since the checkpoint was saved; null where nothing is followed",
        locks="open locks",
        blocked="blocked targets and sources",
        copied="how far a full copy is; empty where none runs",
    ),
    info(
        "task.until-reached",
        "The task has applied everything up to the end that `--until` names, and ends",
        positions="by source, the positions to reach",
    ),
    info(
        "task.step",
        "A start begins its next step. A start after a fault begins at `saved state`",
        step="`programs` (modules are loaded while Spark starts), `checks`, `lease` (the task "
        "takes its lease, and may wait for another process), `saved state`, `full copy` (with "
        "`task-mode` `all` and `full`), `sources` (positions and structures) or, before rows are "
        "copied or followed, `spark` (the task waits for it; it starts the application on a "
        "cluster)",
    ),
    info(
        "memory.settings",
        "A start derives these sizes from the memory of its control group or machine, and from "
        "the task file ([Memory](limits.md#memory))",
        available_mib="the memory in MiB",
        batch_mib="the size of a batch in MiB",
        largest_event_mib="the size of the largest event in MiB",
        java_heap="the heap of the driver",
    ),
    info(
        "loops.compiling",
        "This version of the program starts on this host for the first time and compiles its "
        "loops, which takes half a minute. It keeps them beside its modules, or in "
        "`~/.cache/replicator` where it can't write there, as on the executors of a cluster",
        "reason",
    ),
    info(
        "task.signal",
        "The process gets SIGTERM, SIGINT or SIGHUP. The task finishes its batch, saves and ends",
        signal="the name of the signal",
    ),
    warning(
        "log.file-lost",
        "The process can't write the file of `--log-file`: the disk is full, or the folder no "
        "longer exists. Only the standard error output gets this record, once. The task goes on, "
        "and each record tries the file again",
        "reason",
        file="the path of the file",
        no_row_lost="The log is no part of what is replicated. The standard error output has the "
        "records that the file lacks",
    ),
    warning(
        "log.file-back",
        "The process can write the log file again",
        file="the path of the file",
        lost_records="the number of records that the file lacks",
        no_row_lost="The log is no part of what is replicated. The standard error output has the "
        "records that the file lacks",
    ),
    warning(
        "task.restart",
        "A server or Spark was unavailable. The task starts again from its saved state",
        "reason",
        seconds="the wait before the start",
        no_row_lost="The task reads everything again from its saved state. The watermarks leave "
        "out what the target has already",
    ),
    warning(
        "task.lease-waiting",
        "Another process has the lease of the task. The start waits, in case that process is gone",
        "reason",
        host="the host of the other process",
        process="the id of the other process",
        seconds="the longest wait",
        no_row_lost="The task reads and writes nothing while it waits",
    ),
    info(
        "task.standby",
        "Another process runs the task. This one, started with `--standby`, waits to take over",
        host="the host of the other process",
        process="the id of the other process",
    ),
    info(
        "task.takeover",
        "The process that ran the task has ended or is gone. This one goes on from what it has "
        "saved",
        former="the process that ran the task",
    ),
    warning(
        "task.source-left-out",
        "The saved state has a source that the task file no longer names. The task does not "
        "follow it",
        "source",
        no_row_lost="The task keeps the position of the source. Once the source is back in the "
        "task file, it goes on from there, or meets `source.purged`",
    ),
    warning(
        "task.stopped-unsaved",
        "A batch did not end in time, or the target was unavailable. The next start reads its "
        "rows again; none is lost or duplicated",
        writer="the state of the writer",
        no_row_lost="The next start reads again what is not saved",
    ),
    warning(
        "check.warning",
        "A check at the start found something that the operator should know",
        "where remedies",
        check="the name of the check",
        finding="the finding",
        no_row_lost="The reason depends on the check: see the table of checks below",
    ),
    error(
        "check.failed",
        "A check at the start failed, and the task does not run",
        "where remedies",
        check="the name of the check",
        finding="the finding",
    ),
    error(
        "task.failed",
        "The process ends with an error",
        "error remedies",
        exception="the traceback of an unexpected error",
    ),
    error(
        "command.failed",
        "A command ends with an exit code other than 0, and its standard error output is not a "
        "terminal. This includes `run` when it can't read its task file. A command line with a "
        "wrong option gets plain text only",
        "error where remedies",
    ),
    replace(
        info(
            "spark.output",
            "The JVM of Spark, or a Python process of it, writes a line, or the connection from it "
            "breaks. Lines that every start writes have the level debug",
            text="the line",
        ),
        other_level="debug",
    ),
    warning(
        "spark.unauthenticated",
        '`spark.conf` has `spark.authenticate: "false"`. Everyone who reaches a port of this '
        "Spark can read its data and run programs as its user",
        "reason",
        remedy="what to do",
        no_row_lost="The setting decides who may read and write; rows arrive as before. But "
        "everyone who reaches a port of this Spark can read the accounts and change anything; the "
        "task file asks for this",
    ),
    warning(
        "task-file.open-to-others",
        "Others can read or change a file with a password or key",
        finding="the file, its mode and what to do",
        no_row_lost="The task itself does nothing else because of it, but a reader of the "
        "password can do on the servers what the account may. Restrict the file, and change the "
        "password if others may have read it",
    ),
    warning(
        "task-file.no-effect",
        "The task file has keys that are accepted and do nothing. Each start logs this once",
        keys="the keys",
        findings="the line and the reason of each",
        no_row_lost="Such a key says how DM works, never which rows or columns it replicates: a "
        "key that would say so, and is not supported, is refused",
    ),
    warning(
        "task.filters-changed",
        "The event filters of some shards have changed since the task last started",
        "source",
        shards="the number of shards",
        examples="some of them with the rules before and now",
        no_row_lost="The task file says which events the task leaves out, and the log says that "
        "this has changed. Rows on the target stay",
    ),
    info(
        "meta.removed",
        "`--remove-meta` has removed the checkpoint",
    ),
    warning(
        "control.not-noted",
        "The process can't write the file beside its socket by which `replicator status` knows of "
        "tasks that have ended. Nothing else needs it",
        "error",
        no_row_lost="Only the list of `replicator status` needs the file",
    ),
    info(
        "metrics.listening",
        "The task publishes its metrics, and shows its status as a page, at this address",
        address="the address and port",
    ),
    debug(
        "metrics.hung-up",
        "A client of the metrics left early or sent an invalid request",
        "reason",
    ),
    debug(
        "control.hung-up",
        "A client of the control socket left early or sent nothing",
        "reason",
    ),
    debug(
        "server.warning",
        "A server answers a statement of this program with a warning",
        severity="the level that the server gives it",
        code="the code of the server",
        message="the text without values",
    ),
)
"""The task and its process, in the order of the page."""


VALIDATION_EVENTS = (
    warning(
        "validation.error",
        "Rows of a target stay different from those of their shards, longer than "
        "`row-error-delay` and though the task has applied all that the shards had. `replicator "
        "validation show-error TASK` lists them, and `replicator compare TASK.yaml --repair FILE` "
        "writes what makes them equal",
        "target",
        rows="the number of rows",
        examples="some of them: how they differ, the key (where `show-row-values` allows values), "
        "the shard, the columns",
        no_row_lost="The task has applied the rows; something else has changed them since",
    ),
    warning(
        "validation.skipped",
        "The task does not validate some keys: too many wait (`max-pending-row-count`), their "
        "servers can't be read, or their table has another key by now",
        keys="the number of keys",
        no_row_lost="The task has applied the rows. `replicator compare` looks at all rows",
    ),
    warning(
        "validation.left-out",
        "The task can't validate the rows of a target",
        "target reason",
        no_row_lost="The task applies the rows all the same. `replicator compare` looks at them",
    ),
    warning(
        "validation.no-slots",
        "The Spark cluster has too few slots for the validation beside the pipeline. The task "
        "does not validate rows",
        slots="the number of slots of the cluster",
        no_row_lost="The task applies the rows all the same. `replicator compare` looks at them",
    ),
    info(
        "validation.later",
        "The validation could not read a server, and tries again",
        "reason target",
    ),
)
"""The validation of rows, in the order of the page."""
