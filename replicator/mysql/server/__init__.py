"""The identity of a server, its errors, the end of its binlog, names and their case."""
