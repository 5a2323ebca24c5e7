"""Measuring the merge against what the target server itself can do."""
