"""Checks of what a task needs of its sources."""
