"""Chapters 3 and 4 of Benkhelif's thesis (2018) on Adult, next to the values it prints.

Run: python benchmarks/thesis_coclustering.py [--data .data] [--k 461 1042]

80 percent of the 30,162 rows are anonymized, 20 percent are the test. Ages are deciles of the
training part, so that every method works on the same leaves. Classifiers are naive Bayes, trained
on anonymized rows (a label that stands for several values is drawn from them evenly) and judged on
real ones; the thesis used Khiops' selective naive Bayes. Needs scikit-learn.
"""

from __future__ import annotations

import argparse
import json
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import halfmask as hm
from _adult import complete_rows
from halfmask.coclustering.criterion import CriterionForm, GridCriterion
from halfmask.coclustering.generate import generator
from halfmask.coclustering.hierarchy import hierarchy, simplify
from halfmask.coclustering.prepare import cocluster_columns
from halfmask.metrics.utility.distributions import hellinger
from halfmask.release.candidate import SyntheticCandidate
from halfmask.release.doors.synthetic import measure_synthetic
from halfmask.release.seal import seal
from halfmask.table.hierarchies.builders import find_automatic

coclustering = import_module("halfmask.anonymize.coclustering")

TARGETS = {  # Table 3.5: AUC of original, k = 461, 816, 1042, 8892
    "sex": (0.832, 0.827, 0.821, 0.820, 0.500),
    "age": (0.722, 0.707, 0.690, 0.689, 0.645),
    "race": (0.735, 0.718, 0.706, 0.706, 0.476),
    "marital-status": (0.849, 0.843, 0.839, 0.837, 0.729),
    "education": (0.719, 0.706, 0.696, 0.686, 0.500),
    "native-country": (0.736, 0.714, 0.713, 0.713, 0.500),
    "workclass": (0.741, 0.728, 0.716, 0.722, 0.500),
    "occupation": (0.757, 0.746, 0.734, 0.727, 0.500),
    "salary-class": (0.879, 0.877, 0.874, 0.874, 0.777),
}
JOINT = ("sex", "age", "race", "marital-status", "education", "workclass")
GROUPS = (None, 15, 5, 2)  # whose risk is measured; None: as many as are found
HYBRID = {"COC_HG": "cocluster", "COC": "cocluster-sets", "MICRO": "cocluster-mode"}


def leaves(folder: Path | None) -> tuple[hm.Table, hm.Table]:
    """Train and test tables whose ages are deciles of the training part."""
    rows = complete_rows(folder)
    order = np.random.default_rng(0).permutation(rows.num_rows)
    cut = round(0.8 * rows.num_rows)
    numbers = rows["age"].to_numpy()
    bounds = np.unique(np.quantile(numbers[order[:cut]], np.linspace(0, 1, 11)))[1:-1]
    deciles = np.searchsorted(bounds, numbers)
    names = [f"d{i}" for i in range(len(bounds) + 1)]
    place = rows.column_names.index("age")
    rows = rows.set_column(place, "age", pa.array([names[d] for d in deciles]))
    schema = {n: {"role": "quasi", "kind": "nominal", "hierarchy": "auto"} for n in TARGETS}
    parts = [rows.take(pa.array(part)) for part in (order[:cut], order[cut:])]
    return tuple(hm.read(part, {"columns": schema}) for part in parts)  # type: ignore[return-value]


def codes_of(table: hm.Table, domains: dict[str, list[object]]) -> np.ndarray:
    """(rows, columns) codes over the training part's values; unseen values become the first."""
    out = []
    for name, values in domains.items():
        known = {value: code for code, value in enumerate(values)}
        encoded = table.encode(name)
        places = np.array([known.get(v, 0) for v in encoded.values.to_pylist()], dtype=np.int32)
        out.append(places[encoded.codes])
    return np.column_stack(out)


def as_table(codes: np.ndarray) -> hm.Table:
    """Codes as a table in which every column may be known and none has an order."""
    rows = pa.table({name: pa.array(codes[:, i]) for i, name in enumerate(TARGETS)})
    return hm.read(rows, {"columns": {n: {"role": "quasi", "kind": "nominal"} for n in TARGETS}})


def label_sets(table: hm.Table, name: str) -> dict[str, np.ndarray]:
    """What each label of a declared hierarchy stands for, as a mask over values."""
    levels = table.hierarchy(name)
    found = {"*": np.ones(levels.maps.shape[1], dtype=bool)}
    for level in range(levels.height, -1, -1):
        for code, label in enumerate(levels.labels[level]):
            found.setdefault(str(label), levels.maps[level] == code)
    return found


def sets_of(
    rows: pa.Table, meaning: dict[str, dict[str, np.ndarray]]
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Class sizes, per column the set of each class, and the class of each row."""
    texts = [rows[name].cast(pa.string()).to_pylist() for name in meaning]
    classes: dict[tuple[str, ...], int] = {}
    ids = np.array([classes.setdefault(row, len(classes)) for row in zip(*texts, strict=True)])
    sets = [
        np.array([meaning[name][labels[k]] for labels in classes]) for k, name in enumerate(meaning)
    ]
    return np.bincount(ids), sets, ids


def drawn_leaves(sets: list[np.ndarray], ids: np.ndarray) -> np.ndarray:
    """A leaf for each row, drawn evenly from what its label stands for."""
    random = np.random.default_rng(1)
    out = []
    for column in sets:
        share = (column / column.sum(axis=1, keepdims=True)).cumsum(axis=1)
        draw = random.random(len(ids))[:, None] * (1 - 1e-12)
        out.append((draw > share[ids]).sum(axis=1))
    return np.column_stack(out).astype(np.int32)


def auc(train: np.ndarray, test: np.ndarray, target: int, sizes: list[int]) -> float:
    """The prevalence-weighted mean of one-against-the-rest AUCs of naive Bayes."""
    from sklearn.metrics import roc_auc_score
    from sklearn.naive_bayes import CategoricalNB

    others = [k for k in range(train.shape[1]) if k != target]
    learner = CategoricalNB(min_categories=[sizes[k] for k in others])
    learner.fit(train[:, others], train[:, target])
    chances = np.zeros((len(test), sizes[target]))
    chances[:, learner.classes_] = learner.predict_proba(test[:, others])
    present, counts = np.unique(test[:, target], return_counts=True)
    if len(present) < 2:
        return float("nan")
    found = [roc_auc_score(test[:, target] == value, chances[:, value]) for value in present]
    return float(np.average(found, weights=counts))


def told_apart(
    truth: np.ndarray, drawn: np.ndarray, sizes: list[int], random: np.random.Generator
) -> float:
    """The AUC of naive Bayes that tells drawn rows from real ones, on a half it has not seen."""
    both = np.concatenate([truth, drawn])
    origin = np.repeat([0, 1], [len(truth), len(drawn)])
    rows = np.column_stack([both, origin]).astype(np.int32)[random.permutation(len(both))]
    half = len(rows) // 2
    return auc(rows[:half], rows[half:], rows.shape[1] - 1, [*sizes, 2])


def joint(codes: np.ndarray, sizes: list[int]) -> np.ndarray:
    """The shares of rows over the cross product of their columns."""
    flat = np.ravel_multi_index(tuple(codes.T), sizes)
    return np.bincount(flat, minlength=int(np.prod(sizes))) / len(codes)


def joint_of_sets(weights: np.ndarray, sets: list[np.ndarray]) -> np.ndarray:
    """The same of classes whose labels stand for sets of values, spread evenly over them."""
    out = np.zeros([s.shape[1] for s in sets])
    for row, weight in enumerate(weights.tolist()):
        inside = [np.flatnonzero(s[row]) for s in sets]
        out[np.ix_(*inside)] += weight / np.prod([len(i) for i in inside])
    return out.ravel() / weights.sum()


def utility(
    name: str, rows: np.ndarray, test: np.ndarray, sizes: list[int], truth: np.ndarray,
    joints: list[np.ndarray], margins: list[np.ndarray],
) -> dict[str, object]:  # fmt: skip
    """All figures of one method at one k."""
    columns = list(TARGETS)
    chosen = [columns.index(n) for n in JOINT]
    return {
        "method": name,
        "auc": {n: round(auc(rows, test, k, sizes), 3) for k, n in enumerate(columns)},
        "hellinger_mean": round(
            float(
                np.mean(
                    [
                        hellinger(joint(truth[:, [k]], [sizes[k]]), margins[k])
                        for k in range(len(columns))
                    ]
                )
            ),
            4,
        ),
        "hellinger_joint": {
            count: round(
                hellinger(
                    joint(truth[:, chosen[:count]], [sizes[k] for k in chosen[:count]]),
                    joints[count - 2],
                ),
                4,
            )
            for count in range(2, 7)
        },
    }


def from_codes(rows: np.ndarray, sizes: list[int]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The joint and marginal histograms of plain rows."""
    chosen = [list(TARGETS).index(n) for n in JOINT]
    joints = [joint(rows[:, chosen[:c]], [sizes[k] for k in chosen[:c]]) for c in range(2, 7)]
    return joints, [joint(rows[:, [k]], [sizes[k]]) for k in range(rows.shape[1])]


def from_sets(
    weights: np.ndarray, sets: list[np.ndarray]
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The same of labels that stand for sets, each leaf with an equal share."""
    chosen = [list(TARGETS).index(n) for n in JOINT]
    joints = [joint_of_sets(weights, [sets[k] for k in chosen[:c]]) for c in range(2, 7)]
    return joints, [joint_of_sets(weights, [column]) for column in sets]


def costs(found: Any, form: CriterionForm) -> dict[str, float]:
    """What the grid costs in one form of the criterion, and the grid of one cell."""
    judge = GridCriterion(found.melted.observations, form)
    cost, null = judge.cost(found.grid.partition), judge.null()
    return {"grid": round(cost, 1), "null": round(null, 1), "level": round(1 - cost / null, 5)}


def main() -> None:
    """Print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with adult.data")
    parser.add_argument("--k", type=int, nargs="+", default=[461, 1042])
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--time-limit", type=float, default=30.0)
    parser.add_argument("--recodings", nargs="*", default=["optimal", "local"])
    given = parser.parse_args()
    begin = time.perf_counter()
    train, test = leaves(given.data)
    domains = {n: train.encode(n).values.to_pylist() for n in TARGETS}
    sizes = [len(values) for values in domains.values()]
    truth, unseen = codes_of(train, domains), codes_of(test, domains)
    melted, grid = cocluster_columns(train, train.schema.quasi, seed=0, rounds=given.rounds)
    found = coclustering.RowClustering(melted, grid, melted.matrix(), grid.partition[0])
    levels = hierarchy(found.grid)
    smallest, parts = levels.smallest(0), levels.parts()[:, 0]
    people = found.grid.sizes(0)
    random = np.random.default_rng(0)
    report: dict[str, object] = {
        "grid": {
            "parts": found.grid.parts,
            "people_per_group": [int(people.min()), int(people.max())],
            "groups_at_k_1000": int(parts[smallest >= 1000].max()),
            "cost": {form: costs(found, form) for form in ("published", "khiops11")},
            "thesis": {"parts": [32, 55], "people_per_group": [461, 1152], "groups_at_k_1000": 15},
        },
        "original": utility("original", truth, unseen, sizes, truth, *from_codes(truth, sizes)),
        "thesis_auc": {"columns": ["original", 461, 816, 1042, 8892], **TARGETS},
        "risk": [],
        "utility": [],
    }
    for wanted in GROUPS:
        level = int(np.flatnonzero(parts <= (wanted or parts.max()))[0])
        rows = generator(levels.at(level), found.melted.offsets).draw(len(train), random)
        shared = measure_synthetic(
            SyntheticCandidate(as_table(truth), as_table(rows).arrow, "cocluster")
        )
        report["risk"].append(  # type: ignore[attr-defined]
            {
                "groups": int(parts[level]),
                "least_people": int(smallest[level]),
                "attribution": round(shared["attribution"]["ratio"], 3),
                "absent": round(1 - shared["attribution"]["copies"], 3),
                "origin_auc": {
                    "naive_bayes": round(told_apart(truth, rows, sizes, random), 3),
                    "boosting": round(shared["likeness"]["area"]["value"], 3),
                },
            }
        )
    tables = find_automatic(train) if given.recodings else train
    for k in given.k:
        results = []
        grid = simplify(levels, smallest={"row": k})
        rows = generator(grid, found.melted.offsets).draw(len(train), random)
        results.append(utility("SYNTH", rows, unseen, sizes, truth, *from_codes(rows, sizes)))
        bare = hm.read(train.arrow, dict.fromkeys(TARGETS, "quasi"))
        for name, method in HYBRID.items():
            how, promised = coclustering.GroupingSettings(method, 0.0, 0, None), [hm.KAnonymity(k)]
            groups = coclustering.form_groups(found, k)
            division = coclustering.satisfy(bare, promised, found, groups, how)
            draft = coclustering.grouping_candidate(bare, promised, found, division, how)
            release = seal(draft)
            meaning = {
                n: {
                    label: np.isin(np.arange(len(domains[n])), values)
                    for label, values in division.published[n].meaning.items()
                }
                for n in TARGETS
            }
            weights, sets, ids = sets_of(draft.recoding.labels, meaning)
            figures = utility(
                name, drawn_leaves(sets, ids), unseen, sizes, truth, *from_sets(weights, sets)
            )
            figures["true_cells"] = round(release.statement["measured"]["true_cells"], 3)
            figures["k_achieved"] = release.verdicts[0].achieved
            results.append(figures)
        meaning = {n: label_sets(tables, n) for n in TARGETS} if given.recodings else {}
        for method in given.recodings:
            release = hm.anonymize(
                tables, hm.KAnonymity(k), method=method, time_limit=given.time_limit
            )
            weights, sets, ids = sets_of(release.to_arrow(), meaning)
            figures = utility(
                method, drawn_leaves(sets, ids), unseen, sizes, truth, *from_sets(weights, sets)
            )
            figures["loss"], figures["k_achieved"] = release.loss, release.verdicts[0].achieved
            results.append(figures)
        report["utility"].append({"k": k, "methods": results, "claims": claims(results)})  # type: ignore[attr-defined]
    report["seconds"] = round(time.perf_counter() - begin, 1)
    print(json.dumps(report, indent=1))


def claims(results: list[dict[str, object]]) -> dict[str, bool]:
    """Which of the thesis's rankings hold here."""
    mean = {r["method"]: r["hellinger_mean"] for r in results}
    last = {r["method"]: r["hellinger_joint"][6] for r in results}  # type: ignore[index]
    return {
        "SYNTH is nearer than all others, one column": mean["SYNTH"] == min(mean.values()),
        "SYNTH is nearer than all others, six columns": last["SYNTH"] == min(last.values()),
        "COC_HG is nearer than COC, one column": mean["COC_HG"] <= mean["COC"],
        "COC_HG is nearest of COC_HG, COC, MICRO, six columns": last["COC_HG"]
        == min(last[n] for n in HYBRID),
        "full-domain recoding is the farthest, one column": mean.get("optimal")
        == max(mean.values()),
    }


if __name__ == "__main__":
    main()
