"""Merge the tables of a sharded MySQL / MariaDB estate into one table per entity."""
