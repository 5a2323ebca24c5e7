"""Compiled loops over bytes: how they are compiled and kept, and those that several rooms use."""
