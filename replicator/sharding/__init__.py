"""The sharding rules: state machines of groups and locks, and the join of structures. No I/O."""
