"""How many questions show nothing of a person whose demand cannot be met, and how many do.

Random tables with planted people and random questions over the whole language; each is asked in two
worlds in which only the planted people's values differ, and all that an asker sees is compared.
Then the same for one changed value of anybody, and for questions with noise. Most questions are
short and go the whole way in one world; in the others the engine is asked what it was asked there.
Where it gives anything that it gave on no whole way, and one time in a hundred, they go the whole
way there too (``alike`` counts the comparisons in which it gave what was known; each of them ran
the statements). A question that is refused before it reads a row is one comparison, the whole way.
The other suites always take the whole way.

    python benchmarks/noninterference.py --count 1000000 --state counts.json
    python benchmarks/noninterference.py --count 1000000 --seconds 900

A third of the time of a small statement is the allocator's: ``GLIBC_TUNABLES=glibc.malloc.
tcache_count=2000:glibc.malloc.trim_threshold=1073741824:glibc.malloc.top_pad=67108864:glibc.malloc.
mmap_threshold=1073741824`` in front of the command, as one word, spares most of it.

A comparison is one question whose answers in two worlds are held against each other; each question
is asked in the world as it is and in ``CHANGES`` or ``MANY`` others. ``--seconds`` ends the run
after so much processor time, as an interrupt does, and the counts say how far it came. ``--state``
keeps them in a file once a minute, with the first seed, the revision, and a digest of the code and
of the questions: a run that was ended goes on from there, and never with other code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from functools import partial
from itertools import count as numbers_from
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))

from interference import (
    Count,
    compare_noisy,
    compare_one,
    compare_planned,
    compare_sequence,
    compare_world,
)

from halfmask.engines.duckdb.engine import _database

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
RUN = ("src/halfmask/query", "src/halfmask/engines", "src/halfmask/release")
ASKED = ("interference.py", "planted.py", "questions.py")
PER_WORLD, CHANGES, MANY, THREADS = 10, 8, 96, 4
COUNTED = (
    "asked",
    "answers",
    "alike",
    "answered",
    "with_rows",
    "with_figures",
    "refused",
    "failed",
)


def suites() -> dict[str, tuple[float, Callable[..., None]]]:
    """What is asked: its share of all comparisons, and how; one value of anybody has one world."""
    return {
        "planted, one plan": (0.987, partial(compare_planned, changes=MANY)),
        "planted, duckdb": (0.005, partial(compare_world, changes=CHANGES)),
        "planted, reference": (0.002, partial(compare_world, engine="reference", changes=CHANGES)),
        "planted, one ledger": (0.001, partial(compare_sequence, changes=CHANGES)),
        "one value of anybody": (0.001, compare_one),
        "noise": (0.004, partial(compare_noisy, changes=CHANGES)),
    }


def one_world(name: str, seed: int) -> dict[str, Any]:
    """Ask about one world: what became of the questions, what was found, what it took."""
    warnings.simplefilter("ignore")
    # Several threads read a batch side by side: no answer may depend on who was first. They take
    # more processor time, so that one world of eight has them.
    _database().execute(f"SET threads = {THREADS if seed % 8 == 0 else 1}")
    started, count = time.process_time(), Count()
    suites()[name][1](seed, PER_WORLD, count=count)
    numbers = {one: getattr(count, one) for one in COUNTED}
    seconds = time.process_time() - started
    return numbers | {"found": list(map(str, count.found)), "seconds": seconds}


def digest() -> str:
    """What stands for the code that answers, and for the questions, of one run."""
    files = [file for folder in RUN for file in sorted((ROOT / folder).rglob("*.py"))]
    files += [ROOT / "tests" / "tools" / name for name in ASKED]
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes())
    return whole.hexdigest()[:16]


def revision() -> str:
    """The commit that the code was checked out at, where it is known."""
    asked = ["git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    return found.stdout.strip() or "unknown"


class Tally:
    """What was counted so far, by suite, and of which code."""

    def __init__(self, wanted: int, first: int) -> None:
        self.stamp = {"first_seed": first, "digest": digest(), "revision": revision()}
        self.wanted = {name: max(1, round(wanted * share)) for name, (share, _) in suites().items()}
        self.suites: dict[str, dict[str, Any]] = {
            name: dict.fromkeys(COUNTED, 0) | {"found": [], "seconds": 0.0} for name in suites()
        }

    def add(self, name: str, found: dict[str, Any]) -> None:
        """Count what one world gave."""
        for text in found["found"]:
            print(text, file=sys.stderr, flush=True)
        self.suites[name] = {n: v + found[n] for n, v in self.suites[name].items()}

    def keep(self, place: Path, seed: int) -> None:
        """Write down what was counted, and which world comes next."""
        aside = place.with_suffix(".new")
        known = {**self.stamp, "seed": seed, "suites": self.suites}
        aside.write_text(json.dumps(known, indent=1))
        aside.replace(place)

    def go_on(self, place: Path) -> int:
        """Take up what was counted; the world that comes next."""
        known = json.loads(place.read_text())
        if known.get("digest") != self.stamp["digest"]:
            told = f"{place} counts for other code or other questions"
            sys.exit(f"{told} ({known.get('revision', 'unknown')}): give another --state.")
        self.stamp["first_seed"] = known["first_seed"]
        self.suites = known["suites"]
        return int(known["seed"])

    def next(self) -> str | None:
        """The suite that is furthest from what is wanted of it; None where all are there."""
        shares = {name: s["asked"] / self.wanted[name] for name, s in self.suites.items()}
        name = min(shares, key=lambda n: shares[n])
        return name if shares[name] < 1 else None

    @property
    def seconds(self) -> float:
        """The processor time that was taken."""
        return float(sum(s["seconds"] for s in self.suites.values()))

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        made = {name: _shown(suite) for name, suite in self.suites.items()}
        comparisons = sum(s["comparisons"] for s in made.values())
        return {
            **self.stamp,
            "comparisons": comparisons,
            "alike": sum(s["alike"] for s in made.values()),
            "answers": sum(s["answers"] for s in made.values()),
            "interferences": sum(s["interferences"] for s in made.values()),
            "seconds": round(self.seconds, 1),
            "milliseconds_a_comparison": round(self.seconds / max(comparisons, 1) * 1e3, 1),
            "core_hours_of_a_million": round(self.seconds / max(comparisons, 1) * 1e6 / 3600, 1),
            "suites": made,
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        }


def _shown(suite: dict[str, Any]) -> dict[str, Any]:
    numbers = {n: v for n, v in suite.items() if n not in ("asked", "found", "seconds")}
    return {
        "comparisons": suite["asked"],
        "interferences": len(suite["found"]),
        **numbers,
        "examples": suite["found"][:3],
        "seconds": round(suite["seconds"], 1),
        "milliseconds_a_comparison": round(suite["seconds"] / max(suite["asked"], 1) * 1e3, 1),
    }


def run(count: int, seconds: float, workers: int, seed: int, state: Path | None) -> Tally:
    """Ask about worlds on all cores until there are enough comparisons, or the time is over."""
    tally, running, told = Tally(count, seed), {}, time.monotonic()
    if state is not None and state.exists():
        seed = tally.go_on(state)
    seeds = numbers_from(seed)
    # One worker needs no process; DuckDB's threads do not outlast a fork.
    pool = ProcessPoolExecutor(workers) if workers > 1 else ThreadPoolExecutor(1)
    try:
        while True:
            while len(running) < workers and tally.seconds < seconds and (name := tally.next()):
                seed = next(seeds)
                running[pool.submit(one_world, name, seed)] = name
            if not running:
                break
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for one in done:
                tally.add(running.pop(one), one.result())
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print(json.dumps(_short(tally.to_dict())), file=sys.stderr, flush=True)
                if state is not None:
                    tally.keep(state, seed + 1)
    except KeyboardInterrupt:
        print("Interrupted: these are the counts so far.", file=sys.stderr)
    pool.shutdown(wait=False, cancel_futures=True)
    if state is not None:
        tally.keep(state, seed + 1)
    return tally


def _short(found: dict[str, Any]) -> dict[str, Any]:
    """The counts of all suites together, as a line that is printed on the way."""
    rows = sum(suite["with_rows"] for suite in found["suites"].values())
    names = ("digest", "comparisons", "alike", "interferences", "seconds")
    return {n: found[n] for n in names} | {"with_rows": rows}


def main() -> None:
    """Print the counts as JSON; the exit code is 1 where anything interferes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=200, help="comparisons")
    parser.add_argument("--seconds", type=float, default=inf, help="processor time, at most")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--state", type=Path, help="a file of counts to go on from")
    given = parser.parse_args()
    tally = run(given.count, given.seconds, given.workers, given.seed, given.state)
    found = tally.to_dict()
    print(json.dumps(found, indent=1, ensure_ascii=False))
    sys.exit(1 if found["interferences"] else 0)


if __name__ == "__main__":
    main()
