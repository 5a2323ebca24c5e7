"""The formats of binlog events, one by one."""
