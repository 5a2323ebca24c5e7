"""Events of the log: the task and its process."""

from __future__ import annotations

from replicator.events.log_event import LogEvent, fields_of

TASK_EVENTS = (
    LogEvent(
        "task.starting",
        "info",
        "The task starts",
    ),
    LogEvent(
        "task.running",
        "info",
        "The task follows its sources, or copies",
    ),
    LogEvent(
        "task.pausing",
        "info",
        "The task finishes what is under way, and then pauses",
    ),
    LogEvent(
        "task.paused",
        "info",
        "The task pauses. The operator asked for it, or a fault needs an answer",
    ),
    LogEvent(
        "task.stopping",
        "info",
        "The task finishes what is under way, saves, and then ends",
    ),
    LogEvent(
        "task.stopped",
        "info",
        "The task has ended",
    ),
    LogEvent(
        "task.progress",
        "info",
        "How the task is doing, once a minute",
        fields=fields_of(
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
    ),
    LogEvent(
        "task.until-reached",
        "info",
        "The task has applied everything up to the end that `--until` names, and ends",
        fields=fields_of(positions="by source, the positions to reach"),
    ),
    LogEvent(
        "task.step",
        "info",
        "A start begins its next step. A start after a fault begins at `saved state`",
        fields=fields_of(
            step=(
                "`programs` (modules are loaded while Spark starts), `checks`, `lease` (the task "
                "takes its lease, and may wait for another process), `saved state`, `full copy` "
                "(with `task-mode` `all` and `full`), `sources` (positions and structures) or, "
                "before rows are copied or followed, `spark` (the task waits for it; it starts the "
                "application on a cluster)"
            )
        ),
    ),
    LogEvent(
        "memory.settings",
        "info",
        (
            "A start derives these sizes from the memory of its control group or machine, and "
            "from the task file ([Memory](limits.md#memory))"
        ),
        fields=fields_of(
            available_mib="the memory in MiB",
            batch_mib="the size of a batch in MiB",
            largest_event_mib="the size of the largest event in MiB",
            java_heap="the heap of the driver",
        ),
    ),
    LogEvent(
        "loops.compiling",
        "info",
        (
            "This version of the program starts on this host for the first time and compiles "
            "its loops, which takes half a minute. It keeps them beside its modules, or in "
            "`~/.cache/replicator` where it can't write there, as on the executors of a cluster"
        ),
        fields=fields_of("reason"),
    ),
    LogEvent(
        "task.signal",
        "info",
        ("The process gets SIGTERM, SIGINT or SIGHUP. The task finishes its batch, saves and ends"),
        fields=fields_of(signal="the name of the signal"),
    ),
    LogEvent(
        "log.file-lost",
        "warning",
        (
            "The process can't write the file of `--log-file`: the disk is full, or the folder no"
            " longer exists. Only the standard error output gets this record, once. The task goes"
            " on, and each record tries the file again"
        ),
        fields=fields_of("reason", file="the path of the file"),
        no_row_lost=(
            "The log is no part of what is replicated. The standard error output has the "
            "records that the file lacks"
        ),
    ),
    LogEvent(
        "log.file-back",
        "warning",
        "The process can write the log file again",
        fields=fields_of(
            file="the path of the file", lost_records="the number of records that the file lacks"
        ),
        no_row_lost=(
            "The log is no part of what is replicated. The standard error output has the "
            "records that the file lacks"
        ),
    ),
    LogEvent(
        "task.restart",
        "warning",
        "A server or Spark was unavailable. The task starts again from its saved state",
        fields=fields_of("reason", seconds="the wait before the start"),
        no_row_lost=(
            "The task reads everything again from its saved state. The watermarks leave out "
            "what the target has already"
        ),
    ),
    LogEvent(
        "task.lease-waiting",
        "warning",
        (
            "Another process has the lease of the task. The start waits, in case that process "
            "is gone"
        ),
        fields=fields_of(
            "reason",
            host="the host of the other process",
            process="the id of the other process",
            seconds="the longest wait",
        ),
        no_row_lost="The task reads and writes nothing while it waits",
    ),
    LogEvent(
        "task.standby",
        "info",
        "Another process runs the task. This one, started with `--standby`, waits to take over",
        fields=fields_of(
            host="the host of the other process",
            process="the id of the other process",
        ),
    ),
    LogEvent(
        "task.takeover",
        "info",
        (
            "The process that ran the task has ended or is gone. This one goes on from what it has "
            "saved"
        ),
        fields=fields_of(former="the process that ran the task"),
    ),
    LogEvent(
        "task.source-left-out",
        "warning",
        (
            "The saved state has a source that the task file no longer names. The task does not "
            "follow it"
        ),
        fields=fields_of("source"),
        no_row_lost=(
            "The task keeps the position of the source. Once the source is back in the task "
            "file, it goes on from there, or meets `source.purged`"
        ),
    ),
    LogEvent(
        "task.stopped-unsaved",
        "warning",
        (
            "A batch did not end in time, or the target was unavailable. The next start reads its"
            " rows again; none is lost or duplicated"
        ),
        fields=fields_of(writer="the state of the writer"),
        no_row_lost="The next start reads again what is not saved",
    ),
    LogEvent(
        "check.warning",
        "warning",
        "A check at the start found something that the operator should know",
        fields=fields_of("where", "remedies", check="the name of the check", finding="the finding"),
        no_row_lost="The reason depends on the check: see the table of checks below",
    ),
    LogEvent(
        "check.failed",
        "error",
        "A check at the start failed, and the task does not run",
        fields=fields_of("where", "remedies", check="the name of the check", finding="the finding"),
    ),
    LogEvent(
        "task.failed",
        "error",
        "The process ends with an error",
        fields=fields_of("error", "remedies", exception="the traceback of an unexpected error"),
    ),
    LogEvent(
        "command.failed",
        "error",
        (
            "A command ends with an exit code other than 0, and its standard error output is not"
            " a terminal. This includes `run` when it can't read its task file. A command line"
            " with a wrong option gets plain text only"
        ),
        fields=fields_of("error", "where", "remedies"),
    ),
    LogEvent(
        "spark.output",
        "info",
        (
            "The JVM of Spark, or a Python process of it, writes a line, or the connection from "
            "it breaks. Lines that every start writes have the level debug"
        ),
        fields=fields_of(text="the line"),
        other_level="debug",
    ),
    LogEvent(
        "spark.unauthenticated",
        "warning",
        (
            '`spark.conf` has `spark.authenticate: "false"`. Everyone who reaches a port of '
            "this Spark can read its data and run programs as its user"
        ),
        fields=fields_of("reason", remedy="what to do"),
        no_row_lost=(
            "The setting decides who may read and write; rows arrive as before. But everyone "
            "who reaches a port of this Spark can read the accounts and change anything; the "
            "task file asks for this"
        ),
    ),
    LogEvent(
        "task-file.open-to-others",
        "warning",
        "Others can read or change a file with a password or key",
        fields=fields_of(finding="the file, its mode and what to do"),
        no_row_lost=(
            "The task itself does nothing else because of it, but a reader of the password can do"
            " on the servers what the account may. Restrict the file, and change the password if"
            " others may have read it"
        ),
    ),
    LogEvent(
        "task-file.no-effect",
        "warning",
        "The task file has keys that are accepted and do nothing. Each start logs this once",
        fields=fields_of(keys="the keys", findings="the line and the reason of each"),
        no_row_lost=(
            "Such a key says how DM works, never which rows or columns it replicates: a key "
            "that would say so, and is not supported, is refused"
        ),
    ),
    LogEvent(
        "task.filters-changed",
        "warning",
        "The event filters of some shards have changed since the task last started",
        fields=fields_of(
            "source",
            shards="the number of shards",
            examples="some of them with the rules before and now",
        ),
        no_row_lost=(
            "The task file says which events the task leaves out, and the log says that this "
            "has changed. Rows on the target stay"
        ),
    ),
    LogEvent(
        "meta.removed",
        "info",
        "`--remove-meta` has removed the checkpoint",
    ),
    LogEvent(
        "control.not-noted",
        "warning",
        (
            "The process can't write the file beside its socket by which `replicator status` "
            "knows of tasks that have ended. Nothing else needs it"
        ),
        fields=fields_of("error"),
        no_row_lost="Only the list of `replicator status` needs the file",
    ),
    LogEvent(
        "metrics.listening",
        "info",
        "The task publishes its metrics, and shows its status as a page, at this address",
        fields=fields_of(address="the address and port"),
    ),
    LogEvent(
        "metrics.hung-up",
        "debug",
        "A client of the metrics left early or sent an invalid request",
        fields=fields_of("reason"),
    ),
    LogEvent(
        "control.hung-up",
        "debug",
        "A client of the control socket left early or sent nothing",
        fields=fields_of("reason"),
    ),
    LogEvent(
        "server.warning",
        "debug",
        "A server answers a statement of this program with a warning",
        fields=fields_of(
            severity="the level that the server gives it",
            code="the code of the server",
            message="the text without values",
        ),
    ),
)
"""The task and its process, in the order of the page."""


VALIDATION_EVENTS = (
    LogEvent(
        "validation.error",
        "warning",
        (
            "Rows of a target stay different from those of their shards, longer than "
            "`row-error-delay` and though the task has applied all that the shards had. "
            "`replicator validation show-error TASK` lists them, and `replicator compare TASK.yaml "
            "--repair FILE` writes what makes them equal"
        ),
        fields=fields_of(
            "target",
            rows="the number of rows",
            examples="some of them: how they differ, the key (where `show-row-values` allows "
            "values), the shard, the columns",
        ),
        no_row_lost="The task has applied the rows; something else has changed them since",
    ),
    LogEvent(
        "validation.skipped",
        "warning",
        (
            "The task does not validate some keys: too many wait (`max-pending-row-count`), their "
            "servers can't be read, or their table has another key by now"
        ),
        fields=fields_of(keys="the number of keys"),
        no_row_lost="The task has applied the rows. `replicator compare` looks at all rows",
    ),
    LogEvent(
        "validation.left-out",
        "warning",
        "The task can't validate the rows of a target",
        fields=fields_of("target", "reason"),
        no_row_lost="The task applies the rows all the same. `replicator compare` looks at them",
    ),
    LogEvent(
        "validation.no-slots",
        "warning",
        (
            "The Spark cluster has too few slots for the validation beside the pipeline. The task "
            "does not validate rows"
        ),
        fields=fields_of(slots="the number of slots of the cluster"),
        no_row_lost="The task applies the rows all the same. `replicator compare` looks at them",
    ),
    LogEvent(
        "validation.later",
        "info",
        "The validation could not read a server, and tries again",
        fields=fields_of("reason", "target"),
    ),
)
"""The validation of rows, in the order of the page."""
