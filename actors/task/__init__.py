"""The life of a task: checks, start, generations, status, the operator's commands."""
