"""The control socket: how the command line and a running task talk to each other."""
