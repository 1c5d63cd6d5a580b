"""The optional accelerators (extra `fast`): large files read in columns, by loops that numba compiles.

A loop never decides: where it doubts, it says that this is not the plain case, and plain Python does the work.  Each is
property-tested equal to its reference, refusals included.  `migrate.observe.offline` alone asks for them.
"""
