"""Statements with other names, storage or defaults, all else as it was written."""
