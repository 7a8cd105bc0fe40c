"""``hm.frontier``: risk against utility over many settings.

Recodings are searched on statistics that all settings share; divisions, perturbed and private
tables are made, measured and forgotten. Nothing is released.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from halfmask.anonymize import local, optimal
from halfmask.anonymize.auto import AUTO, NOTHING, Clock
from halfmask.anonymize.groupings import SharedGroupings
from halfmask.anonymize.node_bounds import LatticeBounds
from halfmask.anonymize.partition.run import DIVISIONS, Settings, divide_rows
from halfmask.anonymize.problem import RecodingProblem
from halfmask.anonymize.run import HIERARCHIES, PERTURBING, anonymize
from halfmask.assessment.frontier_points import (
    FigureReader,
    Frontier,
    Point,
    PointFigures,
    keep_least_lost,
    labels_of_level,
    mark_best,
    utility_of,
)
from halfmask.assessment.frontier_settings import (
    FrontierOptions,
    FrontierSettings,
    at_least,
    chains,
    columns_read,
    needs_rows,
    require_risk,
    require_tables,
    sort_tuples,
    spread_auto,
)
from halfmask.engines.counting.tuples import add_policies, count_tuples
from halfmask.engines.read import as_table
from halfmask.errors import UnsatisfiableError
from halfmask.metrics.cost import metric_named
from halfmask.metrics.estimate import mean_estimate
from halfmask.metrics.sides import ReleasedTuples, finding_chance, sides, tightest_class
from halfmask.metrics.utility.distributions import column_distance
from halfmask.metrics.utility.tables import class_utility
from halfmask.metrics.weighted import pairs
from halfmask.models.requirements import (
    leave_out_unmet,
    prepare,
    refuse_contradiction,
    require_models,
    statistics,
    with_demanded_models,
)
from halfmask.release.demands import order_notes, state_demands
from halfmask.release.partition import RowPartition, table_loss
from halfmask.release.record import recorded_blanks
from halfmask.release.stored_entries import read_columns
from halfmask.table.classes import classes_of, distinct_classes
from halfmask.table.hierarchies.builders import find_automatic
from halfmask.table.hierarchies.tree import check_hierarchies
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.anonymize.groupings import Groupings
    from halfmask.anonymize.optimal import SearchOutcome
    from halfmask.anonymize.problem import Solution
    from halfmask.assessment.frontier_settings import Setting
    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.estimate import Estimate
    from halfmask.metrics.sides import ReleasedRows, Sides
    from halfmask.models.verdict import Model
    from halfmask.release.demands import DemandsChoice, DemandsStatement
    from halfmask.table.classes import Classes

    Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Effort:
    """How every setting is tried.

    Attributes:
        seed: for methods that draw at random.
        clock: the time limit for all of them together.
        demands: whether people's own demands are kept; the models of the settings hold them then.
    """

    seed: int = 0
    clock: Clock | None = None
    demands: DemandsChoice = "keep"


def divided_point(
    measure: FigureReader, setting: Setting, effort: Effort, time_limit: float | None = None
) -> Point | None:
    """Divide the rows into classes; None where nothing satisfies the models. Nothing is sealed."""
    table = measure.table
    try:
        if setting.method in PERTURBING:
            made = anonymize(
                table,
                *setting.models,
                method=setting.method,
                suppression=setting.suppression,
                seed=effort.seed,
                time_limit=time_limit,
                demands=effort.demands,
            )
            return Point.of(setting, finished_figures(table, made), made.gap, effort.seed)
        own = DIVISIONS[setting.method].metrics[0]
        how = Settings(setting.method, own, seed=effort.seed, time_limit=time_limit)
        found = divide_rows(table, setting.models, how)
    except UnsatisfiableError:
        return None
    assert isinstance(found.recoding, RowPartition)  # noqa: S101 - divisions make nothing else
    figures = measure.of_classes(found.recoding, found.step)
    return Point.of(setting, figures, found.gap, effort.seed)


def given_point(table: Table, name: str, release: ReleasedRows | Table) -> Point:
    """A finished table as a point."""
    figures = finished_figures(table, release)
    stated = {key: getattr(figures, key) for key in figures.__slots__}
    return Point(name=name, method="given", suppression=0.0, models=(), **stated)


def finished_figures(
    table: Table, release: ReleasedRows | Table, *, made_up: bool | None = None
) -> PointFigures:
    """The figures of released rows.

    Where some people fit no released row although nobody was left out, rows are made up or
    perturbed: then people are looked for among the rows that fit their original values, guesses
    are held against their true values, and loss is not known.
    """
    blank = recorded_blanks(release.schema) if isinstance(release, Table) else None
    both = sides(table, release, blank=blank)
    released = ReleasedTuples(both.quasi)
    chance = finding_chance(both.quasi)
    left = 0.0 if made_up else max(0.0, 1 - both.after / both.before)
    if made_up is None:
        made_up = float((chance == 0).mean()) > left + 1e-9
    distance = [column_distance(column, both.after).hellinger for column in both.quasi]
    gains = [_gain(both, column, released, made_up=made_up) for column in both.sensitive]
    known = [gain for gain in gains if gain is not None]
    return PointFigures(
        risk=float(chance.mean()) if made_up else len(released) / both.before,
        highest_risk=float(chance.max()) if made_up else 1 / float(released.rows.min()),
        inference=max(known) if known else None,
        loss=None if made_up else _loss(both),
        distance=float(np.mean(distance)),
        suppressed=left,
        classes=len(released),
    )


def _loss(both: Sides) -> float | None:
    columns = class_utility(both).columns
    losses = {column.name: column.loss for column in columns if column.loss is not None}
    if len(losses) < len(columns):
        return None
    weights = {name: both.original.schema.columns[name].weight for name in losses}
    return table_loss(losses, weights)


def _gain(
    both: Sides, column: SharedColumn, released: ReleasedTuples, *, made_up: bool
) -> float | None:
    """How much better than guessing one sensitive column can be told; None: all are equal."""
    owner, labels, counts = pairs(
        released.ids, column.after, column.labels, len(released), column.after_counts
    )
    totals = np.bincount(column.after, minlength=column.labels)
    if made_up:
        return _true_gain(both, column, _likeliest(owner, labels, counts, len(released)), totals)
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    right, prior = int(np.maximum.reduceat(counts, starts).sum()), int(totals.max())
    return None if prior == both.after else (right - prior) / (both.after - prior)


def _likeliest(
    owner: NDArray[np.int64], labels: NDArray[np.int64], counts: NDArray[np.int64], classes: int
) -> NDArray[np.int64]:
    """The most frequent label of each class, the first of several."""
    order = np.lexsort((labels, -counts, owner))
    first = np.searchsorted(owner[order], np.arange(classes))
    return np.asarray(labels[order][first])


def _true_gain(
    both: Sides,
    column: SharedColumn,
    likeliest: NDArray[np.int64],
    totals: NDArray[np.int64],
) -> float | None:
    """The same, held against people's true values; who fits no row is guessed as everybody."""
    home = tightest_class(both.quasi)
    usual = int(totals.argmax())
    guess = np.where(home >= 0, likeliest[home], usual)
    right, prior = _covers(column, guess), _covers(column, np.full(len(home), usual))
    if prior == len(home):
        return None
    return (right - prior) / (len(home) - prior)


def _covers(column: SharedColumn, labels: NDArray[np.int64]) -> int:
    """How many original rows hold a value that is under the label guessed for them."""
    return int(column.covers(labels, column.before).sum())


_DRAWN = ("risk", "highest_risk", "inference", "distance")


def private_point(table: Table, epsilon: float, method: str, domains: Any, draws: int) -> Point:
    """The means over ``draws`` private tables, each with the whole of ``epsilon``.

    One draw may be lucky. The figures of such a point are the means over its draws, with their
    intervals. All of them are read from the original.
    """
    from halfmask.synthesize.run import synthesize

    used, seen = method, []
    for _ in range(draws):
        made: Any = synthesize(table, method, epsilon=epsilon, domains=domains)
        used = made.method
        seen.append(finished_figures(table, made, made_up=True))
    means = {name: _mean(seen, name) for name in _DRAWN}
    return Point(
        name=f"epsilon = {epsilon:g}; {used}",
        method=used,
        suppression=0.0,
        models=(),
        risk=_value(means["risk"]),
        highest_risk=_value(means["highest_risk"]),
        inference=means["inference"].value,
        loss=None,
        distance=_value(means["distance"]),
        suppressed=0.0,
        classes=round(sum(one.classes for one in seen) / draws),
        epsilon=float(epsilon),
        draws=draws,
        intervals={name: _interval(name, one) for name, one in means.items() if one.n > 1},
    )


def _mean(seen: Sequence[PointFigures], name: str) -> Estimate:
    values = [getattr(one, name) for one in seen]
    return mean_estimate([value for value in values if value is not None])


def _value(one: Estimate) -> float:
    assert one.value is not None  # noqa: S101 - every draw has this figure
    return one.value


def _interval(name: str, one: Estimate) -> tuple[float, float]:
    """The interval of a figure up to 1; a guess may be worse than none, others are not below 0."""
    assert one.low is not None  # noqa: S101 - only such are asked for
    assert one.high is not None  # noqa: S101
    return one.low if name == "inference" else max(0.0, one.low), min(1.0, one.high)


_STARTS = 4  # optima of earlier settings that a search begins at


class SharedSearch:
    """What all settings have in common: the table's distinct tuples and groupings of them.

    The rows are grouped once; every setting is then searched on the same distinct tuples, groupings
    and costs, goes on from what weaker settings have ruled out, and begins at what they have found.
    """

    def __init__(
        self,
        rows: Tuples,
        models: Sequence[Model],
        metric: str,
    ) -> None:
        self.rows, self.table = rows, rows.table
        table = rows.table
        tuples, _ = statistics(rows, models)
        quasi = table.schema.quasi
        hierarchies = [table.hierarchy(name) for name in quasi]
        weights = [table.schema.columns[name].weight for name in quasi]
        chosen = metric_named(metric)
        self._problem = RecodingProblem(tuples, hierarchies, models, chosen, weights=weights)
        self._problem.groupings = SharedGroupings(tuples, hierarchies)
        self._published = self._with_sensitive(tuples)
        self.measure = FigureReader(table, self._published.tuples)
        self._optima: list[tuple[int, ...]] = []
        self._ruled_out: list[tuple[Setting, NDArray[np.uint8]]] = []
        self._figures: dict[tuple[tuple[int, ...], bytes], PointFigures] = {}

    def run(
        self, chain: Sequence[Setting], share: Callable[[], float | None]
    ) -> Iterator[tuple[Setting, PointFigures | None, float | None]]:
        """Per setting of a chain its figures and gap; no figures where nothing satisfies it.

        An infinite gap says that time was up before anything was found; ``share`` gives the seconds
        for the next search, 0 where none is begun.
        """
        bounds: LatticeBounds | None = None
        previous: Setting | None = None
        failed = False
        for setting in chain:
            stronger = previous is not None and at_least(setting, previous)
            # What fails a weaker setting fails this one too: a chain goes from weak to strong.
            if failed and stronger:
                yield setting, None, 0.0
                continue
            time_limit = share()
            if time_limit == 0:
                yield setting, None, inf
                continue
            problem = self._problem.under(setting.models, setting.suppression)
            if setting.method == "local":
                solution = local.find_steps(problem, seed=None, time_limit=time_limit)
                figures = None if solution.steps is None else self._measure_list(solution)
                gap = solution.gap
            else:
                if optimal.listable(problem):
                    bounds = self._learned(setting, bounds if stronger else LatticeBounds(problem))
                found = optimal.search_lattice(
                    problem,
                    time_limit=time_limit,
                    bounds=bounds,
                    starts=self._optima[-_STARTS:],
                )
                figures, gap = self._read(found), found.gap
                if bounds is not None:
                    self._ruled_out.append((setting, bounds.ruled_out))
            failed, previous = figures is None and gap == 0.0, setting
            yield setting, figures, gap

    def _learned(self, setting: Setting, bounds: LatticeBounds | None) -> LatticeBounds:
        """Bounds with all that weaker settings, in whatever chain, have ruled out."""
        assert bounds is not None  # noqa: S101 - a chain keeps its bounds
        weaker = [nodes for other, nodes in self._ruled_out if at_least(setting, other)]
        if weaker:
            bounds.rule_out_too(np.bitwise_or.reduce(weaker))
        return bounds

    def _with_sensitive(self, tuples: Classes) -> Groupings:
        """Groupings that also carry the sensitive columns that no model reads."""
        sensitive = self.table.schema.sensitive
        lacking = [name for name in sensitive if name not in tuples.histograms]
        if not lacking:
            return self._problem.groupings
        populations = [m.population for m in self._problem.models if m.population is not None]
        more, _ = distinct_classes(
            self.rows,
            self.table.schema.quasi,
            columns=sensitive,
            population=populations[0] if populations else None,
        )
        return SharedGroupings(more, self._problem.hierarchies)

    def _read(self, found: SearchOutcome) -> PointFigures | None:
        """The figures of an optimum; the same classes are measured once."""
        best = found.best
        if best is None:
            return None
        if best.levels in self._optima:
            self._optima.remove(best.levels)
        self._optima.append(best.levels)
        key = (best.levels, np.packbits(best.kept).tobytes())
        if key not in self._figures:
            # Classes are numbered by first occurrence, whatever else they carry.
            classes = self._published.at(best.levels)
            self._figures[key] = self.measure.of_levels([(best.levels, classes.select(best.kept))])
        return self._figures[key]

    def _measure_list(self, solution: Solution) -> PointFigures:
        """The figures of a decision list."""
        assert solution.steps is not None  # noqa: S101 - only asked of solutions
        parts = []
        tuples, hierarchies = self._published.tuples, self._problem.hierarchies
        for step, levels in enumerate(solution.steps):
            mine = tuples.select((solution.tuple_step == step) & (tuples.rows > 0))
            maps = [labels_of_level(h, level) for h, level in zip(hierarchies, levels, strict=True)]
            parts.append((levels, mine.coarsen(range(len(maps)), maps)))
        return self.measure.of_levels(parts)


def frontier(
    table: Table | str | PathLike[str],
    *models: Model | Sequence[Model],
    releases: Mapping[str, ReleasedRows | Table] | None = None,
    policies: object = None,
    demands: DemandsChoice = "keep",
    progress: Progress | None = None,
    **settings: Unpack[FrontierSettings],
) -> Frontier:
    """Try all combinations of settings and mark those that none dominates.

    Every setting keeps what people demand for themselves beside its models.

    Args:
        table: rows with quasi-identifiers and hierarchies, or the name of a file. Where rows stay
            elsewhere, recodings are tried on what an engine counts of them; what needs the rows
            themselves has them collected.
        models: promises; a list means alternatives, and one of each list is combined.
        releases: finished tables (perturbed, synthetic) to put beside them, by name.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside, which a note says first.
        progress: called with how many settings are done, and of how many.
        settings: what is tried and how it is compared, all of it optional:

            - ``methods``: as for ``anonymize``: ``"auto"`` (what loses least of those that it would
              try), recodings (``"optimal"``, ``"local"``), divisions (``"mondrian"``, ``"mdav"``,
              ``"k-member"``, ``"personal"``), ``"cocluster"``.
            - ``suppression``: shares of rows that recodings may leave out; 0, 0.02 and 0.05.
            - ``metric``: what each recoding minimizes.
            - ``risk``: the risk by which settings are compared: ``"mean"``, ``"highest"`` or
              ``"inference"``.
            - ``utility``: what is lost by which they are compared: ``"loss"`` or ``"distance"``;
              None: loss where it is known of all, else distance.
            - ``seed``: for methods that draw at random.
            - ``time_limit``: seconds for all of it: searches share what is left, and settings that
              are not reached are ``undecided``.
            - ``epsilons``: private tables with each of these budgets. The figures of these points
              are read from the original: they are for the controller only.
            - ``synthesizer``: the method of private tables; ``domains`` their public values, as for
              ``synthesize``; ``draws`` how many are drawn for each budget, at least 2 (figures are
              means).

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [30, 30, 41, 41]}, schema={"age": "quasi"})
        >>> hm.frontier(people, [hm.KAnonymity(k) for k in (2, 3)], suppression=[0.0])
        Frontier(2 settings, 2 different results, 2 not dominated)
    """
    began = time.monotonic(), time.process_time()
    how = FrontierOptions.of(settings)
    if not models and not releases and not how.epsilons:
        require_models(())
    metric_named(how.metric)
    require_tables(how.epsilons, releases)
    wanted = chains(models, how.methods, how.suppression)
    promised = [model for chain in wanted for setting in chain for model in setting.models]
    refuse_contradiction(promised, demands)
    stated = add_policies(as_table(table), policies)
    whole = bool(how.epsilons or releases)
    stated, notes = _rows_read(stated, wanted, promised, demands=demands, whole=whole)
    held = count_tuples(stated, lambda declared: columns_read(declared, promised))
    require_risk(held, how.risk)
    held = sort_tuples(held)
    own = state_demands(held, demands)
    if demands == "keep":
        wanted = [
            [replace(one, models=with_demanded_models(held.table, one.models)) for one in chain]
            for chain in wanted
        ]
    cells = len(held.table) * len(held.table.schema.quasi)
    clock = None if how.time_limit is None else Clock(how.time_limit, cells, *began)
    wanted = spread_auto(wanted, held.table, how.metric, clock)
    total = sum(map(len, wanted)) + len(how.epsilons) + len(releases or ())
    done = _Outcomes(total, progress, clock)
    _promises(held, wanted, how.metric, Effort(how.seed, clock, demands), done)
    for epsilon in how.epsilons:
        name = f"epsilon = {epsilon:g}; {how.synthesizer}"
        if done.share() == 0:
            done.add(None, name, inf)
            continue
        done.add(private_point(held.table, epsilon, how.synthesizer, how.domains, how.draws))
    for name, made in (releases or {}).items():
        done.add(given_point(held.table, name, made))
    return _frontier_of(held, done, how, own, notes)


def _rows_read(
    stated: Table,
    wanted: Sequence[Sequence[Setting]],
    promised: Sequence[Model],
    *,
    demands: DemandsChoice,
    whole: bool,
) -> tuple[Table, tuple[str, ...]]:
    """The rows as far as they have to be in memory, without whom nobody can serve; notes on both.

    With ``whole`` all of them are: what is drawn or given is compared row by row.
    """
    if whole:
        return stated.collect(), ()
    notes: list[str] = []
    if (
        needs_rows(stated.schema, wanted)
        and isinstance(stated, Table)
        and stated.stored is not None
    ):
        stated, stayed = read_columns(stated, columns_read(stated.schema, promised), None)
        notes += [stayed] if stayed else []
    if demands == "keep":
        stated, unserved = _without_unmet(stated, promised)
        notes += _left_out(unserved)
    return stated, tuple(notes)


def _frontier_of(
    held: Tuples,
    done: _Outcomes,
    how: FrontierOptions,
    own: DemandsStatement | None,
    notes: Sequence[str],
) -> Frontier:
    """The points that were found, those marked that no other dominates."""
    points = keep_least_lost(done.points)
    compared = how.utility or utility_of(points)
    return Frontier(
        held.rows,
        tuple(mark_best(points, how.risk, compared)),
        _names(done.impossible, points),
        _names(done.undecided, points),
        how.risk,
        compared,
        order_notes(own, (*notes, *_notes(held, points, compared))),
        own,
    )


def _without_unmet(table: Table, promised: Sequence[Model]) -> tuple[Table, int]:
    """The table without the people whom no setting can serve: no point depends on their values."""
    if table.stored is not None:
        return table, 0
    models = with_demanded_models(table, [model for model in promised if model.policy])
    return leave_out_unmet(table, models, len(table), "") if models else (table, 0)


def _left_out(rows: int) -> tuple[str, ...]:
    if not rows:
        return ()
    return (
        f"{rows:,} rows demand more than all can give and are left out of every setting: anonymize "
        "leaves them out with on_infeasible='suppress', recodings within their suppression.",
    )


class _Outcomes:
    """The points so far, and what each may take; tells who waits how far it is."""

    def __init__(self, total: int, progress: Progress | None, clock: Clock | None = None) -> None:
        self.points: list[Point] = []
        self.impossible: list[Setting | str] = []
        self.undecided: list[Setting | str] = []
        self._total, self._progress, self._count = total, progress, 0
        self._clock, self._end, self._beyond = clock, inf, 0.0
        if progress is not None:
            progress(0, total)

    def share(self) -> float | None:
        """The seconds for the next search, 0 where none should begin; None: as many as it takes.

        What stands beside a search, such as reading its figures, looks at no clock: so much as it
        took at most so far is kept back.
        """
        if self._clock is None:
            return None
        left = min(self._clock.left, self._clock.limit)
        share = left / max(self._total - self._count, 1) - self._beyond
        if self._count and (left < 2 * self._beyond or left <= NOTHING):
            return 0.0
        share = max(share, min(NOTHING, left))
        self._end = time.monotonic() + share
        return share

    def add(
        self, point: Point | None, setting: Setting | str | None = None, gap: float = 0.0
    ) -> None:
        """Take note of a point, or of a setting without one."""
        self._beyond, self._end = max(self._beyond, time.monotonic() - self._end), inf
        if point is not None:
            self.points.append(point)
        elif setting is not None:
            (self.undecided if gap == inf else self.impossible).append(setting)
        self._count += 1
        if self._progress is not None:
            self._progress(self._count, self._total)


def _names(failed: Sequence[Setting | str], points: Sequence[Point]) -> tuple[str, ...]:
    """The settings that gave nothing; of methods tried for ``"auto"``, where none gave anything."""
    promised = {repr(point.models) for point in points}
    lacking = [
        one if isinstance(one, str) or not one.auto else replace(one, method=AUTO)
        for one in failed
        if isinstance(one, str)
        or not one.auto
        or repr(tuple(m.to_dict() for m in one.models)) not in promised
    ]
    return tuple(dict.fromkeys(one if isinstance(one, str) else one.name for one in lacking))


def _promises(
    held: Tuples,
    wanted: Sequence[Sequence[Setting]],
    metric: str,
    effort: Effort,
    done: _Outcomes,
) -> None:
    """Search every setting that promises something."""
    if not wanted:
        return
    every = list({id(m): m for chain in wanted for one in chain for m in one.models}.values())
    clock = effort.clock
    ready = find_automatic(held.table, None if clock is None else HIERARCHIES * clock.left)
    ready = prepare(ready, every)
    check_hierarchies(ready)
    shared: SharedSearch | None = None
    if any(chain[0].recodes for chain in wanted):
        shared = SharedSearch(replace(held, table=ready), every, metric)
    measure = shared.measure if shared is not None else _figure_reader(ready)
    for chain in wanted:
        if shared is not None and chain[0].recodes:
            for setting, figures, gap in shared.run(chain, done.share):
                point = None if figures is None else Point.of(setting, figures, gap)
                done.add(point, setting, gap or 0.0)
        else:
            for setting in chain:
                share = done.share()
                if share == 0:
                    done.add(None, setting, inf)
                    continue
                done.add(divided_point(measure, setting, effort, share), setting)


def _figure_reader(table: Table) -> FigureReader:
    tuples = classes_of(Tuples.of(table), table.schema.quasi, columns=table.schema.sensitive)
    return FigureReader(table, tuples)


def _notes(held: Tuples, points: Sequence[Point], utility: str) -> tuple[str, ...]:
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
