"""The binlog: connection, event framing, positions and GTID sets, row decoding."""
