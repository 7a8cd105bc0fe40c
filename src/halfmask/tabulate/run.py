"""``tabulate``: counts or sums by columns, protected, through the door.

The rules say which cells must not be shown, the method how the others are protected; what people
demand for themselves adds to the rules. Everything is checked again before it leaves.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import ParameterError, PrivacyError
from halfmask.models.requirements import lone_values
from halfmask.release.candidate import Proof, TabulationCandidate
from halfmask.release.demands import SET_ASIDE, require_choice, state_demands
from halfmask.release.seal import seal
from halfmask.release.stored_entries import read_columns
from halfmask.release.tabulation.door import refuse_distances
from halfmask.release.tabulation.recount import TableDesign
from halfmask.table.demands import people_who, resolve_demand
from halfmask.table.table import Table, require_table
from halfmask.table.tuples import Tuples
from halfmask.table.weights import unweighted_notes
from halfmask.tabulate.attack import ProtectionProblem
from halfmask.tabulate.cell_keys import NoiseTable, cell_keys, record_keys
from halfmask.tabulate.cube import Cube, Ladder, count_cube, ladders, require_tabulable
from halfmask.tabulate.noise import NoiseOptions, tabulate_privately
from halfmask.tabulate.rounding import require_base, round_controlled, round_randomly
from halfmask.tabulate.sensitivity_rules import (
    SensitiveCells,
    SensitivityRules,
    dominance_pairs,
    find_sensitive,
)
from halfmask.tabulate.suppression import find_pattern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.release.release import PrivateRelease
    from halfmask.release.tabulation.door import TableRelease

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]


def tabulate(
    table: Table,
    by: str | Sequence[str],
    *,
    sum: str | None = None,  # noqa: A002 - what the verb does
    count: str = "people",  # noqa: A002, RUF100
    levels: Mapping[str, object] | None = None,
    margins: bool = True,
    method: str = "suppress",
    threshold: int | None = None,
    dominance: object = None,
    p: float | None = None,
    l: Mapping[str, int] | None = None,  # noqa: E741 - the letter of the definition
    protection: float = 0.1,
    policies: object = None,
    demands: str = "keep",
    leave_out: Mapping[str, int] | None = None,
    **options: Any,
) -> TableRelease | PrivateRelease:
    """A table of counts or sums that may leave.

    Args:
        table: the rows. Where an engine counts them, the columns that are shown come over, as
            distinct tuples; with noise all of them do.
        by: the columns that span it; missing values are a category of their own.
        sum: the numeric column to sum; default: count.
        count: what is counted, ``"people"`` or ``"rows"``; rules always speak of people.
        levels: column to the level or levels (the finest first, or ``"all"``) of its hierarchy.
        margins: whether totals are shown.
        method: ``"suppress"``, ``"round"`` (controlled), ``"random-round"``, ``"cell-key"`` or
            ``"dp"``.
        threshold: the least number of people behind a figure; the largest k that anybody of the
            table asks for is a floor of it, in every cell: withheld where that person is only, a
            cell would tell where.
        dominance: ``(n, percent)``: no n people may make up more than that of a sum.
        p: percent by which nobody may be able to estimate another one's contribution.
        l: sensitive column to the least number of its values among the people of a line (or of a
            cell of sums).
        protection: the share of a withheld sum by which readers must be in doubt of it, where
            no rule says it.
        policies: more demands of people; they add to those of the schema.
        demands: ``"ignore"`` sets people's own demands aside, by the controller; the table says so.
        leave_out: ``{"k": 20}``: people who ask for a larger k (or l) are in no figure, and the
            table says so; who they are does not depend on what they hold.
        options: what the method takes: ``time_limit``, ``cost``, ``sole`` (suppress); ``base``,
            ``time_limit`` (round), ``base`` (random-round); ``variance``, ``maximum``, ``least``,
            ``record_keys``, ``secret`` (cell-key); ``epsilon``, ``delta``, ``domains``,
            ``rows_per_person``, ``accountant``, ``insist``, ``period``, ``through`` (dp).

    Raises:
        SchemaError: a column is not there or must not leave.
        PrivacyError: nothing was asked for, or people demand what such a table cannot give.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"city": ["Rennes"] * 4 + ["Brest"] * 5, "ill": ["no", "yes"] * 4
        ...                   + ["no"]}, schema={"columns": {"city": "quasi", "ill": "quasi"}})
        >>> hm.tabulate(people, ["city", "ill"], threshold=2)
        TableRelease(9 cells, 0 withheld; suppress)
    """
    if method == "dp" or not isinstance(table, Table):
        table = require_table(table)
    require_choice(demands)
    columns = (by,) if isinstance(by, str) else tuple(by)
    require_tabulable(table, columns)
    rules = SensitivityRules(threshold, dominance_pairs(dominance), p, protection, dict(l or {}))
    _require_method(method, options)
    table, note = _columns_read(table, (*columns, sum, *(l or {})), policies, options)
    touched = (*columns, *((sum,) if sum else ()))
    # By what people ask for alone, whatever they hold: who is left out tells nothing of cells.
    kept = _without_strict(table, touched, leave_out or {}, demands)
    if method == "dp":
        if kept is not table:
            raise ParameterError(
                "leave_out", "(given)", "nothing with noise: levels of epsilon count"
            )
        plain = sum is None and count == "people" and not rules.asked and not levels
        noise = _noise_options(options, plain=plain)
        return tabulate_privately(table, columns, noise, margins=margins, demands=demands)
    stated = _refuse_unmet(kept, touched, demands)
    steps = ladders(kept, columns, levels or {}, margins=margins)
    design = TableDesign(columns, _levels(kept, columns, levels or {}), margins, sum, count)
    task = _task(kept, steps, design, rules, demands, leave_out or {}, stated=stated)
    task = replace(task, note=note)
    if method != "suppress":
        _require_counts(task)
    return seal(METHODS[method](task, **options))


def _require_method(method: str, options: Mapping[str, Any]) -> None:
    """Refuse a method that there is not, and options that it does not take."""
    if method not in METHODS and method != "dp":
        raise ParameterError("method", method, f"{', '.join(METHODS)} or dp")
    if method == "dp":
        _require_options((one.name for one in fields(NoiseOptions)), options)
    else:
        _require_options(list(inspect.signature(METHODS[method]).parameters)[1:], options)


def _noise_options(options: Mapping[str, Any], *, plain: bool) -> NoiseOptions:
    """What is spent on a table of plain counts: with noise there is no other."""
    if not plain:
        raise ParameterError(
            "method", "dp", "counts without sum, levels or rules: noise hides everybody"
        )
    if "epsilon" not in options:
        raise ParameterError("epsilon", None, "the budget to spend")
    return NoiseOptions(**options)


def _columns_read(
    table: Table, named: Sequence[str | None], policies: object, options: Mapping[str, Any]
) -> tuple[Table, str]:
    """The columns that a table of figures reads, and where the rows stayed."""
    keys = options.get("record_keys")
    there = set(table.column_names)
    names = [one for one in dict.fromkeys((*named, keys)) if isinstance(one, str) and one in there]
    return read_columns(table, names, policies, whole="secret" in options)


def _without_strict(
    table: Table, touched: Sequence[str], leave_out: Mapping[str, int], demands: str
) -> Table:
    """The table without the people who ask for more than ``leave_out`` says."""
    for demand, most in leave_out.items():
        if demand not in ("k", "l") or isinstance(most, bool) or not isinstance(most, int):
            raise ParameterError("leave_out", "(given)", 'such as {"k": 20}: whole numbers of k, l')
        if demands == "keep":
            table = table.keep(~(resolve_demand(table, demand, touched) > most))
    return table


def _levels(
    table: Table, columns: Sequence[str], levels: Mapping[str, object]
) -> dict[str, tuple[int, ...]]:
    """The levels that are shown, the finest first."""
    found: dict[str, tuple[int, ...]] = {}
    for name in columns:
        given: Any = levels.get(name, 0)
        if given == "all":
            given = range(table.hierarchy(name).height + 1)
        found[name] = (given,) if isinstance(given, int) else tuple(sorted(given))
    return found


def _require_options(taken: Iterable[str], options: Mapping[str, Any]) -> None:
    """Refuse what the method does not take."""
    known = sorted(taken)
    for name in options:
        if name not in known:
            raise ParameterError(name, "(given)", f"only {', '.join(known)}")


@dataclass(frozen=True, slots=True, eq=False)
class TabulationTask:
    """What a method gets: the rows counted, and what must hold of the result."""

    table: Table
    steps: tuple[Ladder, ...]
    design: TableDesign
    cube: Cube
    rules: SensitivityRules
    sensitive: SensitiveCells
    demands: str
    stated: bool
    leave_out: Mapping[str, int]
    note: str = ""

    def candidate(self, values: Numbers, method: str, **facts: Any) -> TabulationCandidate:
        """The candidate for the door."""
        rules = {
            "threshold": self.rules.threshold,
            "dominance": [list(pair) for pair in self.rules.dominance],
            "p": self.rules.p,
            "protection": self.rules.protection,
            "diversity": dict(self.rules.diversity),
        }
        parameters = {
            "by": list(self.design.by),
            "levels": {name: list(shown) for name, shown in self.design.levels.items()},
            "margins": self.design.margins,
            "sum": self.design.amount,
            "count": self.design.count,
            "rules": rules,
            **({"leave_out": dict(self.leave_out)} if self.leave_out else {}),
            **facts.pop("parameters", {}),
        }
        notes = [
            f"People who ask for {'an l' if demand == 'l' else 'a k'} above {most:,} are in no "
            "figure, if there are any."
            for demand, most in self.leave_out.items()
        ]
        notes += unweighted_notes(self.table.schema, (self.design.amount or "",))
        notes += [self.note] if self.note else []
        facts["notes"] = (*notes, *facts.get("notes", ()))
        return TabulationCandidate(
            self.table,
            self.design,
            self.cube.grid,
            values,
            method,
            rules,
            parameters=parameters,
            demands=self.demands,  # type: ignore[arg-type]
            **facts,
        )


def _task(
    table: Table,
    steps: tuple[Ladder, ...],
    design: TableDesign,
    rules: SensitivityRules,
    demands: str,
    leave_out: Mapping[str, int],
    *,
    stated: bool,
) -> TabulationTask:
    """Count, and find what must not be shown by the rules and by people's own demands."""
    for name in rules.diversity:
        if name not in design.touched or name not in table.schema.sensitive:
            raise ParameterError("l", name, "a sensitive column that is shown or summed")
    k = _largest(table, "k", design) if stated else None
    cube = count_cube(table, steps, amount=design.amount, of=design.count, k=k, most=rules.most)
    if not len(table):
        raise PrivacyError("The table has no rows: nothing can be tabulated.")
    broken = _narrow(table, steps, design, rules, cube, stated=stated)
    sensitive = find_sensitive(cube, rules, broken)
    return TabulationTask(table, steps, design, cube, rules, sensitive, demands, stated, leave_out)


def _largest(table: Table, demand: str, design: TableDesign) -> Numbers:
    """Per row the most that anybody asks for, wherever that person stands; 0: nobody asks."""
    asked = resolve_demand(table, demand, design.touched)
    return np.full(len(table), np.nan_to_num(asked).max(initial=0.0))


def _refuse_unmet(table: Table, touched: Sequence[str], demands: str) -> bool:
    """Whether people's demands are to be kept; refused are those that no table can give.

    Before anything else is looked at: no error depends on what these people hold.
    """
    own = state_demands(table, demands)  # type: ignore[arg-type]
    if own is None or demands != "keep":
        return False
    refuse_distances(table, touched)
    _refuse_too_many(table, resolve_demand(table, "k", touched))
    l_ = np.nan_to_num(resolve_demand(table, "l", touched))
    for name in touched:
        if name in table.schema.sensitive and name in table.arrow.column_names and (l_ > 1).any():
            _refuse_too_diverse(table, name, l_)
    return True


def _refuse_too_many(table: Table, k: Numbers) -> None:
    """Refuse where people ask for more than all people of the table, whatever these hold."""
    everybody = people_who(table, np.ones(len(table), dtype=bool))
    count_ = people_who(table, k > everybody)
    if count_:
        raise PrivacyError(
            f"{count_:,} people ask for a k above the {everybody:,} people of the table, which no "
            f"table of figures can give: {_LEAVE_OUT}, or {SET_ASIDE}."
        )


_LEAVE_OUT = "leave them out (leave_out={'k': 20}, --leave-out k=20)"


def _narrow(
    table: Table,
    steps: tuple[Ladder, ...],
    design: TableDesign,
    rules: SensitivityRules,
    cube: Cube,
    *,
    stated: bool,
) -> list[Flags]:
    """The cells that tell too few values of a sensitive column."""
    asked = _largest(table, "l", design) if stated else np.zeros(len(table))
    found: list[Flags] = []
    for name in design.touched:
        least = rules.diversity.get(name, 0)
        if name not in table.schema.sensitive or (least < 2 and not (asked > 1).any()):
            continue
        demand = np.maximum(asked, least)
        if name == design.amount:
            found.append(_few_amounts(table, steps, name, demand, cube))
        if name in design.by and design.amount is None:
            found.append(_few_values(table, steps, design.by.index(name), demand, cube))
    return found


def _refuse_too_diverse(table: Table, name: str, l_: Numbers) -> None:
    """Refuse where people ask for more values than all others hold, whatever they hold."""
    codes, values = table.encode(name).codes, table.encode(name).values
    known = values.is_valid().to_numpy(zero_copy_only=False)[codes]
    kept, held = np.ones(len(table), dtype=bool), 0
    # Whoever is set aside takes the own values along, so that others may now ask for too many.
    while True:
        here = np.flatnonzero(kept)
        held = len(np.unique(codes[kept & known]))
        short = (l_[here] > 1) & (l_[here] + lone_values(Tuples.of(table), name, here) > held)
        if not short.any():
            break
        kept[here[short]] = False
    above = people_who(table, ~kept)
    if above:
        raise PrivacyError(
            f"{above:,} people ask for more values of column '{name}' than all others hold, which "
            f"no table of figures can give: leave them out (leave_out={{'l': {max(held, 1)}}}, "
            f"--leave-out l={max(held, 1)}), or {SET_ASIDE}."
        )


def _cells(table: Table, steps: Sequence[Ladder], chosen: Sequence[int]) -> NDArray[np.int64]:
    cell = np.zeros(len(table), np.int64)
    for step, level in zip(steps, chosen, strict=True):
        cell = cell * len(step.axis) + step.levels[level][table.encode(step.axis.column).codes]
    return cell


def _few_amounts(
    table: Table, steps: tuple[Ladder, ...], name: str, demand: Numbers, cube: Cube
) -> Flags:
    encoded = table.encode(name)
    codes, size = encoded.codes.astype(np.int64), cube.grid.size
    kept = np.ones(len(table), dtype=bool)
    if encoded.values.null_count:
        kept = codes != len(encoded.values) - 1
    found = np.zeros(size, dtype=bool)
    for chosen in np.ndindex(*(len(step.levels) for step in steps)):
        cell = _cells(table, steps, chosen)[kept]
        pairs = np.unique(cell * len(encoded.values) + codes[kept]) // len(encoded.values)
        values, most = np.bincount(pairs, minlength=size), np.zeros(size)
        np.maximum.at(most, cell, demand[kept])
        found |= (values > 0) & (values < most)
    return found


def _few_values(
    table: Table, steps: tuple[Ladder, ...], side: int, demand: Numbers, cube: Cube
) -> Flags:
    """All cells of lines whose people have too few values of the column along the line."""
    shape, size = cube.grid.shape, cube.grid.size
    found = np.zeros(shape, dtype=bool)
    ranges = [range(1) if i == side else range(len(s.levels)) for i, s in enumerate(steps)]
    lines = np.moveaxis(np.arange(size).reshape(shape), side, -1).reshape(-1, shape[side])
    line_of = np.empty(size, np.int64)
    line_of[lines] = np.arange(len(lines))[:, None]
    flat = found.ravel()
    for chosen in np.ndindex(*(len(one) for one in ranges)):
        cell = _cells(table, steps, chosen)
        line = line_of[cell]
        values = np.bincount(line_of[np.unique(cell)], minlength=len(lines))
        most = np.zeros(len(lines))
        np.maximum.at(most, line, demand)
        few = np.flatnonzero((values > 0) & (values < most))
        wholes = {whole for whole, parts in steps[side].axis.sums if whole == shape[side] - 1}
        parts = [i for i in range(shape[side]) if i not in wholes]
        flat[lines[few][:, parts]] = True
    return flat


def withhold_cells(
    task: TabulationTask,
    *,
    time_limit: float = 60.0,
    cost: str = "values",
    sole: bool | None = None,
) -> TabulationCandidate:
    """Withhold what a rule forbids, and what would give that away.

    Args:
        task: the counts.
        time_limit: seconds of processor for the search.
        cost: what is kept small: the withheld ``"values"``, or the number of ``"cells"``.
        sole: whether those who contribute to a cell alone are taken to know its figure; by
            default in sums.
    """
    if not task.rules.asked and not task.stated:
        own = state_demands(task.table, task.demands)  # type: ignore[arg-type]
        said = "; people state no demands"
        if own is not None:
            said = f", or keep the demands of {own.people:,} people, which were set aside"
        raise PrivacyError(f"No rule was asked for: give a threshold, dominance, p or l{said}.")
    if cost not in ("values", "cells"):
        raise ParameterError("cost", cost, "'values' or 'cells'")
    if not time_limit > 0:
        raise ParameterError("time_limit", time_limit, "seconds above 0")
    cube, primary = task.cube, task.sensitive.cells
    known = (not cube.whole) if sole is None else sole
    problem = _problem(task, cost=cost, known=known)
    pattern = find_pattern(cube.grid, problem, time_limit=time_limit)
    values = np.where(pattern.withheld, np.nan, cube.values)
    proofs = [
        Proof(target.cell, target.sign, move.cells, move.amounts)
        for target, move in pattern.moves.items()
    ]
    return task.candidate(
        values,
        "suppress",
        proofs=proofs,
        sole=known,
        gap=round(pattern.gap, 2),
        findings=_findings(task, primary, pattern.withheld, pattern.gap),
        parameters={"cost": cost},
        notes=("Withheld cells have one mark, whatever the reason.",),
    )


def _problem(task: TabulationTask, *, cost: str, known: bool) -> ProtectionProblem:
    """Which cells must stay in doubt by how much, and how far each can move in a reader's eyes."""
    cube, sensitive = task.cube, task.sensitive
    primary = sensitive.cells
    # Empty cells are shown, so that readers know a withheld count to be 1 at least; where an l is
    # not kept, empty ones are withheld too.
    floor = np.where(sensitive.hollow | _in_narrow(sensitive), 0.0, 1.0) if cube.whole else 0.0
    room = np.maximum(cube.values - floor, 0.0)
    if cube.negative:
        room = np.full(cube.grid.size, np.inf)
    return ProtectionProblem(
        cube.grid.relations,
        primary,
        (cube.people > 0) | primary,
        np.ones(cube.grid.size) if cost == "cells" else np.maximum(np.abs(cube.values), 1.0),
        sensitive.rise,
        np.minimum(sensitive.fall, room),
        np.full(cube.grid.size, np.inf),
        room,
        cube.owner if known else np.full(cube.grid.size, -1),
        cube.whole,
    )


def _in_narrow(sensitive: SensitiveCells) -> Flags:
    none = np.zeros(len(sensitive.rise), dtype=bool)
    return sensitive.reasons.get("diversity", none)


def _findings(task: TabulationTask, primary: Flags, withheld: Flags, gap: float) -> dict[str, Any]:
    """What the controller alone may see."""
    cube = task.cube
    leaves = np.ones(cube.grid.size, dtype=bool)
    for side, axis in enumerate(cube.grid.axes):
        wholes = np.array(sorted({whole for whole, _ in axis.sums}), dtype=np.int64)
        leaves &= ~np.isin(cube.grid.categories(np.arange(cube.grid.size))[side], wholes)
    amounts = np.abs(cube.values)
    total = float(amounts[leaves].sum())
    return {
        "primary": int(primary.sum()),
        "secondary": int((withheld & ~primary).sum()),
        "published": int((~withheld).sum()),
        "information_kept": float(amounts[leaves & ~withheld].sum()) / total if total else 1.0,
        "gap": gap,
        "reasons": {name: np.flatnonzero(one) for name, one in task.sensitive.reasons.items()},
        "values": cube.values,
        "people": cube.people,
    }


def _require_counts(task: TabulationTask) -> None:
    if task.design.amount is not None:
        raise ParameterError("sum", task.design.amount, "no sum: this method is for counts")
    if task.rules.shares:
        raise ParameterError("dominance", "(given)", "method='suppress' with dominance or p")


def round_cells(
    task: TabulationTask, *, base: int = 5, time_limit: float = 60.0
) -> TabulationCandidate:
    """Round all figures to multiples of ``base`` so that they still add up."""
    values, restricted = round_controlled(
        task.cube.grid, task.cube.values, require_base(base), time_limit=time_limit
    )
    notes = [f"Figures are multiples of {base} and add up; none is further off than the base."]
    if not restricted:
        notes.append("Some figures that are multiples of the base were moved as well.")
    reach = base - 1 if restricted else base
    return task.candidate(
        values,
        "round",
        reach=float(reach),
        parameters={"base": base, "additive": True, "maximum": reach},
        notes=notes,
    )


def round_cells_randomly(task: TabulationTask, *, base: int = 5) -> TabulationCandidate:
    """Round every figure by itself; totals do not add up."""
    values = round_randomly(task.cube.values, require_base(base))
    return task.candidate(
        values,
        "random-round",
        reach=float(base - 1),
        parameters={"base": base, "additive": False, "maximum": base - 1},
        notes=(
            f"Figures are rounded at random to multiples of {base}, each by itself: totals do not "
            "add up, and another table of the same people is rounded anew.",
        ),
    )


def perturb_cells(
    task: TabulationTask,
    *,
    variance: float = 2.0,
    maximum: int = 5,
    least: int = 0,
    record_keys: str | None = None,
    secret: object = None,
) -> TabulationCandidate:
    """Add the noise that each cell's key looks up: the same for the same people in every table."""
    noise = NoiseTable.of(variance=variance, maximum=maximum, least=least)
    keys, lasting = _keys(task.table, record_keys, secret)
    sums = _cell_key_sums(task, keys)
    counts = task.cube.values.astype(np.int64)
    values = (counts + noise.look_up(counts, sums)).astype(np.float64)
    notes = [
        f"Counts carry noise of variance {variance:g} and at most {maximum}; zeros stay, totals do "
        "not add up exactly.",
    ]
    if not lasting:
        notes.append(
            "Keys were drawn for this table alone: another table of the same people gets other "
            "noise, whose average tells the counts; give record_keys or a secret."
        )
    return task.candidate(
        values,
        "cell-key",
        reach=float(maximum),
        parameters={"variance": variance, "maximum": maximum, "least": least, "additive": False},
        notes=notes,
    )


def _keys(table: Table, column: str | None, secret: object) -> tuple[Any, bool]:
    return record_keys(table, column=column, secret=secret)


def _cell_key_sums(task: TabulationTask, keys: Any) -> Any:
    """The key of every cell; of somebody with several rows in it the key counts once."""
    table, size = task.table, task.cube.grid.size
    out = np.zeros(size, np.uint64)
    person = None
    if table.schema.person is not None and task.design.count == "people":
        person = table.encode(table.schema.person).codes.astype(np.int64)
    for chosen in np.ndindex(*(len(step.levels) for step in task.steps)):
        cell, own = _cells(table, task.steps, chosen), keys
        if person is not None:
            _, first = np.unique(cell * (person.max(initial=0) + 1) + person, return_index=True)
            cell, own = cell[first], keys[first]
        held = np.unique(cell)
        out[held] = cell_keys(cell, own, size)[held]
    return out


METHODS: dict[str, Callable[..., TabulationCandidate]] = {
    "suppress": withhold_cells,
    "round": round_cells,
    "random-round": round_cells_randomly,
    "cell-key": perturb_cells,
}
