"""The worker pool: long-lived, authenticated Spark tasks that serve one request after another."""
