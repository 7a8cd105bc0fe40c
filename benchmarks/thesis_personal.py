"""The experiments of the thesis on personal k-anonymity at full size, next to its printed values.

Run: python benchmarks/thesis_personal.py [--part table|scenarios|scale|exact] [--method NAME]
     [--k low|high] [--seeds 5] [--step 25] [--quick] [--data .data] [-o folder]

Regenerates Table 5.3 (DBIL of one k for all over DBIL of personal k, demands at random and along
the data); the scenarios of figures 5.5 to 5.8 and 5.10 and the effect of correlation of figures
5.12 and 5.13 over a grid of shares; the scale of figure 5.9; and the ratios of chapter 6. Every
figure comes with the 95% interval of its mean over the seeds. Prints tables; with ``-o`` each part
is written as JSON and CSV after every method, and all parts found there as one page of plots, so
that parts and methods may run one by one. ``--quick`` takes 3,000 rows and two seeds.

Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import halfmask as hm
from _adult import adult
from _thesis_plots import page
from halfmask.anonymize.partition import exact
from halfmask.anonymize.partition.run import division_loss
from halfmask.anonymize.partition.task import task_of
from halfmask.anonymize.policies import Gain
from halfmask.models.requirements import prepare

if TYPE_CHECKING:
    from collections.abc import Iterator

ALONG = ("age", "education-num")
KS = {"low": (3, 5, 7), "high": (5, 7, 10)}
CONCERNS = ("general", "personal", "professional", "sexual-political")
METHODS = ("mondrian", "k-member", "mdav", "personal")
# Table 5.3: method and k, then (at random, along the data) per concern in the order above.
PRINTED = {
    ("mondrian", "low"): ((1.001, 1.341), (1.813, 2.124), (1.167, 1.616), (1.306, 1.761)),
    ("mondrian", "high"): ((1.000, 1.064), (1.453, 2.057), (1.098, 1.187), (1.065, 1.427)),
    ("k-member", "low"): ((1.005, 1.096), (1.581, 1.758), (1.144, 1.321), (1.210, 1.439)),
    ("k-member", "high"): ((1.001, 1.064), (1.385, 1.505), (1.093, 1.239), (1.112, 1.302)),
    ("mdav", "low"): ((1.002, 1.081), (1.636, 1.851), (1.147, 1.341), (1.214, 1.489)),
    ("mdav", "high"): ((0.999, 1.068), (1.429, 1.575), (1.104, 1.274), (1.121, 1.346)),
}
# Pairs (k_m, scale) of figure 5.9, which prints none but these two maxima: (15, 13) and (35, 33).
SCALES = ((15, 1), (15, 5), (15, 9), (15, 13), (25, 5), (25, 13), (25, 23), (35, 13), (35, 33))
CRITERIA = ("split", "diameter", "wcsd")
Lines = list[dict[str, Any]]


def table_53(table: hm.Table, seeds: range, method: str) -> Iterator[dict[str, Any]]:
    """Our ratios beside the printed ones; the new method has none printed."""
    for name, k in KS.items():
        for j, along in enumerate((None, ALONG)):
            found = hm.compare_policies(
                table, list(CONCERNS), k=k, correlated=along, method=method, seeds=seeds
            )
            printed = PRINTED.get((method, name))
            for i, one in enumerate(found.gains):
                yield {
                    "method": method, "k": name, "concern": one.concern,
                    "demands": "along the data" if along else "at random",
                    **_rounded(one.over_uniform), "printed": printed[i][j] if printed else None,
                    "scenario_1": round(one.over_moderate.mean, 3),
                    "scenario_3": round(one.over_deleting.mean, 3),
                }  # fmt: skip


def scenarios(
    table: hm.Table, seeds: range, method: str, step: int, ks: dict[str, tuple[int, int, int]]
) -> Iterator[dict[str, Any]]:
    """Figures 5.5 to 5.8, 5.10, 5.12, 5.13: gains over shares of liberals and conservatives."""
    shares = [
        (float(high), float(100 - low - high), float(low))
        for low in range(0, 101, step)
        for high in range(0, 101 - low, step)
    ]
    for name, k in ks.items():
        random, along = (
            hm.compare_policies(table, shares, k=k, correlated=c, method=method, seeds=seeds).gains
            for c in (None, ALONG)
        )
        for one, other, (high, _, low) in zip(random, along, shares, strict=True):
            yield {
                "method": method, "k": name, "liberal": low, "conservative": high,
                **_named("scenario_1", one.over_moderate), **_named("scenario_2", one.over_uniform),
                **_named("scenario_3", one.over_deleting),
                "correlation": round(one.personal / other.personal, 3),
            }  # fmt: skip


def scale(table: hm.Table, seeds: range, method: str) -> Iterator[dict[str, Any]]:
    """Figure 5.9: the gain grows with the distance between demands and falls with their size."""
    for middle, apart in SCALES:
        k = (middle - apart, middle, middle + apart)
        found = hm.compare_policies(table, ["personal"], k=k, method=method, seeds=seeds).gains[0]
        yield {"method": method, "k_m": middle, "scale": apart, **_rounded(found.over_uniform)}


def chapter_6(table: hm.Table, samples: int, size: int = 18) -> Lines:
    """Figure 6.6: the DBIL of each heuristic, and of the optimum of each criterion, over the least.

    80% of the records demand 2 and 20% demand 3, as in section 6.6.
    """
    ratios: dict[str, list[float]] = {}
    for seed in range(samples):
        pick = np.random.default_rng(seed).choice(len(table), size, replace=False)
        part = hm.Table(table.arrow.take(pa.array(pick)), table.schema)
        demands = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=seed)
        best = _optimum(demands, "dbil", seed)
        for method in METHODS:
            ratios.setdefault(method, []).append(_heuristic(demands, method, seed) / best)
        plain = _heuristic(demands, "k-member", seed, score="plain") / best
        ratios.setdefault("k-member, plain score", []).append(plain)
        for metric in CRITERIA:
            ratios.setdefault(f"optimal {metric}", []).append(
                _optimum(demands, metric, seed) / best
            )
    return [
        {"method": name, "records": size, "samples": samples, **_rounded(Gain.of(found)),
         "median": round(float(np.median(found)), 3), "most": round(max(found), 3),
         "printed": "1.3 to 1.4" if name.startswith("k-member") else None}
        for name, found in ratios.items()
    ]  # fmt: skip


def _optimum(table: hm.Table, metric: str, seed: int) -> float:
    """The DBIL of the division that is optimal for ``metric``."""
    models = (hm.PersonalKAnonymity(),)
    task = task_of(prepare(table, models), models, seed=seed, options={"metric": metric})
    return division_loss(task, exact.find_optimum(task).ids)


def _heuristic(table: hm.Table, method: str, seed: int, **options: str) -> float:
    release = hm.anonymize(table, hm.PersonalKAnonymity(), method=method, seed=seed, **options)
    return float(release.parameters["value"])


def _rounded(gain: Gain) -> dict[str, float]:
    return {"mean": round(gain.mean, 3), "low": round(gain.low, 3), "high": round(gain.high, 3)}


def _named(name: str, gain: Gain) -> dict[str, float]:
    return {name: round(gain.mean, 3), f"{name}_width": round((gain.high - gain.low) / 2, 3)}


def keep(folder: Path, part: str, found: Lines) -> None:
    """Write the lines of a part beside those of other methods, and the page of all parts."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{part}.json"
    new = {line["method"] for line in found}
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    lines = [line for line in old if line["method"] not in new] + found
    file.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")
    with file.with_suffix(".csv").open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, lines[0])
        writer.writeheader()
        writer.writerows(lines)
    parts = {one.stem: json.loads(one.read_text(encoding="utf-8")) for one in folder.glob("*.json")}
    (folder / "thesis.html").write_text(page(parts), encoding="utf-8")


def show(part: str, found: Lines) -> None:
    """Print the lines as a table for people."""
    print(f"\n{part}\n| " + " | ".join(found[0]) + " |\n|" + "---|" * len(found[0]))
    for line in found:
        print("| " + " | ".join("" if v is None else str(v) for v in line.values()) + " |")


def main() -> None:
    """Run the parts that were asked for."""
    options = argparse.ArgumentParser()
    options.add_argument("--data", type=Path, help="a folder with adult.data")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--step", type=int, default=25, help="of the grid of shares, in percent")
    options.add_argument("--k", choices=tuple(KS), help="of the scenarios; without it both")
    options.add_argument("--samples", type=int, default=20, help="of the exact part")
    options.add_argument("--quick", action="store_true")
    options.add_argument("--part", choices=("table", "scenarios", "scale", "exact"))
    options.add_argument("--method", choices=METHODS, action="append")
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args()
    table, seeds = adult(given.data), range(2 if given.quick else given.seeds)
    if given.quick:
        pick = np.random.default_rng(0).choice(len(table), min(3000, len(table)), replace=False)
        table = hm.Table(table.arrow.take(pa.array(pick)), table.schema)
    ks = {given.k: KS[given.k]} if given.k else KS
    parts = {
        "table": lambda method: list(table_53(table, seeds, method)),
        "scenarios": lambda method: list(scenarios(table, seeds, method, given.step, ks)),
        "scale": lambda method: list(scale(table, seeds, method)),
        "exact": lambda _: chapter_6(table, given.samples),
    }
    for part, run in parts.items():
        if given.part not in (None, part):
            continue
        for method in given.method or METHODS if part != "exact" else ("all",):
            start = time.process_time()
            found = run(method)
            show(f"{part}, {method}, {time.process_time() - start:.0f} s of processor time", found)
            if given.output:
                keep(given.output, part, found)


if __name__ == "__main__":
    main()
