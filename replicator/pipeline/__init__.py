"""The Spark jobs: apply, full copy, compare; the session."""
