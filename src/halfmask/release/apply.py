"""A recoding applied to new rows, which are checked again before they leave."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import PrivacyError, UnsatisfiableError
from halfmask.models.exact import require_number
from halfmask.models.needs import demanded, require_models
from halfmask.release.candidate import Candidate
from halfmask.release.demands import statement
from halfmask.release.labels import as_text
from halfmask.release.leaving import leaving
from halfmask.release.recheck import regrouped, verdicts
from halfmask.release.seal import seal
from halfmask.table.demands import with_policies
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.demands import Choice
    from halfmask.release.recoding import Recoding
    from halfmask.release.release import Release
    from halfmask.table.table import Table


def apply(
    recoding: Recoding,
    table: Table,
    *models: Model,
    suppression: float = 0.0,
    policies: object = None,
    demands: Choice = "keep",
) -> Release:
    """Recode ``table`` as ``recoding`` says, and release it if the models hold on its own rows.

    What its people demand for themselves is kept too, unless the controller sets it aside.

    Classes that fail are taken by a later step of the recoding or suppressed.

    Raises:
        HierarchyError: the table holds values that the hierarchies lack.
        UnsatisfiableError: more than the share ``suppression`` of the rows would be suppressed.
    """
    table = with_policies(require_table(table), policies)
    require_number("suppression", suppression, 0, 1)
    statement(table, demands)
    if demands == "keep":
        models = demanded(table, models)
    if not models:
        raise PrivacyError("No promise was asked for: name at least one model.")
    require_models(models)
    leaving(table)
    stated = _stated(recoding, table)
    step = stated.assign(table)
    while (failing := _failing(stated, table, step, models)).any():
        # Rows that an early step gives up may complete the classes of a later one.
        first = failing & (step == step[failing].min())
        stated = _without(stated, table, np.where(first, step, np.int32(-1)))
        step = stated.assign(table)
    suppressed = int(np.count_nonzero(step < 0))
    if suppressed > Fraction(str(suppression)) * len(table) or suppressed == len(table):
        raise _too_many(recoding, table, models, suppressed)
    return seal(
        Candidate(
            table=table,
            models=models,
            recoding=stated if suppressed or not recoding.full_domain else recoding,
            step=step,
            method="recoding",
            parameters={"suppression": suppression},
            notes=("These rows were recoded by a recoding found on other rows.",),
            demands=demands,
        )
    )


def _stated(recoding: Recoding, table: Table) -> Recoding:
    """The recoding with every step's classes listed; a full-domain one takes any class."""
    steps = list(recoding.steps)
    for index, one in enumerate(steps):
        if one.classes is None or recoding.full_domain:
            everyone = np.full(len(table), index, dtype=np.int32)
            steps[index] = recoding.with_classes(table, everyone).steps[index]
    return replace(recoding, steps=tuple(steps))


def _failing(
    recoding: Recoding, table: Table, step: NDArray[np.int32], models: Sequence[Model]
) -> NDArray[np.bool_]:
    """The rows whose class breaks a model."""
    kept = np.flatnonzero(step >= 0)
    failing = np.zeros(len(table), dtype=np.bool_)
    if not len(kept):
        return failing
    labels = [as_text(column) for column in recoding.published(table, step).columns]
    for model in models:
        classes, ids = regrouped(labels, table, kept, model, recoding)
        failing[kept] |= ~model.passes(classes)[ids]
    return failing


def _without(recoding: Recoding, table: Table, step: NDArray[np.int32]) -> Recoding:
    """The recoding without the classes that the rows of ``step`` fall into."""
    steps = []
    for one, out in zip(recoding.steps, recoding.with_classes(table, step).steps, strict=True):
        gone = set(out.classes or ())
        steps.append(replace(one, classes=tuple(c for c in one.classes or () if c not in gone)))
    return replace(recoding, steps=tuple(steps))


def _too_many(
    recoding: Recoding, table: Table, models: Sequence[Model], suppressed: int
) -> UnsatisfiableError:
    step = _stated(recoding, table).assign(table)
    kept = np.flatnonzero(step >= 0)
    found: list[Verdict] = []
    if len(kept):
        found, _ = verdicts(models, recoding.published(table, step), table, kept, recoding)
    return UnsatisfiableError(
        f"{suppressed:,} of {len(table):,} new rows would have to be suppressed.",
        verdicts=found,
        levels=recoding.levels,
        suppressed=suppressed,
        advice=("Allow more suppression, or anonymize the new rows on their own.",),
    )
