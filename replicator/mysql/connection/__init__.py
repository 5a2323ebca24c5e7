"""Connections to servers of both kinds, asyncio and blocking: TLS, login, timeouts, limits on
answers.
"""
