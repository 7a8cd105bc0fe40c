from __future__ import annotations

import re
from fractions import Fraction
from math import exp
from pathlib import Path

import numpy as np
import pytest
from noise import gaussian_pmf, laplace_pmf, misfit, repeatable

import halfmask
from halfmask.dp.sampling import Sampler, gaussian_grid, laplace_grid
from halfmask.errors import ParameterError

SOURCE = Path(halfmask.__file__).parent


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(77, 8)])
def test_discrete_laplace_has_its_scale_and_no_other(scale: Fraction) -> None:
    draws = repeatable(1).discrete_laplace(scale, 200_000)
    reach = int(40 * scale) + 5
    assert abs(misfit(draws, laplace_pmf(float(scale), reach))) < 6
    assert misfit(draws, laplace_pmf(float(scale) * 1.3, reach)) > 6
    assert misfit(draws, laplace_pmf(float(scale) / 1.3, reach)) > 6


@pytest.mark.parametrize(
    "variance", [Fraction(1, 3), Fraction(1), Fraction(400), Fraction(12345, 64)]
)
def test_discrete_gaussian_has_its_variance_and_no_other(variance: Fraction) -> None:
    draws = repeatable(2).discrete_gaussian(variance, 200_000)
    reach = int(12 * float(variance) ** 0.5) + 5
    assert abs(misfit(draws, gaussian_pmf(float(variance), reach))) < 6
    assert misfit(draws, gaussian_pmf(float(variance) * 1.69, reach)) > 6
    assert misfit(draws, gaussian_pmf(float(variance) / 1.69, reach)) > 6


def test_large_variance_uses_the_small_form_of_its_fraction() -> None:
    variance = gaussian_grid(Fraction(10**10))
    draws = repeatable(3).discrete_gaussian(variance, 100_000)
    assert draws.std() == pytest.approx(float(variance) ** 0.5, rel=0.02)


def test_numbers_beyond_a_word_are_drawn_the_same_way() -> None:
    awkward = Fraction(3**40, 2**50)  # about 10,798; its arithmetic does not fit 64 bits
    draws = repeatable(4).discrete_gaussian(awkward, 4000)
    assert draws.std() == pytest.approx(float(awkward) ** 0.5, rel=0.06)


def test_bernoulli_exp_at_every_size() -> None:
    draws = repeatable(5).bernoulli_exp(np.repeat(np.array([0, 1, 5, 12]), 100_000), 4)
    shares = draws.reshape(4, -1).mean(axis=1)
    assert shares[0] == 1.0
    for share, gamma in zip(shares[1:], (0.25, 1.25, 3.0), strict=True):
        assert share == pytest.approx(exp(-gamma), abs=0.006)


def test_geometric_has_its_rate() -> None:
    draws = repeatable(6).geometric(Fraction(3, 2), 200_000)
    a = exp(-1.5)
    assert abs(misfit(draws, {x: (1 - a) * a**x for x in range(40)})) < 6
    b = exp(-1.5 * 1.3)
    assert misfit(draws, {x: (1 - b) * b**x for x in range(40)}) > 6


def test_uniform_numbers_reject_the_unfair_end() -> None:
    # The top words would favor small remainders; a source that starts there must be passed over.
    words = iter([b"\xff" * 8, (5).to_bytes(8, "little")])
    assert Sampler(lambda _size: next(words)).below(7, 1).tolist() == [5]


def test_choice_follows_the_scores() -> None:
    sampler = repeatable(7)
    picks = [sampler.choose(np.array([0, 1, 2]), Fraction(1, 2)) for _ in range(1500)]
    weights = np.exp([0, 0.5, 1.0])
    assert np.bincount(picks) / 1500 == pytest.approx(weights / weights.sum(), abs=0.03)


def test_grids_only_round_up() -> None:
    for value in (Fraction(1, 7), Fraction(10**9, 7), Fraction(3**30, 2**20), Fraction(2**26 + 1)):
        assert value <= gaussian_grid(value) <= value * Fraction(1001, 1000) + Fraction(1, 1000)
        assert value <= laplace_grid(value) <= value + 1


@pytest.mark.parametrize("call", ["discrete_laplace", "discrete_gaussian"])
def test_impossible_scales_are_refused(call: str) -> None:
    with pytest.raises(ParameterError):
        getattr(Sampler(), call)(Fraction(0), 3)


def test_only_the_systems_source_counts_as_secure() -> None:
    assert Sampler().secure
    assert not repeatable(1).secure


def test_equal_to_opendp_laplace() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="the extra [dp] is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    theirs = np.array(dp.m.make_laplace(*space, scale=4.0)([0] * 20_000))
    ours = Sampler().discrete_laplace(Fraction(4), 20_000)
    assert _same(ours, theirs)
    assert not _same(Sampler().discrete_laplace(Fraction(26, 5), 20_000), theirs)


def test_equal_to_opendp_gaussian() -> None:
    dp = pytest.importorskip("opendp.prelude", reason="the extra [dp] is not installed")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    theirs = np.array(dp.m.make_gaussian(*space, scale=5.0)([0] * 20_000))
    ours = Sampler().discrete_gaussian(Fraction(25), 20_000)
    assert _same(ours, theirs)
    assert not _same(Sampler().discrete_gaussian(Fraction(169, 4), 20_000), theirs)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """Two-sample chi-square, six standard deviations wide."""
    edges = np.unique(np.quantile(b, np.linspace(0, 1, 21)[1:-1]))
    x, y = (np.bincount(np.searchsorted(edges, s), minlength=len(edges) + 1) for s in (a, b))
    kept = x + y > 0
    statistic = ((x - y)[kept] ** 2 / (x + y)[kept]).sum()
    free = kept.sum() - 1
    return bool((statistic - free) / np.sqrt(2 * free) < 6)


def test_no_other_module_draws_noise() -> None:
    """No seed, no float: the folder of differential privacy has no other source of chance."""
    forbidden = re.compile(r"np\.random\.(?!Generator)|\brandom\.(gauss|random|seed)|default_rng")
    for path in [*(SOURCE / "dp").rglob("*.py")]:
        assert not forbidden.search(path.read_text(encoding="utf-8")), path.name


@pytest.mark.parametrize("folder", ["protocol", "query", "release", "synthesize", "tabulate"])
def test_what_promises_privacy_draws_no_noise_of_its_own(folder: str) -> None:
    drawn = re.compile(r"\.(laplace|normal|standard_normal|geometric|gumbel|zipf)\(")
    invents = SOURCE / "protocol" / "simulate.py"  # people of a simulation, who promise nothing
    for path in {*(SOURCE / folder).rglob("*.py")} - {invents}:
        assert not drawn.search(path.read_text(encoding="utf-8")), path.name


def test_no_public_function_takes_a_seed_for_noise() -> None:
    import inspect

    for module in (
        "dp.views",
        "dp.accountant",
        "dp.figures",
        "synthesize.run",
        "synthesize.private",
        "query.private.answer",
        "query.run",
        "dp.personal",
    ):
        loaded = __import__(f"halfmask.{module}", fromlist=["x"])
        for name, thing in vars(loaded).items():
            if inspect.isfunction(thing) and not name.startswith("_"):
                assert "seed" not in inspect.signature(thing).parameters, name
