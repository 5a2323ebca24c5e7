"""The errors that stop a task or a part of it: faults, transient errors, refusals of servers."""
