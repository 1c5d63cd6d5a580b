"""How fast the explorer is, and how its rate changes with the model's size: transitions a second, printed as Markdown.

    python -m tests.bench.explorer [--most TRANSITIONS]

Each row visits a model breadth first, whole or up to the bound.  Nothing here asserts: machines differ.
"""

from __future__ import annotations

import argparse
import resource
import sys
from typing import Final

from tests.testing.explorer.search import Visit, visit
from tests.testing.explorer.system import Bounds, System

ROWS: Final = (
    ("1 engine, no fault, 2 brokers", Bounds(engines=1, faults=0)),
    ("1 engine, 1 fault, 2 brokers", Bounds(engines=1, faults=1)),
    ("1 engine, 1 fault, 3 brokers", Bounds(brokers=3, engines=1, faults=1)),
    ("2 engines, 1 fault, 2 brokers", Bounds(engines=2, faults=1)),
    ("2 engines, 2 faults, 2 brokers", Bounds(engines=2, faults=2)),
)


def row(name: str, found: Visit) -> str:
    """One line of the table; memory is the process's peak so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    whole = "whole" if found.whole else "bounded"
    figures = (
        f"{found.states:,}",
        f"{found.transitions:,}",
        f"{found.depth}",
        whole,
        f"{found.seconds:.1f}",
        f"{found.rate:,.0f}",
        f"{peak:.0f}",
    )
    return f"| {name} | " + " | ".join(figures) + " |\n"


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description="Measure the explorer.")
    parser.add_argument("--most", type=int, default=2_500_000, help="transitions after which a visit ends")
    options = parser.parse_args()
    sys.stdout.write("| model | states | transitions | depth | visit | CPU seconds | transitions/s | peak MB |\n")
    sys.stdout.write("| --- | ---: | ---: | ---: | --- | ---: | ---: | ---: |\n")
    for name, bounds in ROWS:
        sys.stdout.write(row(name, visit(System(bounds), most=options.most)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
