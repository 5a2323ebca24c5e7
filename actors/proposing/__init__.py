"""The command that proposes a task file for given servers, with routes for sharded tables."""
