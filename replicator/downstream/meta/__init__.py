"""The meta tables: what a task has saved, one store per subject."""
