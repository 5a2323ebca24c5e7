"""The Spark application of a task: starting Java, the session, the cluster, what is shipped to
executors.
"""
