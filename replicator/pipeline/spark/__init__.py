"""The Spark application of a task: starting Java, the session, the cluster, files for executors."""
