"""The shared resources of one run's actors: connections, the lease, Spark, unavailable sources."""
