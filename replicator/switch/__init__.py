"""The certificate of the switch from shards to their target, and the conditions of the switch.

All modules are pure.
"""
