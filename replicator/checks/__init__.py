"""The checks before a task starts: each finding with its remedies."""
