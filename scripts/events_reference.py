"""The pages that are made from the events of the log.

``python -m scripts.events_reference > docs/reference/logs.md`` writes the page of the log again,
``… warnings > docs/runbook/warnings.md`` that of the warnings, and
``… faults > docs/runbook/faults.md`` that of the faults.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from string import Formatter

from replicator.events.all_events import (
    COMMON_FIELDS,
    EVENTS,
    FAULT_EVENTS,
    FAULTS,
    SUBJECTS,
    LogEvent,
)
from replicator.events.fault_catalogue import (
    GIVEN_REMEDIES,
    SHARED_TEXTS,
    FaultCase,
    FaultSection,
    Remedy,
    placeholders,
)
from scripts.check_warnings import CHECK_WARNINGS

_LOG_HEAD = """\
# The log

This page is made from the program (`python -m scripts.events_reference`); don't edit it.

`replicator run` logs to the standard error output: readable lines on a terminal, JSON lines
elsewhere, and nothing else. This includes what Spark's processes write (`spark.output`) and what a
failed check finds (`check.failed`). `--log-file FILE` also appends JSON lines to a file. It may be
rotated by renaming it, at any time: the next record begins a new one. A signal is not needed, and
SIGHUP ends only a task that has a terminal. `--log-max-size 100MiB` rotates it by itself: `FILE.1`
is the newest of five older ones. `--log-level` is `debug`, `info` (default), `warning` or `error`.

Every record has `timestamp` (UTC, ISO 8601), `level`, `event` and, as far as it belongs to one,
`task`. The tables name its other fields. Passwords never appear. Event names are stable; records of
libraries have their text as `event`.

These fields mean the same wherever an event does not say otherwise:

| field | meaning |
|---|---|"""

_FAULTS_HEAD = """\
## Faults

A fault blocks a target, a source, or the whole task (with `--on-error exit` it ends the process):
[which one, and what to do](../runbook/faults.md). Its record has the fields `error`, `where` and
`remedies`, and the level `error` (`target.locked`: `warning`). `replicator status` shows a fault
with its remedies until `replicator resume`.

| event | meaning |
|---|---|"""

_WARNINGS_HEAD = """\
# Warnings

This page is made from the program (`python -m scripts.events_reference warnings`); don't edit
it.

Whatever could lose, double or change a row is a [fault](faults.md), or a failed check that keeps
the task from starting. This page lists everything else: each warning, with the reason why it costs
no row.

## In the log

Records with `level` `warning`; [the log](../reference/logs.md) says what each means. A fault with
this level blocks its target like any other.

| event | why no row is lost |
|---|---|"""

_CHECKS_HEAD = """\
## Checks

`replicator check`, and each start of `run`, make these checks. A check passes, warns or fails.

| check | what is a warning | why no row is lost |
|---|---|---|"""


_RUNBOOK_HEAD = """\
# Faults

This page is made from the program (`python -m scripts.events_reference faults`); don't edit it.

A fault stops a target, a source or the whole task, because going on would lose, double or falsify
rows. `replicator status` and the log show its event, what happened, where, and the commands that
end it. Find the event below, remove the cause, and resume. One of the remedies below a message is
enough; `{…}` stands for a value that the task fills in.

```
replicator resume TASK                        the whole task
replicator resume TASK --target shop.orders   one target
replicator resume TASK --source shard-1       one source
```

**What happens to the rows meanwhile.** The task has not written the row or statement that the fault
names. Other rows of the same batch may be on the target; the task does not write them twice.

* A blocked target: the task reads its rows again when it goes on; keep the binlogs until then. All
  other targets go on.
* A blocked source: the task reads nothing more of it. The other sources go on, also for targets
  that they share with it.
* A fault of the task: it reads and writes nothing until you resume it.

[Blocked parts](faults-in-detail.md#blocked-parts) has the details.
[What recovers by itself](what-needs-nobody.md) lists what needs no operator.

**Copy again** works in every state: `replicator stop TASK`, empty *all* targets of the task (drop
those whose columns differ from the shards': the copy creates them), set `task-mode: all`,
`replicator remove TASK.yaml`, then `replicator run TASK.yaml`.

**Start after a statement or event**: [the steps](faults-in-detail.md#start-after-a-statement).

**`binlog skip`, `replace` and `inject`** answer a statement of a binlog
([how](schema-changes.md#statements-that-cant-be-executed)); the fault has the commands, ready to be
typed. Resume afterwards."""


_FIELD_ALONE = re.compile(r"\{\w+\}")
"""A message that is only the text of an error, which the page can't show."""


def log_page() -> str:
    """The text of docs/reference/logs.md."""
    lines = [_LOG_HEAD, *(f"| `{name}` | {meaning} |" for name, meaning in COMMON_FIELDS.items())]
    lines += ["", "## Events"]
    for subject, events in SUBJECTS.items():
        lines += ["", f"### {subject}", "", "| event | level | meaning | fields |"]
        lines += ["|---|---|---|---|", *map(_row, events)]
    lines += ["", _FAULTS_HEAD]
    lines += [f"| `{event.name}` | {event.meaning} |" for event in FAULT_EVENTS]
    return "\n".join(lines) + "\n"


def warnings_page() -> str:
    """The text of docs/runbook/warnings.md."""
    warnings = [event for event in EVENTS if event.level == "warning"]
    lines = [_WARNINGS_HEAD, *(f"| `{event.name}` | {event.no_row_lost} |" for event in warnings)]
    lines += ["", _CHECKS_HEAD]
    lines += [f"| `{w.check}` | {w.finding} | {w.no_row_lost} |" for w in CHECK_WARNINGS]
    return "\n".join(lines) + "\n"


def faults_page() -> str:
    """The text of docs/runbook/faults.md: a section for each fault."""
    lines = [_RUNBOOK_HEAD]
    for subject, events in FAULTS.items():
        lines += ["", f"## {subject}"]
        for event in events:
            section = event.fault
            assert section is not None, event.name
            lines += ["", f"### {event.name}", "", f"{event.meaning}."]
            lines += [
                "",
                section.cause,
                "",
                f"Blocks: {section.blocks}.",
                *messages_and_remedies(section),
            ]
            lines += [line for text in section.advice for line in ("", text)]
    return "\n".join(lines) + "\n"


def messages_and_remedies(section: FaultSection) -> Iterator[str]:
    """The messages of a fault, each with its remedies below it, and the names of its cases."""
    kinds = [
        ([*map(_remedy, case.remedies), *_answers(case)], name, case.message)
        for name, case in section.cases.items()
    ]
    for remedies, alike in groupby(kinds, key=itemgetter(0)):
        for _, name, message in alike:
            if name:
                yield from ("", f"**{name.replace('-', ' ').capitalize()}**")
            if not _FIELD_ALONE.fullmatch(message):
                yield ""
                yield from (f"> {line}" for line in on_page(message).splitlines())
        yield ""
        yield from (f"* {remedy}" for remedy in remedies)


def _remedy(remedy: Remedy) -> str:
    text = (
        "What the message says" if remedy.template == GIVEN_REMEDIES else on_page(remedy.template)
    )
    return (text[0].upper() + text[1:]).rstrip(".") + "."


def _answers(case: FaultCase) -> Iterator[str]:
    if case.answers:
        commands = [f"`replicator binlog {answer}`" for answer in case.answers]
        last = f" or {commands[-1]}" if len(commands) > 1 else ""
        yield f"Or answer the statement: {', '.join(commands[: -1 if last else None])}{last}."


class _OnPage(Formatter):
    """Shows fields by their names, and shared texts in the words of the page."""

    def get_field(
        self, field_name: str, args: Sequence[object], kwargs: Mapping[str, object]
    ) -> tuple[str, str]:
        (name,) = placeholders(f"{{{field_name}}}")
        text = SHARED_TEXTS.get(name)
        return (f"{{{name.replace('_', ' ')}}}" if text is None else on_page(text.page)), name

    def format_field(self, value: str, format_spec: str) -> str:
        return value


def on_page(template: str) -> str:
    """Return a template of the catalogue with the names of its fields."""
    return _OnPage().format(template)


def _row(event: LogEvent) -> str:
    level = f"{event.level}, {event.other_level}" if event.other_level else event.level
    return f"| `{event.name}` | {level} | {event.meaning} | {'; '.join(_fields(event))} |"


def _fields(event: LogEvent) -> Iterator[str]:
    """The fields: those with their common meaning by name only."""
    common = [f"`{name}`" for name, meaning in event.fields.items() if _is_common(name, meaning)]
    if common:
        yield ", ".join(common)
    for name, meaning in event.fields.items():
        if not _is_common(name, meaning):
            yield f"`{name}`: {meaning}"


def _is_common(name: str, meaning: str) -> bool:
    return COMMON_FIELDS.get(name) == meaning


if __name__ == "__main__":
    pages = {"warnings": warnings_page, "faults": faults_page, "log": log_page}
    sys.stdout.write(pages["".join(sys.argv[1:]) or "log"]())
