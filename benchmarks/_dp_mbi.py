"""AIM and MST by their printed rules on private-pgm's own inference; for evaluation only.

Sources: McKenna, Miklau, Sheldon, "Winning the NIST contest", 2021 (MST: a third of the budget each
for columns, choices and pairs; values below three deviations are pooled); McKenna, Mullins,
Sheldon, Miklau, "AIM", 2022, with the constants of private-pgm: 16 rounds for each column, a tenth
of the budget for choices, 80 MB of model, tables of two columns with at most 10,000 cells.
The package of private-pgm (mbi 2.0.0) has the inference and the drawing, not the mechanisms. Noise
is NumPy's. Measurements of the same columns are joined by their precision, which leaves the loss as
it is and spares mbi a compilation; its inference ends by its own rule (``tol``), unless ``full``.
"""

from __future__ import annotations

import os
from itertools import combinations
from math import exp, log, log1p, pi, sqrt
from typing import Any

import numpy as np

CELLS, MEGABYTES, ROUNDS = 10_000, 80, 16
STEPS, ENOUGH = 1000, 1e-4


def rho_of(epsilon: float, delta: float) -> float:
    """The largest rho that is (epsilon, delta)-private (Canonne, Kamath, Steinke, 2020)."""
    orders = np.r_[1.0001:200:4000j, 201:4000:2000j]
    low, high = 0.0, epsilon
    for _ in range(40):
        rho = (low + high) / 2
        least = min((a - 1) * (a * rho - epsilon) + a * log1p(-1 / a) - log(a - 1) for a in orders)
        low, high = (rho, high) if exp(min(least, 0)) <= delta else (low, rho)
    return low


class Measurements:
    """What was measured so far, and the model of it."""

    def __init__(self, data: Any, how: dict[str, Any]) -> None:
        self.data, self.enough = data, None if how["full"] else ENOUGH
        self.random = np.random.default_rng()
        self.held: dict[tuple[str, ...], Any] = {}
        self.model: Any = None
        self.rows: float | None = None  # mbi's own estimate

    def counts(self, columns: tuple[str, ...]) -> np.ndarray:
        """As they are."""
        return np.asarray(self.data.project(columns).datavector())

    def guess(self, columns: tuple[str, ...]) -> np.ndarray:
        """As the model has them."""
        return np.asarray(self.model.project(columns).datavector())

    def add(self, columns: tuple[str, ...], sigma: float) -> None:
        """Measure; by precision with what was measured of the same columns before."""
        from mbi import LinearMeasurement

        noisy = self.counts(columns)
        noisy = noisy + self.random.normal(0, sigma, noisy.shape)
        if columns in self.held:
            old = self.held[columns]
            share = sigma**2 / (sigma**2 + old.stddev**2)
            noisy = share * np.asarray(old.noisy_measurement) + (1 - share) * noisy
            sigma = sqrt(share) * old.stddev
        self.held[columns] = LinearMeasurement(noisy, columns, sigma)

    def fit(self, steps: int = STEPS) -> None:
        """Private-pgm's mirror descent from where the last one ended."""
        from mbi.estimation import MirrorDescent

        self.model = MirrorDescent().estimate(
            self.data.domain,
            list(self.held.values()),
            known_total=self.rows,
            iters=steps,
            warm_start=self.model,
            tol=self.enough,
        )

    def choose(self, scores: list[float], epsilon: float, reach: float) -> int:
        """By the exponential mechanism, with Gumbel noise."""
        noise = self.random.gumbel(size=len(scores))
        return int((0.5 * epsilon / reach * np.array(scores) + noise).argmax())


def mst(data: Any, rho: float, how: dict[str, Any]) -> Any:
    """A spanning tree of pairs."""
    from mbi.estimation import minimum_variance_unbiased_total

    seen, names = Measurements(data, how), list(data.domain)
    sigma = sqrt(1.5 * len(names) / rho)
    for name in names:
        seen.add((name,), sigma)
    seen.rows = minimum_variance_unbiased_total(list(seen.held.values()))  # not of pooled values
    pooled = {}
    for (name,), one in seen.held.items():
        large = one.noisy_measurement >= 3 * sigma
        pooled[name] = np.where(large, np.cumsum(large) - 1, large.sum())
    seen.held = {c: one.compress(pooled, data.domain) for c, one in seen.held.items()}
    seen.data = data.compress(pooled)
    seen.fit()
    open_pairs = {p: float(np.abs(seen.counts(p) - seen.guess(p)).sum())
                  for p in combinations(names, 2)}  # fmt: skip
    parts, tree = {name: name for name in names}, []
    for _ in names[1:]:
        open_pairs = {p: far for p, far in open_pairs.items() if parts[p[0]] != parts[p[1]]}
        epsilon = sqrt(8 * rho / 3 / (len(names) - 1))
        tree.append(list(open_pairs)[seen.choose(list(open_pairs.values()), epsilon, 1)])
        gone, stays = parts[tree[-1][1]], parts[tree[-1][0]]
        parts = {name: stays if part == gone else part for name, part in parts.items()}
    for pair in tree:
        seen.add(pair, sqrt(1.5 * len(tree) / rho))
    seen.fit(5 * STEPS)
    return seen.model.synthetic_data(data.records).decompress(pooled)


def aim(data: Any, rho: float, how: dict[str, Any]) -> Any:
    """Pairs chosen where the model is worst, with less noise where it has nothing to learn."""
    from mbi.junction_tree import hypothetical_model_size

    domain, seen, names = data.domain, Measurements(data, how), list(data.domain)
    pairs = [pair for pair in combinations(names, 2) if domain.size(pair) <= CELLS]
    sets: list[tuple[str, ...]] = [*((name,) for name in names), *pairs]
    weights = {one: sum(len(set(one) & set(pair)) for pair in pairs) for one in sets}
    exact = {one: seen.counts(one) for one in sets}
    sigma, choice = sqrt(ROUNDS * len(names) / (1.8 * rho)), sqrt(0.8 * rho / ROUNDS / len(names))
    for name in names:
        seen.add((name,), sigma)
    used, last = len(names) * 0.5 / sigma**2, False
    seen.fit()
    while not last:
        if rho - used < 2 * (0.5 / sigma**2 + choice**2 / 8):
            left, last = rho - used, True
            sigma, choice = sqrt(1 / (1.8 * left)), sqrt(0.8 * left)
        used += choice**2 / 8 + 0.5 / sigma**2
        most, held = MEGABYTES * used / rho, list(seen.held)
        small = [one for one in sets if one in seen.held
                 or hypothetical_model_size(domain, [*held, one]) <= most]  # fmt: skip
        guesses = {one: seen.guess(one) for one in small}
        scores = [
            weights[one] * (float(np.abs(exact[one] - guesses[one]).sum())
                            - sqrt(2 / pi) * sigma * exact[one].size)
            for one in small
        ]  # fmt: skip
        one = small[seen.choose(scores, choice, max(weights[one] for one in small))]
        seen.add(one, sigma)
        seen.fit()
        learned = np.abs(seen.guess(one) - guesses[one]).sum()
        if learned <= sqrt(2 / pi) * sigma * exact[one].size:
            sigma, choice = sigma / 2, choice * 2
    return seen.model.synthetic_data(data.records)


def of_mbi(method: str, codes: dict[str, np.ndarray], sizes: dict[str, int], how: dict) -> Any:
    """Rows of one of the two, as codes per column."""
    # Most of its time is the compiler's: without its optimizer it takes two thirds.
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    import jax

    jax.config.update("jax_enable_x64", True)  # noqa: FBT003 - as mbi asks for
    jax.config.update("jax_enable_compilation_cache", False)  # noqa: FBT003
    from mbi import Dataset, Domain

    data = Dataset(codes, Domain(list(sizes), list(sizes.values())))
    run = {"mst": mst, "aim": aim}[method]
    return run(data, rho_of(how["epsilon"], how["delta"]), how).data
