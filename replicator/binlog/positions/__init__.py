"""Places in binlogs: positions, GTID sets, anchor events, how far they are from both ends."""
