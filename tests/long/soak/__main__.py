"""The soak: `python -m tests.long.soak --minutes 120 --seed N --dir DIR --report FILE`.

Rounds follow each other until the time is over; the one in progress then goes to its end.  The report is written anew
after each leg.  SIGTERM and SIGINT break off: the report says so, and nothing of the round lives on; the same holds
where this process is killed.  `--round-seed` repeats one round alone, by the seed that its row names.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

from tests.long.soak.account import GOOD, RoundSeen, Soak
from tests.long.soak.draw import draw, round_seed
from tests.long.soak.rounds import RoundRun


class Stopped(BaseException):
    """Somebody asks us to end."""


def say(text: str) -> None:
    """A line of progress, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def commit() -> str:
    """What this tree stands on."""
    root = Path(__file__).parent
    ended = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return ended.stdout.strip()


def one_round(soak: Soak, number: int, seed: int, directory: Path, report: Path) -> None:
    """A round in a folder of its own; a good one leaves nothing, a bad one everything."""
    folder = directory / f"round-{number:02d}-{seed}"
    seen = RoundSeen(number, seed, draw(seed).goal, str(folder), time.time())
    soak.rounds.append(seen)
    began = time.monotonic()

    def tell() -> None:
        soak.seconds = time.time() - soak.began
        seen.seconds = time.monotonic() - began
        soak.write(report)

    tell()
    run = RoundRun(draw(seed), seen, folder, say, tell)
    try:
        run.run()
    except BaseException as error:
        seen.against.append(f"broken off: {type(error).__name__}: {error}")
        run.end()
        raise
    say(f"round {number}, seed {seed}: {seen.verdict} in {seen.seconds:.0f} s; load {seen.load}")
    for text in seen.against:
        say(f"  AGAINST {text}")
    if seen.verdict == GOOD:
        shutil.rmtree(folder, ignore_errors=True)


def soaked(soak: Soak, arguments: argparse.Namespace) -> None:
    """Rounds until the time is over."""
    directory, report = arguments.dir.resolve(), arguments.report.resolve()
    if arguments.round_seed is not None:
        one_round(soak, 0, arguments.round_seed, directory, report)
        return
    number = 0
    while time.time() - soak.began < arguments.minutes * 60:
        one_round(soak, number, round_seed(soak.seed, number), directory, report)
        number += 1


def main() -> int:
    """0 where every round is good."""
    parser = argparse.ArgumentParser(prog="python -m tests.long.soak", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round-seed", type=int)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--report", type=Path, required=True)
    arguments = parser.parse_args()
    arguments.dir.mkdir(parents=True, exist_ok=True)
    soak = Soak(arguments.seed, arguments.minutes, commit(), time.time(), _own_pid())
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _stop)
    guard = subprocess.Popen(
        [sys.executable, "-m", "tests.long.soak.guard", str(arguments.dir.resolve())],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        soaked(soak, arguments)
        soak.state = "ended"
    except Stopped:
        soak.state = "stopped"
    except BaseException:
        soak.state = "failed"
        raise
    finally:
        soak.seconds = time.time() - soak.began
        soak.write(arguments.report.resolve())
        assert guard.stdin is not None
        guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(300)
    say(f"{soak.state}: {soak.totals()}")
    return 0 if soak.state == "ended" and all(one.verdict == GOOD for one in soak.rounds) else 1


def _own_pid() -> int:
    return int(Path("/proc/self").resolve().name)


def _stop(_number: int, _frame: object) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # once is enough: what follows must come to its end
    raise Stopped


if __name__ == "__main__":
    sys.exit(main())
