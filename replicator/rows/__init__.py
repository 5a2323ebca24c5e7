"""Converts row images of the binlog to text, in executors."""
