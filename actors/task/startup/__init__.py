"""The start of a run: checks, the lease, the position of each source, changes of the task file."""
