"""The hashes of `migrate.model.fingerprints`, compiled: parts of the kernels that decode.

What is a set there must come here sorted and each member once.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from migrate.accelerated.compiled import helper
from migrate.model import fingerprints

Array = np.ndarray[Any, np.dtype[Any]]

START_A: Final = np.uint64(fingerprints.START[0])
START_B: Final = np.uint64(fingerprints.START[1])
STEP_A: Final = np.uint64(fingerprints.STEP[0])
STEP_B: Final = np.uint64(fingerprints.STEP[1])
LAST_A: Final = np.uint64(fingerprints.LAST[0])
LAST_B: Final = np.uint64(fingerprints.LAST[1])
TURN: Final = np.uint64(fingerprints.TURN)
TURN_BACK: Final = np.uint64(64 - fingerprints.TURN)
U29, U31, U32, U33, U35 = (np.uint64(bits) for bits in (29, 31, 32, 33, 35))
ASSIGNMENT: Final = np.uint64(fingerprints.ASSIGNMENT)
STATE: Final = np.uint64(fingerprints.STATE)
IDENTITY: Final = np.uint64(fingerprints.IDENTITY)


@helper
def start(tag: Any) -> Any:
    """The two lanes at the beginning."""
    return START_A ^ tag, START_B + tag


@helper
def mix(a: Any, b: Any, value: Any) -> Any:
    """The lanes with one more number."""
    number = np.uint64(value)
    a = (a ^ number) * STEP_A
    a ^= a >> U32
    b = (b + number) * STEP_B
    b = (b << TURN) | (b >> TURN_BACK)
    b ^= b >> U35
    return a, b


@helper
def mix_all(a: Any, b: Any, values: Any, first: Any, count: Any) -> Any:
    """The lanes with a list: its length, then its members."""
    a, b = mix(a, b, count)
    for at in range(first, first + count):
        a, b = mix(a, b, values[at])
    return a, b


@helper
def finish(a: Any, b: Any) -> Any:
    a ^= a >> U33
    a *= LAST_A
    b ^= b >> U31
    b *= LAST_B
    return a ^ (a >> U29), b ^ (b >> U32)
