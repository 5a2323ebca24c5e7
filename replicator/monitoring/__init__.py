"""Monitoring of a task: its metrics, the web page at their address, and its summary in the log."""
