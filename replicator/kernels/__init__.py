"""Compiled loops over bytes: compiling and caching them, and loops that several rooms use."""
