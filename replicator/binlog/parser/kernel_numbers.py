"""The numbers of the compiled loop over events: their places in their array.

`replicator.binlog.parser.fast_path_kernel` shares it with `replicator.binlog.parser.fast_path`.
"""

# The places of the loop's numbers in their array. Where the next packet begins in the buffer, and
# where what was received ends:
PACKET, LIMIT = 0, 1
# In the file: where the newest event begins and ends, the last boundary, the file's position key.
BEFORE, OFFSET, BOUNDARY, FILE_KEY = 2, 3, 4, 5
CHECKSUM = 6
"""The bytes of an event's checksum: 4, or 0 where there is none."""
# The group, as in `replicator.binlog.parser.parser_state`; RESUMING: rows may have to be left out.
OPEN, BEGUN, WITHOUT_EFFECT, LOCATED, RESUMING = 7, 8, 9, 10, 11
TRANSACTION, ORDINAL, SKIP, ROUTED = 12, 13, 14, 15
# The segment: bytes of events, row events and their bytes.
BYTES, COUNT, KEPT, TIMESTAMP, MOVED = 16, 17, 18, 19, 20
TARGET_BYTES, MAX_BYTES, TARGET_EVENTS, MAX_EVENTS = 21, 22, 23, 24
# The first event of the newest group: where it stands in the buffer (-1: not there), in the file.
NEWEST, NEWEST_SIZE, NEWEST_OFFSET = 25, 26, 27
SEQUENCE = 28
"""The number of the next packet."""
# The statement: its number, and whether rows of it came that do not end it.
STATEMENT, UNENDED = 29, 30
# Whose GTIDs they are (0: none came yet), and whether the newest one's group is open.
FAMILY, PENDING = 31, 32
# The newest: domain, server and sequence, or both halves of the UUID, and the number.
GTID, GTID_SERVER, GTID_NUMBER = 33, 34, 35
# Those executed since, of this domain or UUID: none, or the last one's server and sequence; or the
# first number, and the end.
EXECUTED, EXECUTED_FIRST, EXECUTED_LAST = 36, 37, 38
INSIDE = 39
"""Whether the next events are those of a payload: not in packets, without checksums, and all end
where the payload does."""
# How many of the payloads that were expanded ahead have been gone into. Where the next event of the
# last one begins in what is expanded, and where they end:
ENTERED, INNER, INNER_LIMIT = 40, 41, 42
RUNS = 43
"""How many runs of GTIDs, each of one domain or UUID, have ended."""
NUMBERS = 44

MARIADB, MYSQL, TAGGED = 1, 2, 3
"""For FAMILY. Of GTIDs with tags the loop only ends the groups: handlers read them."""

UNUSUAL, DONE, ENDS = 0, 1, 2
"""What becomes of an event: it needs a handler; it is done with; and the segment ends with it."""
