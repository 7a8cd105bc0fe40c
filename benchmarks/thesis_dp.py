"""The experiments of the thesis's chapter 5 (Figures 5.4 to 5.6), next to its claims.

Run: python benchmarks/thesis_dp.py [--data .data] [--runs 15] [--methods NAME ...] [-o folder]

Adult, 48,842 rows, five columns (age in ten bins, workclass, education, relationship, sex): 17,280
cells. Twelve methods: the printed baseline (noise on every cell, negatives set to 0), the histogram
with its total kept, PrivBayes at theta = 4 and tuned (on other tables), DPCocGen as printed and as
we mend it (dp-cocluster), marginals, and comparators of the chapter (see ``_dp_comparators.py``).
Each figure is a mean over several runs with a 95% interval. Writes JSON, a table and a page with
the three figures. Comparisons with the original are for evaluation only.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import _adult
from _dp_comparators import COMPARATORS
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Pure
from halfmask.dp.domain import public_codes, public_domains
from halfmask.dp.views import guarded_rows
from halfmask.report.page import render_template
from halfmask.report.plots import plot
from halfmask.synthesize.histogram import NoisyHistogram
from halfmask.synthesize.private import PRIVATE
from halfmask.table.schema import Schema
from halfmask.table.table import Table

COLUMNS = ("age", "workclass", "education", "relationship", "gender")
EPSILONS = ("0.01", "0.05", "0.1", "0.5", "1")
METHODS: dict[str, tuple[str, dict[str, object]]] = {
    "baseline as printed": ("clamped", {}),
    "histogram": ("histogram", {}),
    "privbayes": ("privbayes", {}),
    "privbayes, tuned": ("privbayes", {"preset": "tuned"}),
    "DPCocGen as printed": ("dpcocgen", {}),
    "DPCocGen, 144 blocks": ("dpcocgen", {"blocks": 144}),
    "dp-cocluster": ("dp-cocluster", {}),
    "marginals": ("marginals", {}),
    **{name: (name, {}) for name in COMPARATORS},
}
BLOCK_ROWS = (2.0, 32.0)  # other grid levels of Figure 5.4; 5 is the public rule
CLAIMS = {
    "5.4": "DPCocGen is closer to the original than the baseline for every epsilon",
    "5.5": "PrivBayes and DPCocGen answer counts better than the baseline for every epsilon",
    "5.6": "models trained on DPCocGen's rows have a higher AUC than on both others' rows",
}


class Bench:
    """The rows, the public domains and the measures."""

    def __init__(self, folder: Path) -> None:
        arrow = pq.read_table(folder / "adult.parquet").select(COLUMNS)
        arrow = arrow.slice(0, _adult.MOST).combine_chunks()
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
        rows = {n: public_codes(self.table, n, d) for n, d in self.domains.items()}
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
        if method in COMPARATORS:
            codes = {n: public_codes(table, n, d) for n, d in self.domains.items()}
            random = np.random.default_rng()
            weights = COMPARATORS[method](self.histogram(codes), float(epsilon), random).ravel()
            kept = np.flatnonzero(weights > 0)
            drawn = NoisyHistogram(self.sizes, kept, weights[kept], max(1, round(weights.sum())))
            return {"rows": drawn.draw(drawn.rows, random), "blocks": 0}
        promise = Pure(epsilon)
        allowance = Accountant(promise).allow(promise, method)
        views = guarded_rows(table, self.domains, allowance)
        if method == "clamped":
            noisy = np.maximum(views.count(COLUMNS, promise).counts.ravel(), 0)
            total = int(noisy.sum())
            model = NoisyHistogram(self.sizes, np.arange(noisy.size), noisy.astype(float), total)
        else:
            learn = PRIVATE[method]
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


def claims(results: list[dict[str, Any]]) -> list[dict[str, object]]:
    """Each claim beside what was measured, epsilon by epsilon."""
    found = []
    for epsilon in EPSILONS:
        lines = {r["method"]: r for r in results if r["epsilon"] == epsilon}
        ours = lines["dp-cocluster"]
        for figure, measure, better in (
            ("5.4", "hellinger", -1), ("5.5", "queries", -1),
            ("5.6", "sex", 1), ("5.6", "relationship", 1),
        ):  # fmt: skip
            for other in ("baseline as printed", "histogram", "privbayes", "privbayes, tuned"):
                gap = better * (ours[measure]["mean"] - lines[other][measure]["mean"])
                spread = np.hypot(ours[measure]["half"], lines[other][measure]["half"])
                found.append(
                    {"figure": figure, "epsilon": epsilon, "measure": measure, "over": other,
                     "ahead": bool(gap > 0), "beyond_chance": bool(abs(gap) > spread)}
                )  # fmt: skip
    return found


def page(results: list[dict[str, Any]]) -> str:
    """Figures 5.4 to 5.6: one curve a method over epsilon, with intervals."""
    titles = {
        "hellinger": "5.4: joint Hellinger distance", "queries": "5.5: relative error of counts",
        "sex": "5.6: AUC of sex", "relationship": "5.6: AUC of relationship",
    }  # fmt: skip
    plots = {}
    for measure, title in titles.items():
        rows = [
            {"epsilon": float(r["epsilon"]), "method": r["method"], "value": r[measure]["mean"],
             "low": r[measure]["mean"] - r[measure]["half"],
             "high": r[measure]["mean"] + r[measure]["half"]}
            for r in results if measure in r
        ]  # fmt: skip
        scale = {"type": "log"} if measure == "queries" else {"zero": False}
        x = {"field": "epsilon", "type": "quantitative", "scale": {"type": "log"}}
        names = list(dict.fromkeys(r["method"] for r in results))
        color = {
            "field": "method", "type": "nominal", "scale": {"domain": names},
            "legend": {"columns": 3, "labelLimit": 260},
        }  # fmt: skip
        y = {"type": "quantitative", "title": title, "scale": scale}
        plots[f"Figure {title}"] = plot(
            rows, height=260,
            layer=[
                {"mark": {"type": "line", "point": True},
                 "encoding": {"x": x, "y": {**y, "field": "value"}, "color": color}},
                {"mark": "rule", "encoding": {"x": x, "y": {**y, "field": "low"},
                                              "y2": {"field": "high"}, "color": color}},
            ],
        )  # fmt: skip
    return render_template("plots.html", title="Chapter 5 of the thesis", plots=plots)


def markdown(results: list[dict[str, Any]], methods: list[str]) -> str:
    """The table of the documentation: Hellinger / counts / AUC of sex and relationship."""
    lines = ["| epsilon | " + " | ".join(methods) + " |", "|---" * (len(methods) + 1) + "|"]
    for epsilon in EPSILONS:
        cells = []
        for method in methods:
            r = next(x for x in results if (x["epsilon"], x["method"]) == (epsilon, method))
            parts = [f"{r[m]['mean']:.3f}".lstrip("0") for m in ("hellinger", "queries")]
            aucs = [f"{r[m]['mean']:.3f}".lstrip("0") for m in ("sex", "relationship")]
            cells.append(" / ".join([*parts, " ".join(aucs)]))
        lines.append(f"| {epsilon} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measured(bench: Bench, name: str, epsilon: str, runs: int, **more: object) -> dict[str, Any]:
    """All figures of one method at one epsilon."""
    method, options = METHODS[name]
    options = {**options, **more}
    names = ("hellinger", "queries", "sex", "relationship", "blocks", "cpu_seconds")
    figures: dict[str, list[float]] = {key: [] for key in names}
    for _ in range(runs):
        start = time.process_time()
        made = bench.run(bench.table, method, epsilon, **options)
        figures["cpu_seconds"].append(time.process_time() - start)
        table = bench.histogram(made["rows"])
        figures["hellinger"].append(bench.hellinger(table))
        figures["queries"].append(bench.query_error(table))
        figures["blocks"].append(made["blocks"])
        if not more:
            rows = bench.run(bench.train, method, epsilon, **options)["rows"]
            figures["sex"].append(bench.auc(rows, "gender"))
            figures["relationship"].append(bench.auc(rows, "relationship"))
    title = name if not more else f"{name}, {more['rows_per_block']:g} rows a block"
    line: dict[str, Any] = {"epsilon": epsilon, "method": title}
    return line | {key: summary(values) for key, values in figures.items() if values}


def main() -> None:
    """Run everything; with ``-o`` write JSON, the table and the page of figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with adult.parquet")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--methods", nargs="*", choices=METHODS, help="only these, without claims")
    parser.add_argument("-o", "--output", type=Path)
    given = parser.parse_args()
    bench = Bench(_adult.place(given.data))
    results: list[dict[str, Any]] = []
    chosen = given.methods or list(METHODS)
    for epsilon in EPSILONS:
        for name in chosen:
            results.append(measured(bench, name, epsilon, given.runs))
            print(json.dumps(results[-1]), flush=True)
        for rows in BLOCK_ROWS if not given.methods else ():
            line = measured(bench, "dp-cocluster", epsilon, given.runs, rows_per_block=rows)
            results.append(line)
            print(json.dumps(line), flush=True)
    original = {n: round(bench.auc(bench.learned, n), 4) for n in ("gender", "relationship")}
    document = {
        "runs": given.runs, "claims": CLAIMS, "held": [] if given.methods else claims(results),
        "auc_of_original": original, "results": results,
    }  # fmt: skip
    print(markdown(results, chosen))
    for line in document["held"]:
        if not line["ahead"]:
            print("not ahead:", json.dumps(line))
    if given.output:
        given.output.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document, indent=2) + "\n"
        (given.output / "thesis_dp.json").write_text(text, encoding="utf-8")
        (given.output / "thesis_dp.md").write_text(
            markdown(results, chosen) + "\n", encoding="utf-8"
        )
        (given.output / "thesis_dp.html").write_text(page(results), encoding="utf-8")


if __name__ == "__main__":
    main()
