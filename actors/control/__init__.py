"""The control socket, over which the command line and a running task communicate."""
