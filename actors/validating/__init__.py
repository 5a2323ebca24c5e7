"""Validates rows while a task runs: applied keys are read again and compared."""
