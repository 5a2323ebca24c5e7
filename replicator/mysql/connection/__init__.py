"""Connections to servers, asyncio and blocking: TLS, login, timeouts, limits on answers."""
