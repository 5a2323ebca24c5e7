"""One round: a recorded reading with one fault in it, and what is to be said of its outcome."""

from __future__ import annotations

import contextlib
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from replicator.binlog.errors import BinlogError, StreamLostError
from replicator.binlog.events.event_header import CHECKSUM_SIZE, HEADER_SIZE, EventType
from replicator.binlog.positions.position import OFFSET_BITS, BinlogPosition
from tests.fuzz.faults import Fault, Kind, some_fault
from tests.fuzz.reading import Boundary, Reading, reader
from tests.fuzz.recording import Recording
from tests.fuzz.replay import player

READ_TIMEOUT = 0.3
"""Seconds; longer than the heartbeat."""
MOST_MEMORY = 96 << 20
"""Bytes by which a round may raise the memory of its process at its peak."""
LONGEST = 15.0
"""Seconds that a round takes at most, of which hardly any is work."""
_LOOKED_INTO = 12
"""Packets."""

EQUAL, LOST, UNREADABLE = "equal", "connection lost", "unreadable"
UNDETECTABLE = "a value that nothing protects"
SILENCE, EXCEPTION, MEMORY = "SILENCE", "EXCEPTION", "MEMORY"
HANG, DIED, STOPPED = "HANG", "DIED", "OTHERS STOPPED"
VIOLATIONS = frozenset({SILENCE, EXCEPTION, MEMORY, HANG, DIED, STOPPED})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a round: one of the words above, and why. ``peak`` in bytes."""

    recording: str
    seed: int
    fault: str
    what: str
    why: str = ""
    peak: int = 0

    @property
    def kind(self) -> str:
        """That of the fault."""
        return self.fault.partition(" ")[0]

    @property
    def is_violation(self) -> bool:
        return self.what in VIOLATIONS


class Judge:
    """Knows what a recording has to give; the process must have its memory's peak to itself."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.expected = self._unfaulted()
        self._heartbeats = set(_heartbeats(recording))

    def fault(self, seed: int) -> Fault:
        """The fault of a seed: login, look-ups and binlog are as likely, whatever their sizes."""
        random = Random(f"{self.recording.name} {seed}")
        number = random.randrange(len(self.recording.connections))
        flights = self.recording.connections[number]
        sizes = [len(flight.answers) for flight in flights]
        login, binlog = sum(sizes[:2]), sum(sizes[:-1])
        end = sum(sizes)
        if number < len(self.recording.connections) - 1:
            # Of a binlog that is only looked into, no more is read.
            end = min(end, binlog + _LOOKED_INTO)
        regions = (range(login), range(login, binlog), range(binlog, end))
        return some_fault(random, number, random.choice(random.choice(regions) or range(login)))

    def round(self, seed: int) -> Outcome:
        """Read with the fault of this seed."""
        return self.run(seed, self.fault(seed))

    def run(self, seed: int, fault: Fault) -> Outcome:
        """Read with this fault."""
        before = _reset_peak()
        reading, began = Reading(), time.monotonic()
        error = self._read(fault, reading)
        seconds = time.monotonic() - began
        peak = max(0, _peak() - before)
        what, why = self._verdict(fault, reading, error)
        if peak > MOST_MEMORY:
            what, why = MEMORY, f"{peak >> 20} MiB, {what}: {why}"
        if seconds > LONGEST:
            what, why = HANG, f"{seconds:.1f} s, {what}: {why}"
        return Outcome(self.recording.name, seed, str(fault), what, why, peak)

    def _unfaulted(self) -> Reading:
        reading = Reading()
        error = self._read(None, reading, packetwise=True)
        assert isinstance(error, StreamLostError), error
        assert reading.boundary.key >= self.recording.end, (reading.boundary, error)
        return reading

    def _read(
        self, fault: Fault | None, reading: Reading, *, packetwise: bool = False
    ) -> Exception:
        one = self.recording
        timeout = READ_TIMEOUT if fault else 10.0
        with player(one, fault) as line:
            try:
                with reader(
                    line.port,
                    one.start,
                    one.schema,
                    one.identity,
                    timeout=timeout,
                    packetwise=packetwise,
                ) as stream:
                    while True:
                        reading.add(stream.read_segment())
            # Whatever it is: that is the question.
            except Exception as error:  # noqa: BLE001
                return error

    def _verdict(self, fault: Fault, reading: Reading, error: Exception) -> tuple[str, str]:
        if isinstance(error, MemoryError):
            return MEMORY, "MemoryError"
        if not isinstance(error, BinlogError | StreamLostError):
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(frame.filename).name}:{frame.lineno}"
            return EXCEPTION, f"{type(error).__name__} at {place}: {error}"
        if wrong := self._wrong(reading):
            if self._unprotected(fault):
                return UNDETECTABLE, wrong
            return SILENCE, f"{wrong}; then {type(error).__name__}: {error}"
        if isinstance(error, BinlogError):
            return UNREADABLE, f"{type(error).__name__}: {error}"
        if len(reading.items) == len(self.expected.items) and (
            reading.boundary.key >= self.recording.end
        ):
            return EQUAL, ""
        return LOST, str(error)

    def _wrong(self, reading: Reading) -> str:
        """What differs from the unfaulted reading up to where this one came; "" for nothing."""
        expected = self.expected
        for number, (found, wanted) in enumerate(zip(reading.items, expected.items, strict=False)):
            if found != wanted:
                return f"item {number} is {found!s:.150}, not {wanted!s:.150}"
        if len(reading.items) > len(expected.items):
            return f"{len(reading.items)} items instead of {len(expected.items)}"
        anchors = {one.anchor for one in expected.boundaries.values()}
        for key, boundary in reading.boundaries.items():
            if boundary.anchor not in anchors:
                return f"at {_shown(key)}: an anchor that no event is ({boundary.anchor!r})"
            wanted_here = expected.boundaries.get(key)
            if wanted_here is None and key in self._heartbeats:
                # A source that goes over what is not asked for tells where it is, by the way.
                before = max((known for known in expected.boundaries if known < key), default=None)
                if boundary.items == (expected.boundaries[before].items if before else 0):
                    continue
            if wanted_here is None:
                return f"a boundary at {_shown(key)}, where none is"
            if boundary != wanted_here:
                return f"at {_shown(key)}: {_short(boundary)}, not {_short(wanted_here)}"
        return ""

    def _unprotected(self, fault: Fault) -> bool:
        """Whether no reader can tell: single values of look-ups, and binlogs without checksums."""
        flights = self.recording.connections[fault.connection]
        if fault.packet >= sum(len(flight.answers) for flight in flights[:-1]):
            return fault.kind is Kind.FLIP and not self.recording.checksums
        return fault.passes_for_real


def _heartbeats(recording: Recording) -> Iterator[int]:
    """The places that heartbeats tell, as keys. They hold the name of the file."""
    for packet in recording.connections[-1][-1].answers:
        event = packet.payload[1:]
        if len(event) > HEADER_SIZE and event[4] == EventType.HEARTBEAT:
            name = event[HEADER_SIZE : -CHECKSUM_SIZE if recording.checksums else None]
            offset = int.from_bytes(event[13:17], "little")
            yield BinlogPosition(name.decode(), offset).key


def _shown(key: int) -> str:
    return f"{key >> OFFSET_BITS}:{key & (1 << OFFSET_BITS) - 1}"


def _short(boundary: Boundary) -> str:
    prepared = ", ".join(map(str, boundary.prepared))
    return f"{boundary.items} items, GTIDs {boundary.gtid}, prepared [{prepared}]"


def _reset_peak() -> int:
    """Let the peak of this process's memory begin anew; its present memory, in bytes."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _peak() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    return 0
