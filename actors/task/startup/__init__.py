"""The start of a run: checks, the position of each source, changes of the task file."""
