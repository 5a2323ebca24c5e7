"""What the actors of one run share: connections to the target, the lease, Spark, who is
unavailable.
"""
