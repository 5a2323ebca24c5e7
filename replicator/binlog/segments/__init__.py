"""Segments, the output of a binlog reader: runs of row events in columns, cut at statements."""
