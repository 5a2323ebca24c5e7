"""What stops a task or a part of it: faults, transient errors, what a server's refusal means."""
