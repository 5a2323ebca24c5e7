"""What is looked at before a task starts: each finding with its remedies."""
