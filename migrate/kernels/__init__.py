"""Compiled loops (numba) over numpy arrays, for what is large; each stands beside a reference that says what is right.

A kernel never decides: where it doubts, it says that this is not the plain case, and the reference does the work.  Each
is property-tested equal to its reference, refusals included.  `choice.ready` says whether a kernel is to be used.
"""
