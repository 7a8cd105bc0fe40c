"""The refusal when nothing satisfies the models: what came closest, and what to relax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.errors import UnsatisfiableError
from halfmask.release.demands import SET_ASIDE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.anonymize.outcome import Outcome
    from halfmask.anonymize.problem import Problem


def unsatisfiable(closest: Outcome, problem: Problem, quasi: Sequence[str]) -> UnsatisfiableError:
    """Return the error that explains ``closest``."""
    verdicts = [model.check(closest.classes) for model in problem.models]
    people = int(closest.classes.people.sum())
    advice = []
    for model, verdict in zip(problem.models, verdicts, strict=True):
        if not verdict.holds and hasattr(model, "shortfall"):
            advice.append(f"{verdict.model}: {model.shortfall(closest.classes)}")
        elif not verdict.holds:
            of = f" of column {verdict.column!r}" if verdict.column else ""
            advice.append(
                f"{verdict.model}{of}: {verdict.required} is required, the closest recoding "
                f"achieves {verdict.achieved} ({verdict.failing_rows} of {verdict.rows} rows fail);"
                " ask for no more than that"
            )
    if closest.suppressed < problem.rows:
        share = -(-closest.suppressed * 10_000 // problem.rows) / 10_000
        advice.append(f"or allow suppression = {share} or more")
    else:
        advice.append(f"the table holds {people} people in all")
    if any(model.policy and not v.holds for model, v in zip(problem.models, verdicts, strict=True)):
        advice.append(f"or {SET_ASIDE}")
    if (problem.heights[: len(quasi)] == 0).any():
        advice.append("or give every quasi-identifier a hierarchy that ends in one label")
    return UnsatisfiableError(
        "No recoding satisfies the models within the suppression limit.",
        verdicts=verdicts,
        levels=dict(zip(quasi, closest.levels, strict=True)),
        suppressed=closest.suppressed,
        advice=advice,
    )
