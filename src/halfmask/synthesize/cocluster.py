"""Synthetic people from a co-clustering of (row, part of a column); no formal guarantee.

Definition: rows are grouped by the co-clustering, groups are merged until each holds k people, and
    rows are drawn from the groups' counts alone (see ``halfmask.coclustering.generator``).
Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018, ch. 3.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from halfmask.coclustering.columns import cocluster_columns
from halfmask.coclustering.generator import generator
from halfmask.coclustering.held import Held
from halfmask.coclustering.numbers import is_number
from halfmask.coclustering.simplify import merge_small, simplify
from halfmask.errors import InputError, ParameterError, UnsatisfiableError
from halfmask.models.exact import require_whole
from halfmask.release.demands import DRAWN, INSTEAD, SET_ASIDE, refuse_diversity, statement
from halfmask.release.leaving import leaving
from halfmask.release.seal_synthetic import SyntheticDraft, seal_synthetic
from halfmask.synthesize.columns import values_of
from halfmask.synthesize.holdout import held_out_codes, split
from halfmask.table.demands import people_who, resolve, shown, with_policies

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.generator import Mode
    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.prepare import Intervals, Melted
    from halfmask.release.demands import Choice
    from halfmask.release.synthetic import SyntheticRelease
    from halfmask.table.table import Table

Strategy = Literal["climb", "targeted"]
OPTIONS = (
    "k", "rows", "bins", "intervals", "strategy", "mode", "holdout", "seed", "time_limit",
    "policies", "demands",
)  # fmt: skip
_ROUNDS = 2


def synthesize(
    table: Table,
    *,
    k: int | None = None,
    rows: int | None = None,
    bins: int = 10,
    intervals: Intervals = "equal-frequency",
    strategy: Strategy = "climb",
    mode: Mode = "draw",
    holdout: float = 0.0,
    seed: int | None = None,
    time_limit: float | None = None,
    policies: object = None,
    demands: Choice = "keep",
) -> SyntheticRelease:
    """Draw a synthetic table from a co-clustering whose groups hold at least ``k`` people.

    Args:
        table: the rows; identifiers, the person column and policies are left out.
        k: the fewest people in a group of the model; it is no k-anonymity of the rows. It is raised
            to what anybody demands.
        rows: how many rows to draw; by default as many as the table has.
        bins: how many intervals numbers are cut into.
        intervals: ``"equal-frequency"``, ``"equal-width"`` or ``"modl"``: where it helps the
            co-clustering most.
        strategy: how groups grow: ``"climb"`` the hierarchy of both sides, or ``"targeted"``, which
            merges only groups that are too small and keeps more of them.
        mode: ``"draw"`` at random or ``"quota"``.
        holdout: the share of people kept out of the model, as a control of its risk.
        seed: for repeatable tests; None draws from the system's secure source.
        time_limit: seconds for the co-clustering.
        policies: more demands of people, as for ``query``; they add to those of the schema.
        demands: ``"ignore"`` sets people's demands aside; the release says so first.

    Raises:
        PrivacyError: people demand an l, a t or noise, which groups of people cannot give.
        UnsatisfiableError: no structure was found, or none is left with groups of k people.
    """
    table = with_policies(table, policies)
    wanted, raised = _wanted(table, k, demands)
    if rows is not None and rows < 1:
        raise ParameterError("rows", rows, "1 or more")
    if strategy not in ("climb", "targeted"):
        raise ParameterError("strategy", strategy, "climb or targeted")
    if mode not in ("draw", "quota"):
        raise ParameterError("mode", mode, "draw or quota")
    if seed is not None:
        require_whole("seed", seed, 0)
    names = leaving(table)
    _require_repeating(table, names)
    random = np.random.default_rng(secrets.randbits(128) if seed is None else seed)
    size = rows or len(table)
    table, held = split(table, holdout, random)
    owner = _owners(table)
    melted, finest = cocluster_columns(
        table,
        names,
        bins=bins,
        intervals=intervals,
        seed=seed or 0,
        rounds=_ROUNDS,
        time_limit=time_limit,
    )
    grid = _populated(finest, wanted, strategy, owner)
    codes = generator(grid, melted.offsets).draw(size, random, mode=mode)
    drawn = pa.table(
        {c.name: values_of(table, c, codes[:, i], random) for i, c in enumerate(melted.columns)}
    )
    original = np.column_stack([column.codes for column in melted.columns])
    obtained = Held(grid.partition[0], owner).fewest()
    parameters: dict[str, Any] = {
        "k": k,
        "k_obtained": obtained,
        "rows": rows,
        "bins": bins,
        "intervals": intervals,
        "strategy": strategy,
        "mode": mode,
        "holdout": holdout,
        "seed": seed,
        "parts": list(grid.parts),
    }
    notes = (*raised, *_notes(grid, melted, obtained))
    if owner is not None:
        notes = (*notes, "Rows are drawn one by one: who several rows are about is not drawn.")
    control = None if held is None else held_out_codes(melted.columns, table, held)
    draft = SyntheticDraft(
        table, drawn, (original, codes), "cocluster", parameters, notes, control,
        groups=grid.partition[0], demands=demands,
    )  # fmt: skip
    return seal_synthetic(draft, random)


def _wanted(table: Table, k: object, demands: Choice) -> tuple[int, tuple[str, ...]]:
    """The least number of people in a group, where it is one that can be met, and what to say."""
    owner = _owners(table)
    people = len(table) if owner is None else int(owner.max(initial=-1)) + 1
    own = np.array([np.nan])
    if statement(table, demands) is not None and demands == "keep":
        refuse_diversity(table, DRAWN, INSTEAD)
        own = resolve(table, "k", shown(table.schema, "k"))
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
        if not is_number(values.type) and len(values) > max(20, len(table) / 2):
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


def _populated(grid: Grid, k: int, strategy: Strategy, owner: NDArray[np.int32] | None) -> Grid:
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
    return Held(simplify(grid, parts={"row": 2}).partition[0], owner).fewest()


def _notes(grid: Grid, melted: Melted, obtained: int) -> tuple[str, ...]:
    notes = [
        f"Rows were drawn from {grid.parts[0]} groups of at least {obtained:,} people, each column "
        "for itself inside a group.",
    ]
    if any(column.cuts is not None for column in melted.columns):
        notes.append("Numbers are drawn evenly inside their intervals.")
    rare = int((grid.marginals[1] < obtained).sum())
    if rare:
        notes.append(
            f"{rare:,} values are held by fewer people than a group has; they may be drawn too."
        )
    return tuple(notes)
