"""Faults in what servers send: replayed conversations, and whole tasks behind a faulty proxy."""
