"""How fast each mask is on a table of ten columns, and what masks lose on Adult.

Run: python benchmarks/mask_speed.py [--rows 1000000] [--only rank-swap ...] [--no-adult]
     python benchmarks/mask_speed.py --rows 250000 1000000 [--only rank-swap ...]

Prints JSON: per mask the seconds of the whole verb (masking, figures, checks at the door) and those
of the processor, after a run on few rows, so that nothing is compiled in them; and the most memory
that the process held meanwhile beyond what it held before there was a table (on Linux), for a row
of the table too.

With several numbers of rows it prints memory alone: the most that each mask held at each size, in a
process of its own, beyond what this held before there was a table; and how many times as much the
most rows took as the fewest. Where memory is linear, it is not above how many times the rows are.

The goals are 5 s each on a quiet machine, 60 s for groups of several columns and 10 s for record
swapping. Machines differ, and other work slows them down, so each mask is also counted in units: a
unit is the time of the processor for the sum of ten million squares in plain Python, measured just
before and after the mask. A quiet machine takes 0.6 s for it, so that 5 s are 8.3 units.

On Adult, ages in decades: cells blanked by local suppression at k = 5 on 8 and 5 columns by both
readings (sdcMicro, recorded: 14,735 and 2,192 by the second); and the share of the variance that
microaggregation at k = 5 of the six columns of numbers loses (sdcMicro's MDAV, recorded: 1.56%).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import _adult
import halfmask as hm

M = hm.masks
STEPS = (
    M.TopCode("income", share=0.01),
    M.BottomCode("age", share=0.01),
    M.Round("income", base=100, how="random"),
    M.Round(["income", "hours"], base=10),
    M.Noise("income"),
    M.Noise(["income", "age", "hours"], kind="correlated"),
    M.Noise(["income", "hours"], kind="multiplicative"),
    M.Noise(["income", "age", "hours"], kind="outliers"),
    M.RankSwap("income", within=0.05),
    M.RecordSwap(["region", "town"], similar=["sex"], risk=["age", "sex"], household="home"),
    M.Shuffle("income"),
    M.Pram("job", keep=0.8),
    M.Pram("job", spread="optimal", certainty=0.5),
    M.Randomize("illness", epsilon=1),
    M.Microaggregate("income", k=5),
    M.Microaggregate(["income", "age", "hours", "day"], k=5),
    M.Microaggregate(["income", "age", "hours"], k=5, method="mdav", scale="ranks"),
    M.Microaggregate(["income", "age"], k=5, method="v-mdav", aggregate="median"),
    M.LocalSuppression(k=5),
    M.LocalSuppression(k=5, reading="any"),
    M.Suppress("job", rare=5),
    M.Suppress(["town", "job"]),
    M.Sample(0.1, by="region"),
    M.Massc(),
    M.PartlySynthetic("income"),
    M.PartlySynthetic(["job", "income"], draws=2),
    M.Hybrid("income", k=5),
    M.Hybrid(["income", "hours"], k=5),
    M.Anatomy("illness", l=5),
    M.Bucketize("illness", l=5),
    M.Guard("illness", guard="guarded"),
    M.DateShift("day"),
    M.Cloak("latitude", "longitude", k=5),
    M.Cloak("latitude", "longitude", k=5, method="grid"),
    M.Pseudonym("id", key=b"at least 16 bytes"),
)
EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass",
         "occupation")  # fmt: skip
QUIET = 0.6  # seconds of a unit on a quiet machine
SQUARES = 10**7  # of a unit
NUMBERS = {"age": 0, "fnlwgt": 2, "education-num": 4, "capital-gain": 10, "capital-loss": 11,
           "hours-per-week": 12}  # fmt: skip


def table(rows: int, seed: int = 0) -> hm.Table:
    """People with ten columns that leave; five of them quasi-identifiers."""
    draw = np.random.default_rng(seed)
    town = draw.integers(0, 400, rows)
    illness = draw.integers(0, 50, rows)
    data = {
        "id": np.arange(rows),
        "home": draw.integers(0, max(1, rows // 2), rows),
        "age": draw.integers(18, 90, rows),
        "sex": np.array(["f", "m"])[draw.integers(0, 2, rows)],
        "region": town // 20,
        "town": town,
        "job": np.array([f"job {i}" for i in range(30)])[(draw.beta(1, 3, rows) * 30).astype(int)],
        "income": np.round(draw.lognormal(8, 1, rows), 2),
        "hours": draw.integers(1, 60, rows),
        "illness": illness,
        "day": pa.array(draw.integers(0, 20_000, rows).astype(np.int32)).cast(pa.date32()),
        "latitude": draw.normal(48, 1, rows),
        "longitude": draw.normal(4, 1, rows),
        "guarded": pa.array(draw.permutation(illness), mask=draw.random(rows) < 0.7),
    }
    quasi = ("age", "sex", "region", "town", "job")
    roles: dict[str, Any] = {name: "quasi" if name in quasi else "other" for name in data}
    answers = {"role": "sensitive", "domain": list(range(50))}
    roles |= {"id": "identifier", "home": "identifier", "guarded": "identifier"}
    roles["illness"] = answers
    return hm.read(pa.table(data), schema={"columns": roles})


def unit() -> float:
    """Seconds of the processor for a sum of ten million squares: how fast this machine is now."""
    began = time.process_time()
    sum(i * i for i in range(SQUARES))
    return time.process_time() - began


def goal(step: hm.masks.MaskStep) -> float:
    """The units that a mask may take: of a quiet machine 5 s, or what is said above."""
    several = len(getattr(step, "columns", None) or ()) > 1 and not isinstance(
        getattr(step, "columns", None), str
    )
    seconds = 60 if step.name in ("microaggregate", "hybrid") and several else 5
    return (10 if step.name == "record-swap" else seconds) / QUIET


def held(kind: str) -> int:
    """Bytes of memory that the process holds (VmRSS), or held at most (VmHWM); 0 elsewhere."""
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="utf-8").splitlines() if status.exists() else []
    return next((int(one.split()[1]) * 1024 for one in lines if one.startswith(kind)), 0)


def forget_peak() -> None:
    """Let the most memory that was held be counted anew, where the system can."""
    if os.access("/proc/self/clear_refs", os.W_OK):
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")


def speed(rows: int, only: list[str]) -> list[dict[str, Any]]:
    """The time and the memory of each mask."""
    out = []
    small = table(min(rows, 3_000))
    chosen = [step for step in STEPS if not only or step.name in only]
    for step in chosen:
        hm.mask(small, step, seed=1)  # compiles
    before = held("VmRSS")
    people = table(rows)
    pace = unit()
    for step in chosen:
        forget_peak()
        began, used = time.perf_counter(), time.process_time()
        release = hm.mask(people, step, seed=1)
        seconds, processor = time.perf_counter() - began, time.process_time() - used
        pace, earlier = unit(), pace
        units = processor / ((pace + earlier) / 2)
        found = {
            "mask": step.name,
            "stated": step.sentence,
            "seconds": round(seconds, 2),
            "processor": round(processor, 2),
            "unit": round((pace + earlier) / 2, 2),
            "units": round(units, 1),
            "of_the_goal": round(units / goal(step), 2),
            "megabytes": round((held("VmHWM") - before) / 1e6),
            "bytes_a_row": round((held("VmHWM") - before) / rows),
            "facts": {k: v for k, v in release.steps[0]["facts"].items() if k != "given"},
        }
        print(json.dumps(found))
        out.append(found)
    return out


def memory(sizes: list[int], only: list[str]) -> list[dict[str, Any]]:
    """The most memory of each mask at each size, each in a process of its own, and their ratio."""
    out = []
    for place, step in enumerate(STEPS):
        if only and step.name not in only:
            continue
        megabytes = {}
        for rows in sizes:
            words = [sys.executable, __file__, "--peak", str(place), "--rows", str(rows)]
            done = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603
            megabytes[rows] = round(int(done.stdout.split()[-1]) / 1e6)
        few, many = min(sizes), max(sizes)
        out.append(
            {
                "mask": step.name,
                "stated": step.sentence,
                "megabytes": megabytes,
                "bytes_a_row": {
                    rows: round(1e6 * held_ / rows) for rows, held_ in megabytes.items()
                },
                "times": round(megabytes[many] / megabytes[few], 2),
                "rows_times": round(many / few, 2),
            }
        )
        print(json.dumps(out[-1]), flush=True)
    return out


def peak(step: hm.masks.MaskStep, rows: int) -> int:
    """The most memory that one mask holds, beyond what is held before there is a table."""
    hm.mask(table(min(rows, 3_000)), step, seed=1)  # loads what is compiled
    before = held("VmRSS")
    people = table(rows)
    forget_peak()
    hm.mask(people, step, seed=1)
    return held("VmHWM") - before


def adult() -> dict[str, Any]:
    """What masks lose on Adult."""
    rows = _adult.complete_rows().select(list(EIGHT))
    ages = pa.array(rows["age"].to_numpy() // 10)
    rows = rows.set_column(rows.column_names.index("age"), "age", ages)
    people = hm.read(rows, schema=dict.fromkeys(EIGHT, "quasi"))
    out: dict[str, Any] = {}
    for reading in ("value", "any"):
        for names in (EIGHT, EIGHT[:5]):
            began, used = time.perf_counter(), time.process_time()
            step = M.LocalSuppression(5, columns=names, reading=reading)
            facts = hm.mask(people, step).steps[0]["facts"]
            out[f"suppressed, {len(names)} columns, {reading}"] = {
                "cells": facts["suppressed"],
                "fewest_possible": facts["fewest_possible"],
                "seconds": round(time.perf_counter() - began, 2),
                "processor": round(time.process_time() - used, 2),
            }
    for method in ("mdav", "v-mdav", "best"):
        began = time.perf_counter()
        release = hm.mask(numbers(), M.Microaggregate(tuple(NUMBERS), k=5, method=method))
        out[f"variance lost, {method}"] = {
            "share": release.steps[0]["facts"]["variance_lost"],
            "seconds": round(time.perf_counter() - began, 2),
        }
    return out


def numbers() -> hm.Table:
    """The six columns of numbers of Adult's complete rows."""
    lines = (_adult.place() / "adult.data").read_text(encoding="utf-8").splitlines()
    cells = [line.split(", ") for line in lines if line and "?" not in line][: _adult.MOST]
    data = {name: [int(row[i]) for row in cells] for name, i in NUMBERS.items()}
    return hm.read(data, schema=dict.fromkeys(NUMBERS, "quasi"))


def main() -> None:
    """Run the masks and print what they took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--peak", type=int, help="the most bytes of the mask of this number")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--no-adult", action="store_true")
    given = parser.parse_args()
    if given.peak is not None:
        print(peak(STEPS[given.peak], given.rows[0]))
        return
    if len(given.rows) > 1:
        masks = memory(given.rows, given.only)
        print(json.dumps({"rows": given.rows, "most_times": max(one["times"] for one in masks)}))
        return
    (rows,) = given.rows
    found: dict[str, Any] = {"rows": rows, "masks": speed(rows, given.only)}
    if not given.only and not given.no_adult and _adult.found() is not None:
        found["adult"] = adult()
    found["gigabytes"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
