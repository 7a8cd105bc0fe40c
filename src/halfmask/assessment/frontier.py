"""``hm.frontier``: risk against utility over many settings.

Recodings are searched on statistics that all settings share; divisions, perturbed and private
tables are made, measured and forgotten. Nothing is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from halfmask.anonymize.run import METHODS, RECODINGS
from halfmask.assessment.finished import divided_point, finished_point, private_point
from halfmask.assessment.points import Frontier, Point, marked
from halfmask.assessment.shared_search import SharedSearch
from halfmask.errors import ParameterError
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.metrics.sides import Published
    from halfmask.models.verdict import Model
    from halfmask.table.table import Table

SUPPRESSION = (0.0, 0.02, 0.05)


def frontier(
    table: Table,
    *models: Model | Sequence[Model],
    methods: Sequence[str] = ("optimal",),
    suppression: Sequence[float] = SUPPRESSION,
    metric: str = "loss",
    time_limit: float | None = None,
    epsilons: Sequence[float] = (),
    synthesizer: str = "auto",
    domains: Any = None,
    releases: Mapping[str, Published | Table] | None = None,
) -> Frontier:
    """Try all combinations of settings and mark those that no other beats.

    Args:
        table: rows with quasi-identifiers and hierarchies.
        models: promises; a list means alternatives, and one of each list is combined.
        methods: as for ``anonymize``: recodings (``"optimal"``, ``"local"``), divisions
            (``"mondrian"``, ``"mdav"``, ``"k-member"``, ``"personal"``), ``"cocluster"``.
        suppression: shares of rows that recodings may leave out.
        metric: what each search minimizes.
        time_limit: seconds for each search.
        epsilons: private tables with each of these budgets; ``synthesizer`` is their method and
            ``domains`` the public values of columns, as for ``synthesize``. The figures of these
            points are read from the original: they are for the controller only.
        synthesizer: the method of private tables.
        domains: their public domains.
        releases: finished tables (perturbed, synthetic) to put beside them, by name.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.frontier(people, [hm.KAnonymity(k) for k in (2, 3)], suppression=[0.0])
        Frontier(2 settings, 2 not dominated)
    """
    require_table(table)
    choices = [tuple(m) if isinstance(m, Sequence) else (m,) for m in models]
    if not choices and not releases and not epsilons:
        raise ParameterError("models", (), "at least one model, such as KAnonymity(5)")
    for method in methods:
        if method not in METHODS:
            raise ParameterError("methods", method, "one of " + ", ".join(METHODS))
    points, impossible = _promised(table, choices, methods, suppression, metric, time_limit)
    points += [private_point(table, epsilon, synthesizer, domains) for epsilon in epsilons]
    points += [finished_point(table, name, made) for name, made in (releases or {}).items()]
    return Frontier(len(table), tuple(marked(points)), tuple(impossible))


def _promised(
    table: Table,
    choices: Sequence[Sequence[Model]],
    methods: Sequence[str],
    suppression: Sequence[float],
    metric: str,
    time_limit: float | None,
) -> tuple[list[Point], list[str]]:
    """One point per method, share and choice of models; and the names of what cannot be."""
    points: list[Point] = []
    impossible: list[str] = []
    shared: SharedSearch | None = None
    for method in methods if choices else ():
        recodes = method in RECODINGS
        for share, chosen in product(suppression if recodes else (0.0,), product(*choices)):
            name = _name(method, share, chosen)
            point: Point | None
            if recodes:
                if shared is None:
                    everything = [model for choice in choices for model in choice]
                    shared = SharedSearch(table, everything, metric)
                point = shared.point(name, method, share, chosen, time_limit)
            else:
                point = divided_point(table, name, method, chosen, time_limit)
            if point is None:
                impossible.append(name)
            else:
                points.append(point)
    return points, impossible


def _name(method: str, share: float, models: Sequence[Model]) -> str:
    said = []
    for model in models:
        facts = model.to_dict()
        numbers = [
            f"{key} = {value}"
            for key, value in facts.items()
            if key in ("k", "l", "t", "alpha", "beta", "delta", "limit", "lower", "upper")
        ]
        said.append(f"{facts['model']} ({', '.join(numbers)})" if numbers else str(facts["model"]))
    left = f", up to {share:.0%} suppressed" if method in RECODINGS else ""
    return f"{', '.join(said)}; {method}{left}"
