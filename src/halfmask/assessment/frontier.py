"""``hm.frontier``: risk against utility over many settings.

Recodings are searched on statistics that all settings share; divisions, perturbed and private
tables are made, measured and forgotten. Nothing is released.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

from halfmask.assessment.dominance import marked, require_axes, utility_of
from halfmask.assessment.drawn import private_point
from halfmask.assessment.figures import Measure
from halfmask.assessment.finished import Effort, divided_point, given_point
from halfmask.assessment.frontier_source import (
    by_value,
    columns_read,
    require,
    require_no_rows,
    require_tables,
)
from halfmask.assessment.points import Frontier, Point
from halfmask.assessment.settings import chains, require_effort
from halfmask.assessment.shared_search import SharedSearch
from halfmask.engines.counted import counted
from halfmask.engines.source import Source
from halfmask.errors import ParameterError
from halfmask.models.exact import require_whole
from halfmask.models.needs import demanded, prepare
from halfmask.release.demands import statement, told_first
from halfmask.table.classes import classes_of
from halfmask.table.hierarchies.auto import settled
from halfmask.table.hierarchies.check import check_hierarchies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from halfmask.assessment.settings import Setting
    from halfmask.engines.counted import Counted
    from halfmask.metrics.sides import Published
    from halfmask.models.verdict import Model
    from halfmask.release.demands import Choice
    from halfmask.table.table import Table

    Progress = Callable[[int, int], None]

SUPPRESSION = (0.0, 0.02, 0.05)
DRAWS = 5


def frontier(
    table: Table | str | PathLike[str],
    *models: Model | Sequence[Model],
    methods: Sequence[str] = ("optimal",),
    suppression: Sequence[float] = SUPPRESSION,
    metric: str = "loss",
    risk: str = "mean",
    utility: str | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    epsilons: Sequence[float] = (),
    synthesizer: str = "auto",
    domains: Any = None,
    draws: int = DRAWS,
    releases: Mapping[str, Published | Table] | None = None,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    policies: object = None,
    demands: Choice = "keep",
    progress: Progress | None = None,
) -> Frontier:
    """Try all combinations of settings and mark those that none dominates.

    Every setting keeps what people demand for themselves beside its models.

    Args:
        table: rows with quasi-identifiers and hierarchies; or, for recodings, a file or the address
            of a database, as for ``assess``.
        models: promises; a list means alternatives, and one of each list is combined.
        methods: as for ``anonymize``: recodings (``"optimal"``, ``"local"``), divisions
            (``"mondrian"``, ``"mdav"``, ``"k-member"``, ``"personal"``), ``"cocluster"``.
        suppression: shares of rows that recodings may leave out.
        metric: what each recoding minimizes.
        risk: the risk by which settings are compared: ``"mean"``, ``"highest"`` or ``"inference"``.
        utility: what is lost by which they are compared: ``"loss"`` or ``"distance"``; None: loss
            where it is known of all, else distance.
        seed: for methods that draw at random.
        time_limit: seconds for each search.
        epsilons: private tables with each of these budgets; ``synthesizer`` is their method and
            ``domains`` the public values of columns, as for ``synthesize``. The figures of these
            points are read from the original: they are for the controller only.
        synthesizer: the method of private tables.
        domains: their public domains.
        draws: how many private tables are drawn for each budget, at least 2; figures are means.
        releases: finished tables (perturbed, synthetic) to put beside them, by name.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a file within ``memory_limit``; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``.
        delimiter: what stands between the fields of a text file; None: detected.
        encoding: the character encoding of a text file; None: detected.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside, which a note says first.
        progress: called with how many settings are done, and of how many.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.frontier(people, [hm.KAnonymity(k) for k in (2, 3)], suppression=[0.0])
        Frontier(2 settings, 2 different results, 2 not dominated)
    """
    if not models and not releases and not epsilons:
        raise ParameterError("models", (), "at least one model, such as KAnonymity(5)")
    require_axes(risk, utility)
    require_effort(seed, time_limit)
    require_tables(epsilons, releases)
    require_whole("draws", draws, 2)
    wanted = chains(models, methods, suppression)
    promised = [model for chain in wanted for setting in chain for model in setting.models]
    source = Source(table, schema, engine, source_table, memory_limit, delimiter, encoding)
    source = source.demanding(policies)
    if source.stays:
        require_no_rows(wanted, rows_needed=bool(epsilons or releases))
    held = counted(source, lambda declared: columns_read(declared, promised))
    require(held, risk)
    held = by_value(held)
    own = statement(held.table, demands, held.counts)
    if demands == "keep":
        wanted = [
            [replace(one, models=demanded(held.table, one.models)) for one in chain]
            for chain in wanted
        ]
    done = _Done(sum(map(len, wanted)) + len(epsilons) + len(releases or ()), progress)
    _promise(held, wanted, metric, Effort(seed, time_limit, demands), done)
    for epsilon in epsilons:
        done.add(private_point(held.table, epsilon, synthesizer, domains, draws))
    for name, made in (releases or {}).items():
        done.add(given_point(held.table, name, made))
    compared = utility or utility_of(done.points)
    return Frontier(
        held.rows,
        tuple(marked(done.points, risk, compared)),
        tuple(done.impossible),
        tuple(done.undecided),
        risk,
        compared,
        told_first(own, _notes(held, done.points, compared)),
    )


class _Done:
    """The points so far; tells who waits how far it is."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.points: list[Point] = []
        self.impossible: list[str] = []
        self.undecided: list[str] = []
        self._total, self._progress, self._count = total, progress, 0
        if progress is not None:
            progress(0, total)

    def add(self, point: Point | None, setting: Setting | None = None, gap: float = 0.0) -> None:
        """Take note of a point, or of a setting without one."""
        if point is not None:
            self.points.append(point)
        elif setting is not None:
            (self.undecided if gap == inf else self.impossible).append(setting.name)
        self._count += 1
        if self._progress is not None:
            self._progress(self._count, self._total)


def _promise(
    held: Counted,
    wanted: Sequence[Sequence[Setting]],
    metric: str,
    effort: Effort,
    done: _Done,
) -> None:
    """Search every setting that promises something."""
    if not wanted:
        return
    every = list({id(m): m for chain in wanted for one in chain for m in one.models}.values())
    ready = prepare(settled(held.table), every)
    check_hierarchies(ready)
    shared: SharedSearch | None = None
    if any(chain[0].recodes for chain in wanted):
        shared = SharedSearch(ready, every, metric, held.counts)
    measure = shared.measure if shared is not None else _measure(ready)
    for chain in wanted:
        if shared is not None and chain[0].recodes:
            for setting, figures, gap in shared.run(chain, effort.time_limit):
                point = None if figures is None else Point.of(setting, figures, gap)
                done.add(point, setting, gap or 0.0)
        else:
            for setting in chain:
                done.add(divided_point(measure, setting, effort), setting)


def _measure(table: Table) -> Measure:
    tuples = classes_of(table, table.schema.quasi, columns=table.schema.sensitive)
    return Measure(table, tuples)


def _notes(held: Counted, points: Sequence[Point], utility: str) -> tuple[str, ...]:
    notes = [held.note] if held.note else []
    lacking = sum(point.loss is None for point in points)
    if lacking and utility == "distance":
        notes.append(
            f"The loss of {lacking} settings is not known, because their rows stand for nobody: "
            "all are compared by distance."
        )
    elif lacking:
        notes.append(f"{lacking} settings without a known loss are shown and not compared.")
    if any(point.draws is not None for point in points):
        notes.append(
            "Private tables were drawn several times: their figures are means with 95 % intervals. "
            "They are compared at the upper ends, so that a lucky draw does not count as better."
        )
    if any(point.gap for point in points):
        notes.append(
            "The search for some settings stopped at its time limit: they may lose more than "
            "they need."
        )
    return tuple(notes)
