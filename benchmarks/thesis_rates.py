"""Tables 4.5 and 4.6 of Sondeck's thesis again: discrimination rates label by label.

Run: python benchmarks/thesis_rates.py

Prints JSON: per table each published label with its rate of identity (4.5, on table 4.2) or
homogeneity (4.6, on table 4.3) as `hm.compare(..., values=True)` gives it, beside the printed one,
and the largest difference. Where print exchanges two rows of table 4.6, they are exchanged back.
On files of one's own the same comes from `halfmask compare original.csv release.csv --values`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import halfmask as hm

AGES = {"2*": ["22"], "3*": ["35", "39", "32"], ">=40": ["45", "40", "63"]}
BANDS = ["2*"] * 3 + ["3*"] * 3 + [">=40"] * 3
SCHEMA = {
    "zip": {"role": "quasi", "hierarchy": {"mask": 5}},
    "age": {"role": "quasi", "hierarchy": {"tree": AGES}},
}
IDENTITY = {
    "zip": ["35510", "35512", "35517", "35877", "35830", "35618", "35620", "35842", "35655"],
    "age": ["22", "22", "22", "35", "39", "35", "45", "40", "63"],
}
PLACES = {
    "loc1": ["diabetes", "cardiology", "cancer", "hiv", "cancer", "cardiology", "diabetes",
             "hiv", "hiv"],
    "loc2": ["church"] * 3 + ["synagogue", "mosque", "synagogue", "mosque", "mosque", "synagogue"],
}  # fmt: skip
HOMOGENEITY = {
    "zip": ["35000"] * 9,
    "age": ["22", "22", "22", "35", "39", "32", "45", "40", "63"],
    **PLACES,
}
# attack, column, target, the rates as printed
PRINTED: dict[str, list[tuple[str, str, str, dict[str, float]]]] = {
    "4.5": [
        ("identity", "age", "age", {"2*": 1.0, "3*": 0.8735, ">=40": 0.7816}),
        ("identity", "zip", "zip", {"355**": 0.8333, "356**": 0.8333, "358**": 0.8333}),
    ],
    "4.6": [
        ("homogeneity", "age", "loc1", {"2*": 0.7325, "3*": 0.7325, ">=40": 0.8450}),
        ("homogeneity", "age", "loc2", {"2*": 1.0, "3*": 0.8069, ">=40": 0.8069}),
    ],
}


def comparisons() -> dict[str, Any]:
    """The releases of the thesis beside their originals."""
    zips = ["355**"] * 3 + ["358**", "358**", "356**", "356**", "358**", "356**"]
    sensitive = dict.fromkeys(PLACES, "sensitive")
    pairs = {
        "4.5": (IDENTITY, SCHEMA, {"zip": zips, "age": BANDS}),
        "4.6": (HOMOGENEITY, SCHEMA | sensitive, {"zip": ["*"] * 9, "age": BANDS, **PLACES}),
    }
    return {
        name: hm.compare(
            hm.read(original, schema=schema), hm.read(released, schema={}), learn=False, values=True
        )
        for name, (original, schema, released) in pairs.items()
    }


def main() -> None:
    """Print the tables."""
    argparse.ArgumentParser().parse_args()
    out: dict[str, Any] = {}
    for name, compared in comparisons().items():
        rows, apart = [], 0.0
        for attack, column, target, printed in PRINTED[name]:
            found = {
                one.label: one.rate
                for one in compared.labels
                if (one.attack, one.column, one.target) == (attack, column, target)
            }
            for label, rate in printed.items():
                apart = max(apart, abs(found[label] - rate))
                rows.append({"attack": attack, "target": target, "label": label,
                             "rate": round(found[label], 4), "printed": rate})  # fmt: skip
        out[f"table {name}"] = {"labels": rows, "largest_difference": round(apart, 5)}
    print(json.dumps(out, indent=2))


if __name__ == "__main__":
    main()
