"""The actor, its mailbox, and the messages between actors."""
