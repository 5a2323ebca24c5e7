"""The worker pool: tasks of Spark that stay, are authenticated, and serve request after request."""
