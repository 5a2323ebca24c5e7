"""Converts the task file for the actors; also the commands that need no task."""
