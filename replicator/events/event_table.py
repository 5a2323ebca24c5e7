"""All events of the log, by subject. A test holds what the program logs against this table."""

from __future__ import annotations

from collections.abc import Mapping

from replicator.events.batch_events import BATCH_EVENTS
from replicator.events.copy_events import COPY_EVENTS
from replicator.events.ddl_events import DDL_EVENTS
from replicator.events.fault_events import FAULT_EVENTS
from replicator.events.log_event import LogEvent
from replicator.events.source_events import SOURCE_EVENTS
from replicator.events.task_events import TASK_EVENTS

SUBJECTS: Mapping[str, tuple[LogEvent, ...]] = {
    "The task and its process": TASK_EVENTS,
    "Sources": SOURCE_EVENTS,
    "The full copy": COPY_EVENTS,
    "Batches, rows and targets": BATCH_EVENTS,
    "Schema changes": DDL_EVENTS,
}
"""The events that are no faults, by the headings of the page."""

EVENTS = (*(event for events in SUBJECTS.values() for event in events), *FAULT_EVENTS)
"""Every event, each name once."""
