"""A local copy of a source's binlog files, which a task reads instead of the source."""
