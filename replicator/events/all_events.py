"""All events of the log, by subject. A test holds what the program logs against this table."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.events.batch_events import BATCH_EVENTS
from replicator.events.copy_events import COPY_EVENTS
from replicator.events.ddl_events import DDL_EVENTS
from replicator.events.fault_events import COPY_FAULTS, SOURCE_FAULTS, TASK_FAULTS
from replicator.events.log_event import LogEvent
from replicator.events.row_fault_events import DDL_FAULTS, ROW_FAULTS
from replicator.events.source_events import SOURCE_EVENTS
from replicator.events.task_events import TASK_EVENTS, VALIDATION_EVENTS

SUBJECTS: Mapping[str, tuple[LogEvent, ...]] = {
    "The task and its process": TASK_EVENTS,
    "Sources": SOURCE_EVENTS,
    "The full copy": COPY_EVENTS,
    "Batches, rows and targets": BATCH_EVENTS,
    "Schema changes": DDL_EVENTS,
    "Validation": VALIDATION_EVENTS,
}
"""The events that are no faults, by the headings of the page."""

FAULTS: Mapping[str, tuple[LogEvent, ...]] = {
    "The task, its servers and its file": TASK_FAULTS,
    "Sources and their binlogs": SOURCE_FAULTS,
    "The full copy": COPY_FAULTS,
    "Rows and targets": ROW_FAULTS,
    "Schema changes": DDL_FAULTS,
}
"""The faults, by the headings of their page."""

FAULT_EVENTS = tuple(event for events in FAULTS.values() for event in events)

EVENTS = (*(event for events in SUBJECTS.values() for event in events), *FAULT_EVENTS)
"""Every event, each name once."""
