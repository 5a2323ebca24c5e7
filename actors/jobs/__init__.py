"""Submitting Spark jobs, and the waits between attempts."""
