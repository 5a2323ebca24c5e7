"""The task file as actors need it, and the commands that need no task."""
