"""Frozen values and pure rules.  No I/O; imports the standard library and migrate.errors only."""
