"""How long a series of releases and the audit of several take, in processor time.

``series``: 12 monthly releases of 100,000 people, 3 in 100 leave and 5 in 100 come a month; the
loss of the last release stands beside that of a release that knows no earlier one. ``classes``: the
loss of a series of 2,000 people whose classes stay together, and of one whose classes are made anew
of the signatures each time. ``audit``: ten releases of a million rows, of which a few people come
and leave between two.

Run: python benchmarks/series_speed.py [series|classes|audit] [--people N] [--releases N]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import halfmask as hm

SCHEMA = {
    "table": {"person": "id"},
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "zip": {"role": "quasi", "kind": "nominal", "hierarchy": {"mask": 5}},
        "sex": {"role": "quasi"},
        "ill": {"role": "sensitive"},
    },
}
VALUES = 20


class Population:
    """People who may come, with values that never change."""

    def __init__(self, people: int) -> None:
        rng = np.random.default_rng(0)
        self.age = rng.integers(18, 90, people)
        self.zip = 75_000 + rng.integers(0, 300, people)
        self.sex = rng.integers(0, 2, people)
        shares = np.arange(VALUES, 0, -1)
        self.ill = rng.choice(VALUES, people, p=shares / shares.sum())

    def rows(self, ids: np.ndarray, *, coarse: bool = False) -> pa.Table:
        """The rows of some people; ``coarse``: as a release publishes them."""
        low = self.age[ids] // 10 * 10
        names = np.array([f"{n}-{n + 9}" for n in range(0, 100, 10)])
        codes = np.array([f"{n:05d}" for n in range(75_300)])
        area = np.array([f"{n:03d}**" for n in range(754)])
        ills = np.array([f"illness {n}" for n in range(VALUES)])
        sex = np.array(["f", "m"])[self.sex[ids]]
        if coarse:
            columns = {"age": names[low // 10], "zip": area[self.zip[ids] // 100], "sex": sex}
        else:
            columns = {"id": ids, "age": self.age[ids], "zip": codes[self.zip[ids]], "sex": sex}
        return pa.table({**columns, "ill": ills[self.ill[ids]]})


def series(people: int, releases: int) -> None:
    """Publish a series."""
    world, rng = Population(3 * people), np.random.default_rng(1)
    ids, next_ = np.arange(people), people
    begin, lost = time.process_time(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "series.ledger"
        for month in range(1, releases + 1):
            table = hm.read(world.rows(ids), SCHEMA)
            before = time.process_time()
            release = hm.anonymize(table, hm.MInvariance(3, "ill"), previous=ledger)
            lost = release.loss or 0.0
            spent = time.process_time() - before
            print(
                f"release {month:2d}: {len(release):,} rows, {release.counterfeits:,} "
                f"counterfeits, loss {lost:.4f}, {spent:.1f} s",
                flush=True,
            )
            if month < releases:
                stay = ids[rng.random(len(ids)) >= 0.03]
                come = people // 20
                ids, next_ = np.concatenate([stay, np.arange(next_, next_ + come)]), next_ + come
        print(f"{releases} releases: {time.process_time() - begin:.1f} s of processor")
        print(f"ledger: {ledger.stat().st_size / 1e6:.1f} MB")
        new = Path(folder) / "new.ledger"
        anew = hm.anonymize(
            hm.read(world.rows(ids), SCHEMA), hm.MInvariance(3, "ill"), previous=new
        )
        print(f"loss of the last release {lost:.4f}, of one that knows no other {anew.loss:.4f}")


class Forgetful(hm.SeriesLedger):
    """A ledger that knows signatures, and not who stood in a class with whom."""

    def latest(self, people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Signatures alone."""
        signature, classes = super().latest(people)
        return signature, np.full_like(classes, -1)


def classes(people: int, releases: int) -> None:
    """Publish a series twice, keeping classes together and not."""
    world = Population(3 * people)
    for name, kind in (("kept", hm.SeriesLedger), ("made anew", Forgetful)):
        rng, ids, next_ = np.random.default_rng(1), np.arange(people), people
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(releases):
                ledger = kind.open(Path(folder) / "series.ledger")
                table = hm.read(world.rows(ids), SCHEMA)
                release = hm.anonymize(table, hm.MInvariance(3, "ill"), previous=ledger)
                stay = ids[rng.random(len(ids)) >= 0.03]
                come = people // 20
                ids, next_ = np.concatenate([stay, np.arange(next_, next_ + come)]), next_ + come
        print(
            f"classes {name}: loss {release.loss:.4f}, {release.counterfeits} counterfeits in "
            f"release {releases}"
        )


def audit(rows: int, releases: int) -> None:
    """Audit releases of one changing table."""
    world = Population(rows + 100 * releases)
    made = [
        hm.read(world.rows(np.arange(5 * t, rows + 7 * t), coarse=True)) for t in range(releases)
    ]
    begin = time.process_time()
    found = hm.audit_releases(*made, schema={"columns": SCHEMA["columns"]})
    print(f"{found.outcome}, {len(found.witnesses)} witnesses, {found.cuts:,} cuts")
    print(f"{releases} releases of {rows:,} rows: {time.process_time() - begin:.1f} s of processor")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", choices=["series", "classes", "audit"])
    parser.add_argument("--people", type=int)
    parser.add_argument("--releases", type=int)
    given = parser.parse_args()
    if given.what in (None, "series"):
        series(given.people or 100_000, given.releases or 12)
    if given.what in (None, "classes"):
        classes(given.people or 2_000, given.releases or 4)
    if given.what in (None, "audit"):
        audit(given.people or 1_000_000, given.releases or 10)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory {peak:.2f} GB")


if __name__ == "__main__":
    main()
