"""``anonymize``: from a table and models to a sealed release, by one of the methods."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.anonymize import local, optimal
from halfmask.anonymize.absent_groups import absent_groups
from halfmask.anonymize.auto import AUTO, Choice, Clock, try_methods
from halfmask.anonymize.partition.methods import LINKS
from halfmask.anonymize.partition.run import DIVISIONS, OPTIONS, Settings
from halfmask.anonymize.partition.run import divide_rows as divided
from halfmask.anonymize.problem import RecodingProblem, unsatisfiable
from halfmask.anonymize.search import (
    require_metric_above,
    search_until_stable,
    state_floors,
    why_collected,
)
from halfmask.anonymize.tied_rows import search_people
from halfmask.engines.counting.tuples import MOST, add_policies
from halfmask.errors import ParameterError, SchemaError
from halfmask.metrics.cost import METRICS, CellMetric, ClassMetric, metric_named
from halfmask.models.requirements import (
    ALLOW,
    KEYWORDS,
    LEAVE_OUT,
    leave_out_entries,
    prepare,
    refuse_contradiction,
    refuse_keywords,
    require_models,
    statistics,
    with_demanded_models,
)
from halfmask.models.verdict import Model, require_number, require_whole
from halfmask.release.candidate import Attempt, Candidate
from halfmask.release.demands import state_demands
from halfmask.release.pseudonyms import key_bytes
from halfmask.release.recoding import Recoding, RecodingStep
from halfmask.release.seal import published_columns, seal
from halfmask.release.stored_entries import count_entries
from halfmask.table.demands import with_policies
from halfmask.table.hierarchies.builders import find_automatic
from halfmask.table.hierarchies.tree import check_hierarchies
from halfmask.table.table import require_table
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from fractions import Fraction

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.anonymize.problem import Solution
    from halfmask.metrics.cost import Metric
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.release import Release
    from halfmask.table.table import Table

# Methods that find levels, one line each; those that divide the rows into classes stand in
# ``halfmask.anonymize.partition.run``.
RECODINGS = {"optimal": optimal.find_levels, "local": local.find_steps}
# Labels of a perturbing method may be false for some rows.
PERTURBING = ("cocluster", "cocluster-sets", "cocluster-mode")
CONFIDENTIAL = "confidential"  # the one that keeps a promise about how classes are chosen
METHODS = (AUTO, *RECODINGS, *DIVISIONS, *PERTURBING, CONFIDENTIAL)
_EFFORT = ("suppression", "seed", "time_limit")


@dataclass(frozen=True, slots=True)
class RecodingWish:
    """What is asked of a release beside its promises; ``anonymize`` explains each."""

    method: str
    suppression: float
    metric: str | Metric | None
    seed: int | None
    time_limit: float | None
    demands: DemandsChoice
    previous: object
    pseudonym: object
    options: dict[str, Any]


def anonymize(
    table: Table,
    *models: Model,
    method: str | None = AUTO,
    suppression: float = 0.0,
    metric: str | Metric | None = None,
    seed: int | None = None,
    time_limit: float | None = None,
    policies: object = None,
    demands: DemandsChoice = "keep",
    previous: object = None,
    pseudonym: object = None,
    most_tuples: int = MOST,
    **options: Any,
) -> Release:
    """Generalize and suppress until every model holds, losing as little as possible.

    What people demand for themselves (``[policy]`` in the schema) is kept beside the models, also
    where none is named.

    Args:
        table: the rows, with quasi-identifiers and hierarchies declared, wherever they are. Where
            an engine counts them, ``"optimal"``, ``"local"``, ``"auto"`` (which then tries these
            two) and divisions leave them there; co-clustering reads them and says so.
        models: the promises to keep, all at once.
        method: ``"auto"`` tries the methods that can keep the promises, cheapest first, and
            releases what loses least (``release.tried`` says which). ``"optimal"``: one level per
            column, proven best of these, which recodes new rows in the same way; ``"local"``:
            levels differ between classes; or a division of the rows into classes:
            ``"personal"``, ``"mondrian"``, ``"k-member"``, ``"mdav"``, ``"exact"`` (small
            tables); for many columns and at the price of some false cells, ``"cocluster"``,
            ``"cocluster-sets"`` or ``"cocluster-mode"``. ``MConfidentiality`` is kept by
            ``"confidential"``, which then is taken.
        suppression: the share of rows that may be left out, 0 to 1; divisions leave none out.
        metric: what to minimize, by name or as a metric; default ``"loss"``. Divisions know
            ``"dbil"`` too: the distances of the rows of a class.
        seed: for methods that draw at random; the others ignore it.
        time_limit: seconds for all searches together; the best found by then is released.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside; the release says so first.
        previous: the ledger of a series (a file, made where there is none, or a SeriesLedger): the
            next release of a changing table, with ``MInvariance``; see docs/series.md.
        pseudonym: a secret key of 16 bytes or more, or the path of its file: the person column
            leaves as keyed tokens, where the promises hold for a person's rows taken together.
        most_tuples: of rows that stay elsewhere, how many distinct tuples come to this process at
            most. Where there are more, columns are counted at coarser levels, below which nothing
            is searched; the release names them and what that loses (docs/engines.md).
        options: for divisions: ``labels="levels"`` (labels of hierarchies in place of ranges) or
            ``"sets"`` (the values that a class holds, where that says more),
            ``fallback="uniform"`` (try one k for everybody too, keep the better),
            ``on_infeasible="suppress"`` (leave out whom nothing can serve), and those of the
            method (``score="plain"`` of k-member, ``cut="whole"`` of mondrian, ``must_link`` and
            ``cannot_link`` of exact: columns whose equal values stand in one class, or never do).
            For co-clustering: ``bins`` and ``intervals`` (how numbers are cut) and ``link``.

    Raises:
        UnsatisfiableError: nothing satisfies the models; says what comes closest.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = hm.read(
        ...     pa.table({"age": [31, 34, 52, 58], "sex": ["f", "f", "m", "m"]}),
        ...     schema={"age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
        ...             "sex": "quasi"})
        >>> hm.anonymize(people, hm.KAnonymity(2), method="optimal").levels
        {'age': 1, 'sex': 0}
    """
    began = time.monotonic(), time.process_time()
    refuse_keywords("anonymize", (name for name in options if name in KEYWORDS))
    method = method or AUTO
    if metric is not None and not isinstance(metric, str):
        metric = _metric(metric)
    if models:
        require_models(models)
    method = _blind_method(models, method, previous, metric)
    require_whole("most_tuples", most_tuples, 1)
    if most_tuples >= 2**31:
        raise ParameterError("most_tuples", most_tuples, "a whole number below 2,147,483,648")
    special = {"previous": previous, "pseudonym": pseudonym, **options}
    reason = why_collected(table, models, method, special)
    with ExitStack() as held:
        if reason is None:
            rows = count_entries(
                add_policies(table, policies),
                models,
                held,
                unfolded=_reader_of_rows(method, pseudonym),
                most=most_tuples,
                demands=demands,
                owners=pseudonym is not None,
            )
        else:
            rows = Tuples.of(with_policies(require_table(table), policies), note=reason)
        wish = RecodingWish(
            method, suppression, metric, seed, time_limit, demands, previous, pseudonym, options
        )
        return _release(rows, models, wish, began)


def _release(
    rows: Tuples, models: Sequence[Model], wish: RecodingWish, began: tuple[float, float]
) -> Release:
    """The release of entries that stand for rows, wherever these are."""
    table = rows.table
    refuse_contradiction(models, wish.demands)
    state_demands(rows, wish.demands)  # refuses before the search what the door would refuse after
    if wish.demands == "keep":
        models = with_demanded_models(table, models)
    if wish.previous is not None:
        return _continue(table, models, wish)
    key = None if wish.pseudonym is None else _key(table, wish.pseudonym)
    _require(table if rows.origin is None else rows.origin, wish)
    _refuse_options(wish.method, wish.options)
    cells = len(table) * len(table.schema.quasi)
    clock = None if wish.time_limit is None else Clock(wish.time_limit, cells, *began)
    found, tried = _find(rows, models, wish, clock)
    parameters = dict(found.parameters)
    if "time_limit" in parameters:
        parameters["time_limit"] = wish.time_limit
    notes = (*found.notes, *((rows.note,) if rows.note else ()))
    made = replace(
        found, demands=wish.demands, tried=tried, parameters=parameters, pseudonym=key, notes=notes
    )
    # Nothing is told of whoever demands more than all can give, not even in a count.
    served, _ = leave_out_entries(rows, models, rows.rows, "")
    return seal(replace(made, absent=absent_groups(served, made)))


def _find(
    rows: Tuples, models: Sequence[Model], wish: RecodingWish, clock: Clock | None
) -> tuple[Candidate, tuple[Attempt, ...]]:
    """The candidate of the method, or of the one that loses least, and what was tried."""
    # Without a seed, what loses least would be luck.
    seed = 0 if wish.method == AUTO and wish.seed is None else wish.seed

    def run(name: str, limit: float | None) -> Candidate:
        own = wish.options if wish.method != AUTO else _fitting(name, wish.options)
        end = math.inf if limit is None else time.monotonic() + limit

        def left() -> float | None:
            return None if clock is None else max(min(end - time.monotonic(), clock.left), 0.01)

        def search(entries: Tuples, share: float | Fraction) -> Candidate:
            effort = {"suppression": share, "seed": seed, "time_limit": left}
            return _search(entries, models, name, wish.metric, {**effort, **own})

        until = search_until_stable if wish.pseudonym is None else search_people
        return until(
            rows,
            models,
            search,
            suppression=wish.suppression,
            unmet=wish.options.get("on_infeasible", "error"),
            remedy=_remedy(wish.method, rows),
        )

    if wish.method != AUTO:
        return run(wish.method, None), ()
    return try_methods(
        rows, Choice(models, wish.metric, wish.suppression, clock, wish.options), run
    )


def _reader_of_rows(method: str, pseudonym: object) -> str | None:
    """What looks at every row, in words; None: distinct tuples are enough."""
    if pseudonym is not None:
        return "pseudonym="  # ties the rows of a person together
    return None if method in (AUTO, *RECODINGS) else f"method={method!r}"


def _remedy(method: str, rows: Tuples) -> str:
    """What a method has for people whose demands nothing can meet, without reading their rows."""
    if rows.engine or method in (*RECODINGS, *PERTURBING):
        return ALLOW
    return LEAVE_OUT if method != AUTO else f"{LEAVE_OUT}, {ALLOW}"


def _blind_method(
    models: Sequence[Model], method: str, previous: object, metric: str | Metric | None
) -> str:
    """The method that keeps a promise about how classes are chosen, where one is asked for."""
    named = [model.name for model in models if model.blind]
    if not named:
        if method == CONFIDENTIAL:
            raise ParameterError("method", method, "it with MConfidentiality, which it keeps")
        return method
    if previous is not None:
        raise ParameterError("previous", "***", f"none with {named[0]}, which is of one release")
    if method not in (AUTO, CONFIDENTIAL):
        raise ParameterError("method", method, f"{CONFIDENTIAL!r} or none with {named[0]}")
    if metric is not None:
        raise ParameterError("metric", "***", f"none with {named[0]}, which is cut blindly")
    return CONFIDENTIAL


def _key(table: Table, given: object) -> bytes:
    """The key of pseudonyms, as given or from its file; refused before the search."""
    if table.schema.person is None:
        raise SchemaError(
            "Pseudonyms keep a person's rows together: name the person column under [table] person."
        )
    if isinstance(given, str | PathLike):
        return key_bytes(None, Path(given))
    return key_bytes(given, None)


HIERARCHIES = 1 / 3  # of the time of a search, for finding hierarchies that are automatic


def _search(
    entries: Tuples,
    models: Sequence[Model],
    method: str,
    metric: str | Metric | None,
    given: dict[str, Any],
) -> Candidate:
    """The candidate of one method; ``given`` is its effort and its options."""
    rows = entries.table
    left: Callable[[], float | None] = given["time_limit"]
    limit = left()
    if method in PERTURBING:
        found = _perturb(rows, models, method, metric, {**given, "time_limit": limit})
        return replace(found, tuples=entries) if entries.engine else found
    rows = find_automatic(rows, None if limit is None else HIERARCHIES * limit)
    rows = prepare(rows, models, blind=method == CONFIDENTIAL)
    check_hierarchies(rows)
    effort = {name: given[name] for name in _EFFORT} | {"time_limit": left()}
    options = {name: value for name, value in given.items() if name not in _EFFORT}
    if method == CONFIDENTIAL:
        from halfmask.anonymize.partition.confidential import divide_blindly

        found = divide_blindly(rows, models, options)
        return replace(found, tuples=replace(entries, table=rows)) if entries.engine else found
    if method == "local" and options:  # its classes, with labels of their own
        settings = Settings("personal", "loss", effort["seed"], effort["time_limit"], options)
        return replace(divided(rows, models, settings), method=method)
    if method in DIVISIONS:
        own = DIVISIONS[method].metrics[0]
        name = own if metric is None else metric if isinstance(metric, str) else metric.name
        settings = Settings(method, name, effort["seed"], effort["time_limit"], options)
        found = divided(rows, models, settings)
        return replace(found, tuples=replace(entries, table=rows)) if entries.engine else found
    ready = replace(entries, table=rows)
    return _recode(ready, models, method, "loss" if metric is None else metric, effort)


def _fitting(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that a method knows of those given to all."""
    if method in RECODINGS:
        sets = method == "local" and options.get("labels") == "sets"
        return {"labels": "sets"} if sets else {}
    known = (*OPTIONS, *DIVISIONS[method].options)
    return {name: value for name, value in options.items() if name in known}


def _refuse_options(method: str, options: dict[str, Any]) -> None:
    """Refuse options that the method does not know."""
    if method == AUTO:
        known = {name for one in DIVISIONS.values() for name in one.options} | set(OPTIONS)
        known -= set(LINKS)  # the other methods would not keep them
        unknown = [name for name in options if name not in known]
    else:
        known = {"labels"} if method == "local" and options.get("labels") == "sets" else set()
        unknown = [name for name in options if name not in known] if method in RECODINGS else []
    if unknown:
        name = unknown[0]
        takes = [one for one in DIVISIONS if name in (*OPTIONS, *DIVISIONS[one].options)]
        raise ParameterError(
            name, options[name], "it only with method " + ", ".join(takes or PERTURBING)
        )


def _continue(table: Table, models: Sequence[Model], wish: RecodingWish) -> Release:
    """The next release of a series."""
    if wish.pseudonym is not None:
        raise ParameterError("pseudonym", "***", "none with previous: a series has its own ledger")
    if wish.suppression:
        raise ParameterError("suppression", wish.suppression, "0 with previous=")
    if (wish.method, wish.metric) not in ((AUTO, None), ("m-invariance", None)):
        raise ParameterError("method", wish.method, "none with previous=, and no metric")
    from halfmask.series.invariance import publish_series  # loads the ledger and the door of series

    given: dict[str, Any] = {**wish.options, "demands": wish.demands}
    # The ledger reads what ``previous`` is.
    return publish_series(table, models, wish.previous, **given)  # type: ignore[arg-type]


def _perturb(
    table: Table,
    models: Sequence[Model],
    method: str,
    metric: str | Metric | None,
    given: dict[str, Any],
) -> Candidate:
    """The candidate of a method whose labels may be false for some rows."""
    if metric is not None:
        name = metric if isinstance(metric, str) else metric.name
        raise ParameterError("metric", name, f"none: {method} minimizes the cost of its grid")
    from halfmask.anonymize import coclustering  # loads the search of grids

    known = (*_EFFORT, *coclustering.OPTIONS)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ParameterError(
            "option", unknown[0], f"one of {', '.join(coclustering.OPTIONS)} with {method}"
        )
    settings = coclustering.GroupingSettings(method, **given)
    return coclustering.group_by_clusters(table, models, settings)


def _recode(
    tuples: Tuples,
    models: Sequence[Model],
    method: str,
    metric: str | Metric,
    effort: dict[str, Any],
) -> Candidate:
    """The candidate of a method that finds levels."""
    table = tuples.table
    chosen = metric_named(metric) if isinstance(metric, str) else _metric(metric)
    name = metric if isinstance(metric, str) else chosen.name
    parameters: dict[str, Any] = {
        **effort,
        "weights": {name: table.schema.columns[name].weight for name in table.schema.quasi},
        "models": [model.to_dict() for model in models],
    }
    solution, step = _solve(tuples, models, chosen, method, parameters)
    steps = [_step(tuples, levels) for levels in solution.steps or ()]
    if tuples.floors:
        parameters["floors"] = {name: floor.level for name, floor in tuples.floors.items()}
    return Candidate(
        table=table,
        models=models,
        recoding=Recoding.of(table, steps),
        step=step,
        loss=solution.value if name == "loss" else None,
        method=method,
        metric=name,
        parameters=parameters | {"value": solution.value},
        gap=solution.gap,
        notes=solution.notes,
        tuples=tuples if tuples.engine else None,
    )


def _solve(
    entries: Tuples,
    models: Sequence[Model],
    metric: Metric,
    method: str,
    parameters: dict[str, Any],
) -> tuple[Solution, NDArray[np.int32]]:
    """Search on the distinct tuples; what that needs is given back before rows are touched."""
    table, quasi = entries.table, entries.table.schema.quasi
    if entries.floors:
        require_metric_above(metric)
    tuples, row_tuple = statistics(entries, models)
    problem = RecodingProblem(
        tuples,
        [table.hierarchy(name).above(entries.floor(name)) for name in quasi],
        models,
        metric,
        suppression=parameters["suppression"],
        weights=list(parameters["weights"].values()),
    )
    solution = RECODINGS[method](
        problem, seed=parameters["seed"], time_limit=parameters["time_limit"]
    )
    if solution.closest is not None:
        levels = tuple(_step(entries, solution.closest.levels).levels.values())
        raise unsatisfiable(replace(solution.closest, levels=levels), problem, quasi)
    if entries.floors:
        solution = state_floors(solution, entries, problem)
    return solution, solution.tuple_step[row_tuple]


def _step(entries: Tuples, levels: Sequence[int]) -> RecodingStep:
    """The levels as the schema counts them, of a search that began at the floors."""
    quasi = entries.table.schema.quasi
    own = zip(quasi, levels, strict=True)
    return RecodingStep({name: int(level) + entries.floor(name) for name, level in own})


def _metric(metric: Metric) -> Metric:
    if isinstance(metric, type) or not isinstance(metric, CellMetric | ClassMetric):
        raise ParameterError("metric", type(metric).__name__, "one of " + ", ".join(METRICS))
    return metric


def _require(table: Table, wish: RecodingWish) -> None:
    """Refuse what would make the search run in vain."""
    if wish.method not in METHODS:
        raise ParameterError("method", wish.method, "one of " + ", ".join(METHODS))
    require_number("suppression", wish.suppression, 0, 1)
    if wish.seed is not None:
        require_whole("seed", wish.seed, 0)
    if wish.time_limit is not None:
        require_number("time_limit", wish.time_limit, 0, open_low=True)
    published_columns(table)
