"""Sharding groups and the locks between them: when a target's DDL is executed."""
