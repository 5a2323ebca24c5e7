"""What can go wrong with a private server."""

from __future__ import annotations


class SandboxError(Exception):
    """A private server, or the process that looks after it, is not in the state that is needed."""


class ServerUnavailableError(SandboxError):
    """This machine lacks the server's program; the message says what to install."""


class ServerStartError(SandboxError):
    """The server (or the making of its data folder) failed; the message ends with its log."""


class ServerDiedError(SandboxError):
    """A server ended that nobody told to; the message ends with its log."""
