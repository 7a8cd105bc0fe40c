"""The door for hybrid releases: rows that carry the labels of their class, true or not.

A label may leave out the true value of some rows of the class. The promises about classes are
checked on the rows that leave as for any release; how many cells are true is counted here, from
what each label means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError, PrivacyError
from halfmask.release.columns import ColumnChange, other_change
from halfmask.release.demands import hold_demands, told_first
from halfmask.release.document import versions
from halfmask.release.leaving import leaving
from halfmask.release.loss import table_loss
from halfmask.release.recheck import verdicts
from halfmask.release.release import Release
from halfmask.release.seal import hold, published_rows
from halfmask.release.sealed import DOOR
from halfmask.release.sizes import ClassSizes
from halfmask.table.hierarchy import TOP
from halfmask.table.table import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.release.demands import Choice
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class HybridCandidate:
    """Rows whose quasi-identifiers were replaced by the labels of their class.

    Attributes:
        table: the original rows.
        models: the promises it must keep.
        kept: the rows that leave, in the order of the table.
        quasi: their published labels.
        meaning: per column and label, the codes of the values that the label stands for.
        method: how the classes were found.
        parameters: what is needed to repeat it.
        notes: what a reader should know, one sentence each.
        demands: whether people's own demands are kept, or set aside by the controller.
    """

    table: Table
    models: Sequence[Model]
    kept: NDArray[np.int64]
    quasi: pa.Table
    meaning: Mapping[str, Mapping[str, NDArray[np.int64]]]
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    demands: Choice = "keep"

    def __repr__(self) -> str:
        return f"HybridCandidate({self.method}, {len(self.models)} models)"


def seal_hybrid(candidate: HybridCandidate) -> Release:
    """Check the rows that would leave and release them, with the share of true cells.

    Raises:
        PrivacyError: no promise was asked for, or one that compares with a population.
        InternalError: the candidate does not keep what the search claims; nothing leaves.
    """
    table, quasi = candidate.table, candidate.quasi
    names = leaving(table)
    if not candidate.models:
        raise PrivacyError("No promise was asked for: name at least one model.")
    if any(model.population is not None for model in candidate.models):
        raise PrivacyError(
            "A promise that compares with a population cannot be checked on perturbed labels: "
            "use another method."
        )
    kept = candidate.kept
    _fits(candidate)
    found, ids = verdicts(candidate.models, quasi, table, kept, None)
    hold(found, expected=len(kept))
    own = hold_demands(table, kept, ids, candidate.models, candidate.demands)
    cells = {name: _cells(candidate, name) for name in quasi.column_names}
    losses = {name: cell.loss for name, cell in cells.items()}
    weights = {name: table.schema.columns[name].weight for name in losses}
    rows = published_rows(table, names, quasi, kept)
    return Release(
        verdicts=tuple(found),
        models=tuple(candidate.models),
        loss=table_loss(losses, weights),
        suppressed=len(table) - len(kept),
        rows=len(kept),
        classes=ClassSizes.of(np.bincount(ids).astype(np.int64)),
        columns=tuple(
            _change(table, rows, name, cells[name], kept)
            if name in cells
            else other_change(table, rows, name)
            for name in table.arrow.column_names
        ),
        recoding=None,
        method=candidate.method,
        metric="none",
        gap=None,
        parameters=dict(candidate.parameters),
        versions=versions(),
        notes=told_first(own, (*candidate.notes, *_notes(cells))),
        demands=own,
        origin=table.origin,
        given=table.given,
        _arrow=rows,
        door=DOOR,
        statement=_statement(candidate, cells),
    )


def _fits(candidate: HybridCandidate) -> None:
    """Demand labels for exactly the rows that leave, and that no more are left out than allowed."""
    table, kept, quasi = candidate.table, candidate.kept, candidate.quasi
    places = len(kept) and (kept[0] < 0 or kept[-1] >= len(table) or (np.diff(kept) <= 0).any())
    if not len(kept) or places:
        raise InternalError("The candidate's rows are not rows of the table, each once.")
    if quasi.column_names != list(table.schema.quasi) or quasi.num_rows != len(kept):
        raise InternalError("The candidate's labels do not match the rows that leave.")
    limit = Fraction(str(candidate.parameters.get("suppression", 0)))
    if len(table) - len(kept) > limit * len(table):
        raise InternalError("The candidate suppresses more rows than allowed.")


@dataclass(frozen=True, slots=True)
class _Cells:
    """What the labels of one column do to its cells: loss, and how many of them are true."""

    loss: Fraction
    true: int
    rows: int
    classes: int
    true_classes: int


def _cells(candidate: HybridCandidate, name: str) -> _Cells:
    table, meaning = candidate.table, candidate.meaning[name]
    labels = encode(candidate.quasi[name])
    codes, domain = table.encode(name).codes[candidate.kept], len(table.encode(name).values)
    texts = labels.values.to_pylist()
    if any(text not in meaning for text in texts):
        raise InternalError(f"Column {name!r} publishes a label whose meaning is not stated.")
    covers = np.zeros((len(texts), domain), dtype=bool)
    for place, text in enumerate(texts):
        covers[place, meaning[text]] = True
    true = covers[labels.codes, codes]
    hierarchy = table.hierarchy(name)
    wide = hierarchy.size  # as for every release: values that nobody holds count too
    sizes = np.array([_width(hierarchy, text, meaning[text]) for text in texts])
    rows, everyone = len(codes), len(table)
    covered = int(sizes[labels.codes].sum()) + (everyone - rows) * wide
    loss = Fraction(covered - everyone, everyone * (wide - 1)) if wide > 1 else Fraction(0)
    classes = _class_ids(candidate.quasi)
    false_in = np.zeros(int(classes.max()) + 1, dtype=bool)
    false_in[classes[~true]] = True
    return _Cells(loss, int(true.sum()), rows, len(false_in), int((~false_in).sum()))


def _width(hierarchy: Hierarchy, text: str, covered: NDArray[np.int64]) -> int:
    """How many values a label stands for: all under its node, or those of the table it names."""
    if text == TOP:
        return hierarchy.size
    for level in range(1, hierarchy.height + 1):
        nodes = np.unique(hierarchy.maps[level][covered])
        if len(nodes) == 1 and str(hierarchy.labels[level][nodes[0]]) == text:
            return int(hierarchy.leaves[level][nodes[0]])
    return len(covered)


def _class_ids(quasi: pa.Table) -> NDArray[np.int64]:
    """The class of each row, by Arrow."""
    place = pa.array(np.arange(quasi.num_rows))
    names = quasi.column_names
    grouped = quasi.append_column("\0row", place).group_by(names).aggregate([("\0row", "list")])
    lists = grouped["\0row_list"].combine_chunks()
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    counts = np.diff(lists.offsets.to_numpy(zero_copy_only=False))
    out = np.empty(quasi.num_rows, dtype=np.int64)
    out[flat] = np.repeat(np.arange(len(counts)), counts)
    return out


def _change(
    table: Table, rows: pa.Table, name: str, cells: _Cells, kept: NDArray[np.int64]
) -> ColumnChange:
    share = cells.true / cells.rows
    return ColumnChange(
        name=name,
        role="quasi",
        action=f"replaced by the label of its class, true for {share:.1%} of the rows",
        published=True,
        before=len(np.unique(table.encode(name).codes[kept])),
        after=len(encode(rows[name]).values),
        loss=float(cells.loss),
    )


def _notes(cells: Mapping[str, _Cells]) -> tuple[str, ...]:
    true = sum(cell.true for cell in cells.values()) / sum(cell.rows for cell in cells.values())
    kept = sum(c.true_classes for c in cells.values()) / sum(c.classes for c in cells.values())
    return (
        f"This is a hybrid release: {true:.1%} of the published cells contain the true value, the "
        "others were perturbed.",
        f"{kept:.1%} of the pairs of a class and a column are generalized without perturbation.",
        "The loss counts how wide the labels are; that some are false is not in it.",
    )


def _statement(candidate: HybridCandidate, cells: Mapping[str, _Cells]) -> dict[str, Any]:
    rows = sum(cell.rows for cell in cells.values())
    return {
        "kind": "hybrid",
        "claimed": [model.name for model in candidate.models],
        "not_claimed": ["that published cells are true", "differential privacy"],
        "measured": {
            "true_cells": sum(cell.true for cell in cells.values()) / rows,
            "true_class_columns": sum(c.true_classes for c in cells.values())
            / sum(c.classes for c in cells.values()),
            "true_cells_by_column": {n: c.true / c.rows for n, c in cells.items()},
            "perturbed_classes_by_column": {
                n: c.classes - c.true_classes for n, c in cells.items()
            },
        },
    }
