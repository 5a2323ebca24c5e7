"""Counts of what a task has done since its process started."""
