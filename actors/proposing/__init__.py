"""Proposing a task file for given servers: routes for sharded tables, the command."""
