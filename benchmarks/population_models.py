"""How near the estimates of population uniqueness come, on samples of known populations.

Populations of several shapes, invented and Adult's own columns, are sampled at fractions from 1 %
to 50 %; the truth stands beside the mean estimate of each model, of the one that is relied on, and
how often the bounds that hold under any model did hold. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from _adult import adult, found
from halfmask.metrics.risk.uniqueness import uniqueness
from halfmask.table.classes import classes_of
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Sizes = NDArray[np.int64]

FRACTIONS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
MODELS = ("pitman", "zayatz", "snb", "poisson", "unique")
THOUSAND = 1000  # a test of the scripts takes fewer


def populations(random: np.random.Generator) -> Iterator[tuple[str, Sizes]]:
    """Class sizes of whole populations."""
    tail = random.zipf(1.6, 60 * THOUSAND)
    yield "long tail (Zipf 1.6)", tail[tail < 3000]
    cells = random.poisson(np.exp(random.normal(-1.0, 2.0, 200 * THOUSAND)))
    yield "log-normal cells", cells[cells > 0]
    yield "shifted negative binomial", 1 + random.negative_binomial(0.8, 0.3, 80 * THOUSAND)
    yield "even, about 5 a class", 1 + random.poisson(4, 40 * THOUSAND)
    yield "even, about 20 a class", 1 + random.poisson(19, 10 * THOUSAND)
    nearly = np.ones(200 * THOUSAND, dtype=np.int64)
    nearly[: 2 * THOUSAND] = 2
    yield "nearly everybody unique", nearly
    yield "Pitman (0.5, 500)", pitman_sizes(100 * THOUSAND, 0.5, 500.0, random)
    if found():
        table = adult()
        for names in (
            table.schema.quasi,
            ("age", "education-num", "sex", "occupation"),
            ("age", "sex", "race", "marital-status"),
            ("education-num", "sex", "race", "marital-status", "native-country"),
        ):
            yield f"Adult by {', '.join(names)}", classes_of(Tuples.of(table), names).people


def pitman_sizes(people: int, alpha: float, theta: float, random: np.random.Generator) -> Sizes:
    """Class sizes that follow Pitman's formula, person by person."""
    sizes = np.zeros(people, dtype=np.int64)
    label = np.empty(people, dtype=np.int64)
    classes = 0
    for i in range(people):
        if random.random() * (i + theta) < theta + classes * alpha:
            label[i] = classes
            classes += 1
        else:
            while True:  # an earlier person's class, by its size less alpha
                label[i] = label[random.integers(i)]
                size = sizes[label[i]]
                if random.random() * size < size - alpha:
                    break
        sizes[label[i]] += 1
    return sizes[:classes]


def tried(
    sizes: Sizes, fraction: float, repeats: int, random: np.random.Generator
) -> dict[str, Any]:
    """The mean figures of several samples, and how often the bounds held."""
    people = int(sizes.sum())
    truth = float((sizes == 1).sum()) / people
    found = [
        uniqueness(
            random.multivariate_hypergeometric(sizes, int(fraction * people), method="marginals"),
            fraction,
        )
        for _ in range(repeats)
    ]
    out: dict[str, Any] = {"fraction": fraction, "truth": truth}
    for name in MODELS:
        values = [getattr(one, name).value for one in found]
        known = [value for value in values if value is not None]
        out[name] = float(np.mean(known)) if known else None
        out[f"{name}_failed"] = repeats - len(known)
    out["models"] = sorted({str(one.model) for one in found})
    out["agree"] = sum(one.agree for one in found)
    out["trusted"] = sum(one.unique.trusted for one in found)
    out["bounds"] = [float(np.mean([one.bounds[end] for one in found])) for end in (0, 1)]
    out["bounds_hold"] = sum(one.bounds[0] <= truth <= one.bounds[1] for one in found)
    return out


def main() -> None:
    """Sample every population at every fraction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    random = np.random.default_rng(0)
    result = {
        name: [tried(sizes, fraction, given.repeats, random) for fraction in FRACTIONS]
        for name, sizes in populations(random)
    }
    print(json.dumps({"repeats": given.repeats, "populations": result}, indent=2))


if __name__ == "__main__":
    main()
