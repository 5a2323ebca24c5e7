"""Compiled loops over bytes: how they are compiled and cached, and the loops of several rooms."""
