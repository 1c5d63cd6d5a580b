"""What is in progress is named, with count and total."""

from __future__ import annotations

from migrate.model.work import Work


def test_parts_are_named_while_they_are_in_progress_with_count_and_total() -> None:
    """In the order in which they began; what has ended is gone, and is not counted any more."""
    work = Work()
    with work.part("reading ZooKeeper"), work.part("looking at log directories", 1200):
        work.count("looking at log directories")
        assert str(work) == "reading ZooKeeper, looking at log directories (1 of 1,200)"
    work.count("looking at log directories")
    assert str(work) == ""


def test_a_part_says_how_long_it_lasts_from_its_own_start() -> None:
    """From a second on; a later part is not told the time of an earlier one."""
    now = [0.0]
    work = Work(lambda: now[0])
    with work.part("computing the ledger of 361 replicas"):
        now[0] = 5.0
        with work.part("looking at log directories", 9):
            now[0] = 12.4
            work.count("looking at log directories")
            said = "computing the ledger of 361 replicas (12 s), looking at log directories (1 of 9, 7 s)"
            assert str(work) == said
