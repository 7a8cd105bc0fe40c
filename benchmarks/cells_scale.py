"""How long do cells take? A million simulated ones, thousands over HTTP, and what policies cost.

Prints JSON. ``--share 20`` takes a twentieth of the cells; ``--http N`` sets how many speak HTTP.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "tools"))

from memory_cell import MemoryCellStore

from halfmask.protocol import simulate as census
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import SUMS, Merge, Policy, Terms
from halfmask.protocol.contribution import contribution
from halfmask.protocol.keys import new_issuer
from halfmask.protocol.parties.asker import Asker
from halfmask.protocol.parties.cell import Cell
from halfmask.protocol.simulate import simulate
from halfmask.protocol.store.vault import FileSpill
from halfmask.protocol.transport import Sender, drive

TURNS = 9  # of what is compared, of which the median counts


def million(cells: int, groups: int) -> dict[str, Any]:
    """The whole query by simulated cells."""
    people = census.population(cells, groups)
    terms = Terms(partition=4096, frame=4096 + SUMS, room=int(groups * 2.2), ram=1 << 33)
    started = time.perf_counter()
    done = simulate(census.commons(), people, census.QUERY, terms).to_dict()
    done["total_s"] = round(time.perf_counter() - started, 1)
    done["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return done


def merged(cells: int, groups: int, merge: Merge, frame: int) -> dict[str, Any]:
    """The same cells, merged by swapping or over the network."""
    people = census.population(cells, groups)
    terms = Terms(merge, 4096, frame, int(groups * 2.2), ram=1 << 33)
    started = time.process_time()
    done = simulate(census.commons(), people, census.QUERY, terms).to_dict()
    done["processor_s"] = round(time.process_time() - started, 1)
    done["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return done


def credentials(cells: int, groups: int) -> dict[str, Any]:
    """What credentials add: the same cells without and with them, partitions of 256."""
    people = census.population(cells, groups)
    terms = Terms(partition=256, frame=256 + SUMS, room=int(groups * 2.5), ram=1 << 33)
    done = {
        name: simulate(census.commons(), people, census.QUERY, terms, credentials=given)
        for name, given in (("without", False), ("with", True))
    }
    report: dict[str, Any] = {
        name: {"processor": _rounded(run.processor), "busiest": _rounded(run.busiest)}
        for name, run in done.items()
    }
    people_in = {name: run.answer.people for name, run in done.items()}
    return report | {"cells": cells, "people": people_in}


def personal(cells: int, groups: int) -> dict[str, Any]:
    """Each phase with personal policies against the protocol without: medians, run in turns.

    The same people in the same groups, because everybody is content with the first level. Without:
    the same question to people who state nothing; one guarantee for all with messages as long as
    those of the question; and one guarantee for all that is weaker, with shorter messages.
    """
    people = census.population(cells, groups).drop_columns(["k", "l"])
    demanding = people.append_column("k", pa.array([5] * cells)).append_column(
        "l", pa.array([3] * cells)
    )
    strict = census.PLAIN.replace("k=5 l=3", "k=17 l=8")
    cases = {
        "personal": (census.QUERY, demanding),
        "no policies": (census.QUERY, people),
        "one guarantee, same lengths": (strict, people),
        "one guarantee": (census.PLAIN, people),
    }
    terms = Terms(partition=4096, frame=4096 + SUMS, room=int(groups * 1.2), ram=1 << 33)
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in cases}
    rows: dict[str, int] = {}
    for turn in range(TURNS + 1):
        for name, (text, given) in cases.items():
            done = simulate(census.commons(), given, text, terms)
            rows[name] = len(done.answer)
            if turn:  # the first warms up
                runs[name].append({**done.processor, "all": sum(done.processor.values())})
    middle = {
        n: {p: statistics.median(r[p] for r in found) for p in found[0]}
        for n, found in runs.items()
    }
    report: dict[str, Any] = {"rows": rows, "personal_s": _rounded(middle.pop("personal"))}
    with_policies = report["personal_s"]
    for name, figures in middle.items():
        report[name] = {
            "seconds": _rounded(figures),
            "overhead": _rounded({p: with_policies[p] / s - 1 for p, s in figures.items()}),
        }
    return report


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(figure, 3) for name, figure in figures.items()}


def one_cell() -> dict[str, float]:
    """A single contribution with and without a policy to match, in milliseconds."""
    people = census.population(64, 64)
    commons = census.commons()
    rows = [
        people.slice(i, 1)
        .select(commons.tables["census"].arrow.names)
        .cast(commons.tables["census"].arrow)
        for i in range(64)
    ]
    times: dict[str, list[float]] = {}
    for _ in range(TURNS):
        for name, text, policy in (
            ("plain", census.PLAIN, Policy(1)),
            ("personal", census.QUERY, Policy(15, 7)),
        ):
            made = plan_for_cells(commons, text)
            started = time.process_time()
            for row in rows:
                contribution(made, {"census": row}, policy)
            times.setdefault(name, []).append((time.process_time() - started) / 64)
    plain, personal = (statistics.median(times[n]) for n in ("plain", "personal"))
    return {
        "plain_ms": round(plain * 1e3, 4),
        "personal_ms": round(personal * 1e3, 4),
        "overhead": round(personal / plain - 1, 3),
    }


def over_http(count: int) -> dict[str, Any]:
    """Real cells, each with an own connection, and a relay in a process of its own."""
    issuer = new_issuer()
    commons = census.commons()
    people = census.population(count, max(1, count // 10))
    arrow = commons.tables["census"].arrow
    cells = [
        Cell(
            issuer.enroll(str(i), int(time.time()) + 10**6),
            commons,
            MemoryCellStore(
                {"census": people.slice(i, 1).select(arrow.names).cast(arrow)},
                Policy(int(people["k"][i].as_py()), int(people["l"][i].as_py())),
            ),
            FileSpill,
        )
        for i in range(count)
    ]
    asker = Asker(issuer.asker("bench", int(time.time()) + 10**6), commons, Terms())
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "relay.sqlite")
        command = [sys.executable, "-m", "halfmask", "relay", "--port", "0", "--store", store]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as relay:  # noqa: S603 - ourselves
            try:
                address = str(relay.stderr and relay.stderr.readline()).split()[2].rstrip(";")
                return _asked(asker, cells, address)
            finally:
                relay.terminate()


def _asked(asker: Asker, cells: list[Cell], address: str) -> dict[str, Any]:
    started = time.perf_counter()
    send = Sender(address)
    question = asker.question(census.QUERY, time.time(), cells=len(cells), seconds=120)
    drive(asker.ask(question), send)

    def take_part(cell: Cell) -> None:
        own = Sender(address)
        drive(cell.take_part(time.time()), own)
        own.close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take_part, cells))
    collected = time.perf_counter() - started
    while (found := drive(asker.collect(question), send)) is None:
        for cell in cells:
            if drive(cell.work(time.time()), send) is None:
                break
    send.close()
    return {
        "cells": len(cells),
        "collection_s": round(collected, 2),
        "total_s": round(time.perf_counter() - started, 2),
        "contributions": found[0].contributions,
        "rows": found[0].rows.num_rows,
    }


def main() -> None:
    """Measure everything."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=int, default=1, help="take a so much smaller crowd")
    parser.add_argument("--only", help="One part.")
    parser.add_argument("--http", type=int, default=2000)
    given = parser.parse_args()
    share = given.share
    parts = {
        "million": lambda: million(1_000_000 // share, 57_000 // share),
        "swap": lambda: merged(1_000_000 // share, 57_000 // share, "swap", 4096 + SUMS),
        "network": lambda: merged(1_000_000 // share, 57_000 // share, "network", 8192 + SUMS),
        "credentials": lambda: credentials(200_000 // share, 20_000 // share),
        "personal": lambda: personal(200_000 // share, 20_000 // share),
        "one_cell": one_cell,
        "http": lambda: over_http(max(20, given.http // share)),
    }
    report = {name: run() for name, run in parts.items() if given.only in (None, name)}
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
