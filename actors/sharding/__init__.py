"""Sharding groups and their locks, which decide when a target executes a schema change."""
