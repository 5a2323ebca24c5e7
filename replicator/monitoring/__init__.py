"""What monitoring sees of a task: metrics, the page at their address, its minute in the log."""
