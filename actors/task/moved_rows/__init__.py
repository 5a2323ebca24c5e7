"""Rows that move between shards: tracked keys, looked up and repaired."""
