"""The version rule: group and lock state machines, without I/O."""
