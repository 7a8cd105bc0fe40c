"""Synthetic people from a co-clustering of (row, part of a column); no formal guarantee.

Definition: rows are grouped by the co-clustering, groups are merged until each holds k people, and
    rows are drawn from the groups' counts alone (see ``halfmask.coclustering.generate``); what is
    drawn inside a part rests on k people too (see ``halfmask.synthesize.shared_parts``).
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 3.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.coclustering.generate import generator
from halfmask.coclustering.hierarchy import merge_small, simplify
from halfmask.coclustering.observations import PartSizes
from halfmask.coclustering.prepare import cocluster_parts, melt_columns, require_cuts
from halfmask.dp.conditions import conditions_of, impossible_of
from halfmask.engines.counting.tuples import add_policies
from halfmask.errors import InputError, ParameterError, UnsatisfiableError
from halfmask.models.verdict import require_number, require_whole
from halfmask.release.candidate import SyntheticCandidate
from halfmask.release.demands import DRAWN, INSTEAD, SET_ASIDE, refuse_diversity, state_demands
from halfmask.release.seal import published_columns, seal
from halfmask.release.stored_entries import read_columns
from halfmask.synthesize.constraints import (
    condition_notes,
    draw_fitting,
    require_shared_condition,
    stated_conditions,
    structure_notes,
)
from halfmask.synthesize.shared_combinations import (
    exchange_rare,
    no_row,
    redraw_rare,
    shared_combinations,
)
from halfmask.synthesize.shared_parts import RARE, shared_parts, support
from halfmask.table.demands import leaving_columns, people_who, resolve_demand
from halfmask.table.hierarchy_finder import ROUNDS
from halfmask.table.table import Table
from halfmask.table.values import is_continuous
from halfmask.table.weights import unweighted_notes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.coclustering.generate import BlockGenerator, Mode
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import IntervalRule
    from halfmask.dp.conditions import Combination
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.release import SyntheticRelease
    from halfmask.synthesize.shared_combinations import SharedCombinations
    from halfmask.synthesize.shared_parts import SharedColumnParts


def hold_out(table: Table, share: float, random: np.random.Generator) -> tuple[Table, Table | None]:
    """The rows to learn from and those held out; people with several rows stay together.

    Raises:
        ParameterError: the share is not from 0 to below 1, or leaves one side empty.
    """
    if not 0 <= share < 1:
        raise ParameterError("holdout", share, "from 0 to below 1")
    if share == 0:
        return table, None
    if table.schema.person is None:
        owner, people = np.arange(len(table)), len(table)
    else:
        encoded = table.encode(table.schema.person)
        owner, people = encoded.codes, len(encoded.values)
    out = np.zeros(people, dtype=bool)
    out[random.choice(people, round(share * people), replace=False)] = True
    held = out[owner]
    if held.all() or not held.any():
        raise ParameterError("holdout", share, "a share that leaves rows on both sides")
    return _rows(table, ~held), _rows(table, held)


def _rows(table: Table, chosen: NDArray[np.bool_]) -> Table:
    return Table(
        table.arrow.filter(pa.array(chosen)), table.schema, origin=table.origin, given=table.given
    )


_MANY = 0.1
Strategy = Literal["climb", "targeted"]


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """How to group people, and how to draw rows from their groups.

    Attributes:
        k: the fewest people in a group of the model; it is no k-anonymity of the rows. It is raised
            to what anybody demands.
        rows: how many rows to draw; by default as many as the table has.
        bins: how many intervals numbers are cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``: where it helps the
            co-clustering most.
        strategy: how groups grow: ``"climb"`` the hierarchy of both sides, or ``"targeted"``, which
            merges only groups that are too small and keeps more of them.
        mode: ``"draw"`` at random or ``"quota"``.
        labels: whether numbers leave as the intervals that they lie in, as the thesis has it.
        combinations: of how many columns the values of a row must be held together by k people,
            numbers in pairs by a stretch of intervals; 1: each value for itself. It costs what is
            rare.
        holdout: the share of people kept out of the model, as a control of its risk.
        seed: for repeatable tests; None draws from the system's secure source.
        time_limit: seconds for the co-clustering.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside; the release says so first.
        given: column to what every drawn row holds there: a value, values, or a range, which k
            people must share; it needs ``rows``.
    """

    k: int | None = None
    rows: int | None = None
    bins: int = 10
    intervals: IntervalRule = "equal-frequency"
    strategy: Strategy = "climb"
    mode: Mode = "draw"
    labels: bool = False
    combinations: int = 2
    holdout: float = 0.0
    seed: int | None = None
    time_limit: float | None = None
    policies: object = None
    demands: DemandsChoice = "keep"
    given: Mapping[str, object] | None = None

    def require(self) -> None:
        """Refuse what cannot be drawn."""
        if self.rows is not None and self.rows < 1:
            raise ParameterError("rows", self.rows, "1 or more")
        if self.strategy not in ("climb", "targeted"):
            raise ParameterError("strategy", self.strategy, "climb or targeted")
        if self.mode not in ("draw", "quota"):
            raise ParameterError("mode", self.mode, "draw or quota")
        if not isinstance(self.labels, bool):
            raise ParameterError("labels", "(given)", "True or False")
        if self.labels and self.intervals == "modl":
            raise ParameterError(
                "labels", "(given)", "only with intervals whose ends k people share"
            )
        require_whole("combinations", self.combinations, 1)
        if self.seed is not None:
            require_whole("seed", self.seed, 0)
        if self.time_limit is not None:
            require_number("time_limit", self.time_limit, 0, open_low=True)
        require_cuts(self.bins, self.intervals)


OPTIONS = tuple(one.name for one in fields(DrawSettings))
_STATED = (
    "rows", "bins", "intervals", "strategy", "mode", "labels", "combinations", "holdout", "seed",
)  # fmt: skip


def synthesize_groups(table: Table, settings: DrawSettings) -> SyntheticRelease:
    """Draw a synthetic table from a co-clustering whose groups hold at least ``k`` people.

    Identifiers, the person column and policies are left out.

    Raises:
        PrivacyError: people demand an l, a t or noise, which groups of people cannot give.
        UnsatisfiableError: no structure was found, or none is left with groups of k people.
    """
    stays, apart = table.stored is not None, structure_notes(table.schema)
    named = published_columns(add_policies(table, settings.policies)) if stays else ()
    table, note = read_columns(table, named, settings.policies)
    wanted, raised = _least_people(table, settings.k, settings.demands)
    settings.require()
    names = published_columns(table)
    _require_repeating(table, names)
    impossible, given = _conditions(table, settings, names)
    seed = settings.seed
    random = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    size = settings.rows or len(table)
    table, held = hold_out(table, settings.holdout, random)
    owner = _owners(table)
    if given:
        require_shared_condition(table, given, wanted, owner)
    groups = _PeopleGroups.of(table, names, wanted, owner, settings)
    changed: list[float] = []

    def draw(count: int) -> pa.Table:
        codes, share = groups.draw(count, random, settings.mode)
        changed.append(share)
        return _drawn_rows(table, groups.columns, codes, random, labels=settings.labels)

    rows = draw_fitting(draw, size, impossible, given)
    obtained = PartSizes(groups.grid.partition[0], owner).fewest()
    notes = (
        *raised,
        *_notes(groups.grid, groups.columns, obtained, wanted),
        *unweighted_notes(table.schema),
        *((note,) if note else ()),
        *_combination_notes(groups, max(changed, default=0.0), wanted),
        *condition_notes(table.schema.impossible, settings.given),
        *apart,
        *((_OF_EVERYBODY,) if settings.given is not None else ()),
    )
    return seal(
        SyntheticCandidate(
            table=table,
            rows=rows,
            method="cocluster",
            least=wanted,
            seed=int(random.integers(2**31)),
            parameters=_parameters(table, settings, groups.grid, obtained),
            notes=notes,
            control=held,
            groups=groups.grid.partition[0],
            combinations=groups.together,
            cuts=groups.cuts,
            demands=settings.demands,
            impossible=impossible,
            given=given,
        )
    )


_OF_EVERYBODY = "The measures compare these rows with those of everybody."


@dataclass(frozen=True, slots=True, eq=False)
class _PeopleGroups:
    """Groups of at least k people, and what rows are drawn from them.

    Attributes:
        grid: the co-clustering, merged until each group holds k people.
        columns: per column the parts and what is drawn inside each.
        model: the counts of groups by parts.
        together: of how many columns values are held together by k people.
        shared: which combinations k people share; None: each value for itself.
        lost: the columns of which much cannot be drawn for the sake of the others.
        constant: those of which one value is left for their sake.
        cuts: per column of numbers the bounds of its intervals.
    """

    grid: Grid
    columns: list[SharedColumnParts]
    model: BlockGenerator
    together: int
    shared: SharedCombinations | None
    lost: tuple[str, ...]
    constant: tuple[str, ...]
    cuts: dict[str, Any]

    @classmethod
    def of(
        cls,
        table: Table,
        names: tuple[str, ...],
        wanted: int,
        owner: NDArray[np.int32] | None,
        settings: DrawSettings,
    ) -> _PeopleGroups:
        """Co-cluster rows with the parts of columns, and merge groups that are too small.

        Raises:
            UnsatisfiableError: there is no structure, or none with groups of so many people.
        """
        cut: dict[str, Any] = {
            name: getattr(settings, name) for name in ("bins", "intervals", "labels")
        }
        melted, finest = cocluster_parts(
            table,
            melt_columns([shared_parts(table, name, wanted, owner, **cut) for name in names]),
            again=names if settings.intervals == "modl" else (),
            seed=settings.seed or 0,
            time_limit=settings.time_limit,
        )
        grid = _coarsen(finest, wanted, settings.strategy, owner)
        columns = [support(table, column, wanted, owner) for column in melted.columns]
        model = generator(grid, melted.offsets, np.concatenate([one.drawn for one in columns]))
        together = settings.combinations if wanted > 1 and len(names) > 1 else 1
        shared = None
        lost: tuple[str, ...] = ()
        constant: tuple[str, ...] = ()
        if together > 1:
            # Columns are drawn apart inside a group: k people share it, and perhaps one alone of
            # them, or nobody, holds two of its values together.
            shared = shared_combinations(
                melted.columns, together, wanted, owner, stretch=not settings.labels
            )
            model, lost, constant = _possible(model, shared, columns)
        cuts = {c.name: c.cuts.bounds[1:-1] for c in melted.columns if c.cuts is not None}
        return cls(grid, columns, model, together, shared, lost, constant, cuts)

    def draw(
        self, count: int, random: np.random.Generator, mode: Mode
    ) -> tuple[NDArray[np.int32], float]:
        """Parts of so many rows, and which share of these held what too few people share."""
        codes, groups = self.model.draw_in_groups(count, random, mode=mode)
        if self.shared is None:
            return codes, 0.0
        exchange_rare(codes, groups, self.shared, random)
        return codes, redraw_rare(codes, groups, self.model, self.shared, random)


def _parameters(table: Table, settings: DrawSettings, grid: Grid, obtained: int) -> dict[str, Any]:
    """What a release says of how it was drawn."""
    return {
        "k": settings.k,
        "k_obtained": obtained,
        **{name: getattr(settings, name) for name in _STATED},
        "parts": list(grid.parts),
        "rounds": ROUNDS,
        **stated_conditions(table.schema.impossible, settings.given),
    }


def _possible(
    model: BlockGenerator, shared: SharedCombinations, columns: list[SharedColumnParts]
) -> tuple[BlockGenerator, tuple[str, ...], tuple[str, ...]]:
    """The model of what a row can hold, where more than one row in ten cannot, where one value can.

    Raises:
        UnsatisfiableError: a column has no value that goes with the others.
    """
    fits = shared.possible([one.drawn > 0 for one in columns])
    if not all(one.any() for one in fits):
        raise no_row(max(columns, key=lambda one: len(one.drawn)).column.name)
    out = [model.sizes @ chances @ ~fit / model.sizes.sum()
           for chances, fit in zip(model.chances, fits, strict=True)]  # fmt: skip
    many = tuple(c.column.name for c, share in zip(columns, out, strict=True) if share > _MANY)
    one = tuple(
        c.column.name
        for c, fit in zip(columns, fits, strict=True)
        if len(c.value) > 1 and (c.weights[fit].sum(axis=0) > 0).sum() == 1
    )
    return model.only(fits), many, one


def _combination_notes(groups: _PeopleGroups, changed: float, wanted: int) -> tuple[str, ...]:
    """What was given up so that enough people share every combination."""
    notes = []
    if groups.constant:
        notes.append(
            f"In {', '.join(groups.constant)}, all rows hold one value, because no other one is "
            f"shared by {wanted:,} people together with what the other columns hold: lower k, "
            "generalize columns with many values first, or take combinations=1."
        )
    if groups.lost:
        notes.append(
            f"In {', '.join(groups.lost)}, more than one row in ten would hold a value that goes "
            "with too few of the other columns' values, and holds another one: generalize columns "
            "with many values first, or take combinations=1."
        )
    if changed > _MANY:
        notes.append(
            "More than one row in ten was drawn anew, because it held a combination that fewer "
            f"than {wanted:,} people share: dependence among rare values is weaker than it was."
        )
    return tuple(notes)


def _conditions(
    table: Table, settings: DrawSettings, names: tuple[str, ...]
) -> tuple[tuple[Combination, ...], Combination]:
    """What rows may not hold, and what they must."""
    impossible = impossible_of(table.schema.impossible, names)
    if settings.labels and (impossible or settings.given is not None):
        raise ParameterError("labels", "(given)", "only without [[impossible]] and given")
    if settings.given is None:
        return impossible, ()
    if settings.rows is None:
        raise ParameterError("rows", None, "how many rows to draw, which given needs")
    return impossible, conditions_of(settings.given, names, "given")


def _drawn_rows(
    table: Table,
    columns: list[SharedColumnParts],
    codes: NDArray[np.int32],
    random: np.random.Generator,
    *,
    labels: bool,
) -> pa.Table:
    """The parts that were drawn, as values or as labels."""
    out = {}
    for place, one in enumerate(columns):
        texts = one.column.labels
        if labels and one.column.cuts is not None:
            missing = codes[:, place] >= len(one.column.cuts)
            out[one.column.name] = pa.array(
                np.asarray(texts, object)[codes[:, place]], mask=missing
            )
        else:
            out[one.column.name] = one.draw(table, codes[:, place], random)
    return pa.table(out)


def _least_people(table: Table, k: object, demands: DemandsChoice) -> tuple[int, tuple[str, ...]]:
    """The least number of people in a group, where it is one that can be met, and what to say."""
    owner = _owners(table)
    people = len(table) if owner is None else int(owner.max(initial=-1)) + 1
    own = np.array([np.nan])
    if state_demands(table, demands) is not None and demands == "keep":
        refuse_diversity(table, DRAWN, INSTEAD)
        own = resolve_demand(table, "k", leaving_columns(table.schema, "k"))
    if k is None and not np.isnan(own).all():
        k = 1
    if not isinstance(k, int) or isinstance(k, bool) or not 1 <= k <= max(people, 1):
        raise ParameterError("k", k, f"a whole number from 1 to the {people:,} people there are")
    highest = int(np.fmax.reduce(own, initial=k))
    if highest > people:
        count = people_who(table, own > people)
        raise UnsatisfiableError(
            f"{count:,} people demand a k above the {people:,} people there are: no group can "
            f"keep it; {SET_ASIDE}."
        )
    note = "Groups hold as many people as anybody in the table demands for an own k."
    return highest, (note,) if highest > k else ()


def _require_repeating(table: Table, names: tuple[str, ...]) -> None:
    """Refuse text columns whose values mostly occur once: they would leave as they are."""
    faults = []
    for name in names:
        values = table.encode(name).values
        if not is_continuous(values.type) and len(values) > max(20, len(table) / 2):
            faults.append(name)
    if faults:
        words = ", ".join(repr(name) for name in faults)
        raise InputError(
            f"Column(s) {words}: most values occur once, so that drawing them would publish real "
            "values. Declare them as identifiers."
        )


def _owners(table: Table) -> NDArray[np.int32] | None:
    """Whose each row is, where a person can have several."""
    person = table.schema.person
    return None if person is None else table.encode(person).codes.astype(np.int32)


def _coarsen(grid: Grid, k: int, strategy: Strategy, owner: NDArray[np.int32] | None) -> Grid:
    """The finest grid whose groups of rows are about at least ``k`` people."""
    if not grid.informative:
        raise UnsatisfiableError(
            "The rows show no structure: the best co-clustering is one cell, so that synthetic "
            "rows would be drawn column by column.",
            advice=("give more rows, or columns that depend on each other",),
        )
    reached = (
        simplify(grid, smallest={"row": k}, owner=owner)
        if strategy == "climb"
        else merge_small(grid, "row", k, owner)
    )
    if reached.parts[0] == 1:
        raise UnsatisfiableError(
            f"With groups of {k:,} people one group is left, and no structure to draw from.",
            advice=(f"ask for k of at most {_largest(grid, owner):,}",),
        )
    return reached


def _largest(grid: Grid, owner: NDArray[np.int32] | None) -> int:
    """The fewest people in a group of the coarsest level with two groups of rows."""
    return PartSizes(simplify(grid, parts={"row": 2}).partition[0], owner).fewest()


def _notes(
    grid: Grid, columns: list[SharedColumnParts], obtained: int, least: int
) -> tuple[str, ...]:
    notes = [
        f"Rows were drawn from {grid.parts[0]} groups of at least {obtained:,} people, each column "
        "for itself inside a group.",
    ]
    if least > 1:
        notes.append(f"Values that fewer than {least:,} people hold are not drawn.")
    if any(one.spanned for one in columns):
        notes.append(
            f"Numbers that fewer than {least:,} people share are drawn anew from spans that hold "
            "so many; the largest and smallest are not reached."
        )
    many = [c.column.name for c in columns if _rare_share(c) > _MANY]
    if many:
        notes.append(
            f"In {', '.join(many)}, more than one row in ten holds a value that is too rare to be "
            "drawn: generalize such columns first."
        )
    return tuple(notes)


def _rare_share(one: SharedColumnParts) -> float:
    """The share of rows in the part that is not drawn."""
    labels = one.column.labels
    return float(np.mean(one.column.codes == len(labels) - 1)) if labels[-1] == RARE else 0.0
