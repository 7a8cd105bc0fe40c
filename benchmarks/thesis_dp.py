"""The experiments of the thesis's chapter 5 (Figures 5.4 to 5.6), next to its claims.

Run: python benchmarks/thesis_dp.py [--data ../shared/data] [--runs 15] [--out thesis_dp.json]

Adult, 48,842 rows, five columns (age in ten bins, workclass, education, relationship, sex): 17,280
cells. Five methods: the printed baseline (noise on every cell, negatives set to 0), the histogram
with its total kept, PrivBayes at theta = 4, DPCocGen, and marginals. Each figure is a mean over
several runs with a 95% interval. Comparisons with the original are for evaluation only.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Pure
from halfmask.dp.domain import encoded, public_domains
from halfmask.dp.vault import vault
from halfmask.synthesize.histogram import Model
from halfmask.synthesize.private import PRIVATE
from halfmask.table.schema import Schema
from halfmask.table.table import Table

COLUMNS = ("age", "workclass", "education", "relationship", "gender")
EPSILONS = ("0.01", "0.05", "0.1", "0.5", "1")
METHODS = ("clamped", "histogram", "privbayes", "dp-cocluster", "marginals")
BLOCK_ROWS = (2.0, 5.0, 32.0)  # grid levels of Figure 5.4
CLAIMS = {
    "5.4": "DPCocGen is closer to the original than the baseline for every epsilon",
    "5.5": "PrivBayes and DPCocGen answer counts better than the baseline for every epsilon",
    "5.6": "models trained on DPCocGen's rows have a higher AUC than on both others' rows",
}


class Bench:
    """The rows, the public domains and the measures."""

    def __init__(self, folder: Path) -> None:
        arrow = pq.read_table(folder / "adult" / "adult.parquet").select(COLUMNS)
        values = {n: sorted(arrow[n].unique().to_pylist()) for n in COLUMNS if n != "age"}
        self.domains = public_domains(
            list(COLUMNS), {"age": {"low": 17, "high": 90, "bins": 10}, **values}
        )
        self.sizes = {name: len(domain) for name, domain in self.domains.items()}
        self.shape = tuple(self.sizes.values())
        order = np.random.default_rng(0).permutation(len(arrow))
        cut = len(arrow) * 4 // 5
        self.table = Table(arrow, Schema())
        self.train = Table(arrow.take(np.sort(order[:cut])), Schema())
        rows = {n: encoded(self.table, n, d) for n, d in self.domains.items()}
        self.test = {name: code[order[cut:]] for name, code in rows.items()}
        self.learned = {name: code[order[:cut]] for name, code in rows.items()}
        self.original = self.histogram(rows)
        self.queries = [self._query(np.random.default_rng(i)) for i in range(100)]
        self.answers = self._answer(self.original)

    def histogram(self, rows: dict[str, np.ndarray]) -> np.ndarray:
        """Counts of all cells."""
        cell = np.ravel_multi_index(tuple(rows[n] for n in COLUMNS), self.shape)
        return np.bincount(cell, minlength=int(np.prod(self.shape))).reshape(self.shape)

    def run(self, table: Table, method: str, epsilon: str, **options: object) -> dict[str, object]:
        """Synthetic rows of one run, and what the model knows of its grid."""
        promise = Pure(epsilon)
        allowance = Accountant(promise).allow(promise, method)
        views = vault(table, self.domains, allowance)
        if method == "clamped":
            noisy = np.maximum(views.count(COLUMNS, promise).counts.ravel(), 0)
            total = int(noisy.sum())
            model = Model(self.sizes, np.arange(noisy.size), noisy.astype(float), total)
        else:
            learn = importlib.import_module(PRIVATE[method]).learn
            model = learn(views, ordered=["age"], **options)
        allowance.receipt().verify()
        rows = model.draw(model.rows, np.random.default_rng())
        parts = getattr(model, "parts", {})
        blocks = int(np.prod([int(part.max()) + 1 for part in parts.values()])) if parts else 0
        return {"rows": rows, "blocks": blocks}

    def hellinger(self, table: np.ndarray) -> float:
        """The distance between the joint distributions of all five columns."""
        p, q = self.original / self.original.sum(), table / table.sum()
        return float(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2))

    def query_error(self, table: np.ndarray) -> float:
        """The mean relative error of 100 random counts, small answers bounded at 0.1% of rows."""
        least = self.original.sum() / 1000
        apart = np.abs(self._answer(table) - self.answers)
        return float((apart / np.maximum(self.answers, least)).mean())

    def auc(self, rows: dict[str, np.ndarray], target: str) -> float:
        """Naive Bayes trained on ``rows``, judged on real rows that nobody trained on."""
        size, others = self.sizes[target], [n for n in COLUMNS if n != target]
        scores = np.tile(
            np.log(np.bincount(rows[target], minlength=size) + 1.0), (len(self.test[target]), 1)
        )
        for name in others:
            table = np.full((size, self.sizes[name]), 0.5)
            np.add.at(table, (rows[target], rows[name]), 1.0)
            table = np.log(table / table.sum(axis=1, keepdims=True))
            scores += table[:, self.test[name]].T
        scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
        truth = self.test[target]
        shares = np.bincount(truth, minlength=size) / len(truth)
        return float(sum(s * _auc(scores[:, v], truth == v) for v, s in enumerate(shares) if s))

    def _query(self, random: np.random.Generator) -> list[np.ndarray]:
        masks = []
        for name, size in self.sizes.items():
            mask = random.random(size) < 0.5
            if name == "age":
                low, high = sorted(random.integers(0, size, 2))
                mask = (np.arange(size) >= low) & (np.arange(size) <= high)
            mask[random.integers(0, size)] |= not mask.any()
            masks.append(mask)
        return masks

    def _answer(self, table: np.ndarray) -> np.ndarray:
        found = []
        for masks in self.queries:
            part = table.astype(float)
            for mask in reversed(masks):
                part = part @ mask.astype(float)
            found.append(float(part))
        return np.array(found)


def _auc(scores: np.ndarray, positive: np.ndarray) -> float:
    order = np.argsort(scores, kind="stable")
    values, inverse, counts = np.unique(scores[order], return_inverse=True, return_counts=True)
    del values
    ranks = np.cumsum(counts) - (counts - 1) / 2
    mine = ranks[inverse][positive[order]].sum()
    n = int(positive.sum())
    return float((mine - n * (n + 1) / 2) / (n * (len(scores) - n))) if 0 < n < len(scores) else 0.5


def summary(values: list[float]) -> dict[str, float]:
    """Mean and half of a 95% interval."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return {"mean": round(float(np.mean(values)), 4), "half": round(float(1.96 * spread), 4)}


def main() -> None:
    """Run everything and write one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--data", type=Path, default=here.parent / "shared" / "data")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    bench = Bench(given.data)
    results: list[dict[str, object]] = []
    for epsilon in EPSILONS:
        variants = [(m, {}) for m in METHODS]
        variants += [("dp-cocluster", {"rows_per_block": r}) for r in BLOCK_ROWS if r != 5.0]
        for method, options in variants:
            figures: dict[str, list[float]] = {
                k: [] for k in ("hellinger", "queries", "sex", "relationship", "blocks", "seconds")
            }
            for _ in range(given.runs):
                start = time.perf_counter()
                made = bench.run(bench.table, method, epsilon, **options)
                figures["seconds"].append(time.perf_counter() - start)
                table = bench.histogram(made["rows"])
                figures["hellinger"].append(bench.hellinger(table))
                figures["queries"].append(bench.query_error(table))
                figures["blocks"].append(made["blocks"])
                if not options:
                    rows = bench.run(bench.train, method, epsilon)["rows"]
                    figures["sex"].append(bench.auc(rows, "gender"))
                    figures["relationship"].append(bench.auc(rows, "relationship"))
            line = {"epsilon": epsilon, "method": method, **options}
            line |= {name: summary(values) for name, values in figures.items() if values}
            print(json.dumps(line), flush=True)
            results.append(line)
    original = {n: round(bench.auc(bench.learned, n), 4) for n in ("gender", "relationship")}
    document = {"claims": CLAIMS, "auc_of_original": original, "results": results}
    print(json.dumps({"auc_of_original": original}))
    if given.out:
        given.out.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
