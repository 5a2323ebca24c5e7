"""A copy of a source's binlog files on this host, which a task reads instead of the source."""
