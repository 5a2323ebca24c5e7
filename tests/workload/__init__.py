"""Workloads that others have written, as sources of a task."""
