"""A game: plant differences, intersections and departures, release, attack, count.

``plain``: releases of a recoding that stays the same. One person comes or leaves (to be found), or
the same people are released again (nothing to be found). ``met``: two divisions of the same people;
whom both leave one value is counted by reading every label, one by one. ``deleted``: an m-invariant
series. People come and leave; then one is deleted. Attackers who have all releases and know
everybody's quasi-identifiers and who was in when keep, for each person who left, the values that
all classes fitting that person hold, and look at what the last release lost. Nobody may keep fewer
than m values, and the loss may not point at fewer than m.

The end is an error where anything planted is missed or anything is found that was not planted.

Run: python benchmarks/series_game.py [--plain N] [--met N] [--histories N]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import halfmask as hm

COLUMNS = {
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
    "zip": {"role": "quasi", "kind": "nominal", "hierarchy": {"mask": 3}},
    "ill": {"role": "sensitive"},
}
PLAIN = {"columns": COLUMNS}
SERIES = {"table": {"person": "id"}, "columns": COLUMNS}
MODELS = (hm.KAnonymity(3), hm.LDiversity(3, "ill"))
M = 3

Person = tuple[int, str, str]


def people(rng: np.random.Generator, count: int, values: int = 6) -> list[Person]:
    """Some people, invented."""
    return [
        (int(rng.integers(20, 60)), f"{rng.integers(100, 140)}", f"ill-{rng.integers(values)}")
        for _ in range(count)
    ]


def table(rows: list[Person]) -> hm.Table:
    """Their table."""
    age, code, ill = zip(*rows, strict=True)
    return hm.read({"age": list(age), "zip": list(code), "ill": list(ill)}, PLAIN)


def plain(turns: int) -> dict[str, tuple[int, int]]:
    """How many differences were planted and found; how many quiet turns there were, and alarms."""
    rng = np.random.default_rng(5)
    schema = hm.Schema.from_dict(PLAIN)
    counts = {kind: [0, 0] for kind in ("arrival", "departure", "quiet")}
    rows = people(rng, 240)
    first = hm.anonymize(table(rows), *MODELS, method="optimal")
    for turn in range(turns):
        come, leave = [*rows, *people(rng, 1)], list(rows)
        del leave[int(rng.integers(len(rows)))]
        quiet = rows if turn % 2 else [rows[i] for i in rng.permutation(len(rows))]
        for kind, changed in (("arrival", come), ("departure", leave), ("quiet", quiet)):
            second = first.recoding.apply(table(changed), *MODELS, suppression=1.0)
            if len(second) != len(changed):
                continue  # a class fell below its promise and was suppressed whole
            found = hm.audit_releases(first, second, schema=schema)
            alone = any(w.kind == kind and (w.people, w.values) == (1, 1) for w in found.witnesses)
            counts[kind][0] += 1
            counts[kind][1] += bool(found.witnesses) if kind == "quiet" else alone
    return {kind: (planted, found) for kind, (planted, found) in counts.items()}


def met(turns: int) -> tuple[int, int, int]:
    """Whom two divisions leave one value, by reading labels; found; turns in which they differ."""
    rng = np.random.default_rng(6)
    planted = found = wrong = 0
    for _ in range(turns):
        rows = people(rng, 120)
        whole = table(rows)
        made = [hm.anonymize(whole, *MODELS, method=name) for name in ("mondrian", "local")]
        audit = hm.audit_releases(*made, schema=hm.Schema.from_dict(PLAIN), people=whole)
        one, two = ([fitting(rows_of(m), age, code) for age, code, _ in rows] for m in made)
        told = sum(
            len(a & b) == 1 and min(len(a), len(b)) > 1 for a, b in zip(one, two, strict=True)
        )
        planted, found = planted + told, found + audit.certain["ill"]
        wrong += told != audit.certain["ill"]
    return planted, found, wrong


def rows_of(release: Any) -> list[dict[str, Any]]:
    """The rows of a release."""
    return release.to_arrow().to_pylist()


def fitting(rows: list[dict[str, Any]], age: int, code: str) -> set[str]:
    """The values of all rows whose labels fit a person."""
    return {
        one["ill"] for one in rows if covers(str(one["age"]), age) and begins(str(one["zip"]), code)
    }


def covers(label: str, age: int) -> bool:
    """Whether a number stands in a range."""
    if label == "*":
        return True
    low, _, high = label.partition("-")
    return int(low) <= age <= int(high or low)


def begins(label: str, code: str) -> bool:
    """Whether a code fits a mask, or stands in a range of codes."""
    if set(label) == {"*"}:
        return True
    low, sign, high = label.partition(" to ")
    return low <= code <= high if sign else code.startswith(label.rstrip("*"))


def deleted(histories: int) -> dict[str, int]:
    """The departures of so many histories, and how many of them tell who held what."""
    rng = np.random.default_rng(7)
    counts = Counter[str]()
    for _ in range(histories):
        everybody = people(rng, 60, values=int(rng.integers(4, 9)))
        here, later = set(range(30)), list(range(30, 60))
        seen: list[list[dict[str, Any]]] = []
        inside: dict[int, list[int]] = {}
        with tempfile.TemporaryDirectory() as folder:
            ledger = Path(folder) / "game.ledger"
            for step in range(4):
                if step in (1, 2):  # some leave, some come
                    here -= set(rng.choice(sorted(here), 3, replace=False).tolist())
                    here |= {later.pop() for _ in range(int(rng.integers(0, 6)))}
                gone = None
                if step == 3:  # one is deleted, and nobody comes
                    gone = int(rng.choice(sorted(here)))
                    counts["released before"] += (
                        hm.SeriesLedger.open(ledger).holding(gone) == (inside[gone])
                    )
                    here.remove(gone)
                ids = sorted(here)
                columns = {
                    name: [everybody[i][place] for i in ids]
                    for place, name in enumerate(("age", "zip", "ill"))
                }
                whole = hm.read({"id": ids, **columns}, SERIES)
                release = hm.anonymize(
                    whole, hm.MInvariance(M, "ill"), previous=ledger, counterfeits=2.0
                )
                seen.append(rows_of(release))
                for one in ids:
                    inside.setdefault(one, []).append(step + 1)
        counts["histories"] += 1
        for one, releases in inside.items():
            if one in here:
                continue
            age, code, own = everybody[one]
            kept = set.intersection(*(fitting(seen[r - 1], age, code) for r in releases))
            counts["left"] += 1
            counts["told by intersection"] += len(kept) < M
            counts["own value lost"] += own not in kept
        lost = Counter(r["ill"] for r in seen[2]) - Counter(r["ill"] for r in seen[3])
        counts["told by difference"] += 0 < len(lost) < M
    return dict(counts)


def main() -> None:
    """Play, print the counts, and fail where one is not as it must be."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--plain", type=int, default=100)
    options.add_argument("--met", type=int, default=20)
    options.add_argument("--histories", type=int, default=200)
    given = options.parse_args()
    faults = 0
    for kind, (planted, found) in plain(given.plain).items():
        print(f"plain, {kind}: {planted:,} played, {found:,} found", flush=True)
        faults += found if kind == "quiet" else planted - found
    planted, found, wrong = met(given.met)
    print(f"met: {planted:,} people are left one value, {found:,} found; {wrong} turns differ")
    faults += wrong
    counts = deleted(given.histories)
    print("deleted: " + ", ".join(f"{name} {many:,}" for name, many in counts.items()))
    faults += counts["histories"] - counts["released before"]
    faults += sum(counts[n] for n in counts if n.startswith("told") or n == "own value lost")
    if faults:
        sys.exit(f"{faults} faults")


if __name__ == "__main__":
    main()
