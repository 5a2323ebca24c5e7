"""What a server is and says of itself: identity, errors, the end of its binlog, names and their
case.
"""
