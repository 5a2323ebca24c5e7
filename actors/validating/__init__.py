"""Validating rows while a task runs: keys that were applied are read again and compared."""
