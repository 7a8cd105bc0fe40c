"""One criterion of the data protection authorities, judged by an attack that was run.

Definition: the risk is (a - c) / (1 - c), where a is how often the attack succeeds on people of the
release and c on people who are not in it (control), or, where there are none, by guessing
(baseline). It is met if the whole interval lies below the limit.
Source: Article 29 Working Party, "Opinion 05/2014 on anonymisation techniques"; Giomi et al., "A
unified framework for quantifying privacy risk in synthetic data", 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from halfmask.metrics.estimate import Estimate, excess

LIMIT = 0.09
NO_CONTROL = (
    "There is no control: what the table tells about everybody cannot be told apart from what it "
    "tells about those in it."
)
Outcome = Literal["met", "not met", "undecided"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """The outcome of one attack.

    Attributes:
        name: what is tried.
        attacker: what the attacker knows and does, in words.
        attack: how often it succeeds; ``control`` on people outside; ``baseline`` by guessing.
        risk: how much of what the control leaves open the attack takes.
        limit: the highest acceptable risk.
        outcome: whether the risk is below it: met, not met, or undecided.
        column: the column that is guessed, where it is one.
        notes: what a reader should know.
    """

    name: str
    attacker: str
    attack: Estimate
    control: Estimate | None
    baseline: Estimate
    risk: Estimate
    limit: float
    outcome: Outcome
    column: str | None = None
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "attacker": self.attacker,
            "attack": self.attack.to_dict(),
            "control": None if self.control is None else self.control.to_dict(),
            "baseline": self.baseline.to_dict(),
            "risk": self.risk.to_dict(),
            "limit": self.limit,
            "outcome": self.outcome,
            "column": self.column,
            "notes": list(self.notes),
        }


def judge(
    name: str,
    attacker: str,
    attack: Estimate,
    control: Estimate | None,
    baseline: Estimate,
    *,
    limit: float = LIMIT,
    column: str | None = None,
    notes: tuple[str, ...] = (),
) -> Criterion:
    """Compare an attack with its control, or with guessing where there is none."""
    risk = excess(attack, baseline if control is None else control)
    if control is None:
        notes = (*notes, NO_CONTROL)
    if attack.high is not None and attack.high < (baseline.low or 0):
        notes = (*notes, "The attack does worse than guessing: read the risk with care.")
    return Criterion(
        name, attacker, attack, control, baseline, risk, limit, decide(risk, limit), column, notes
    )


def decide(risk: Estimate, limit: float) -> Outcome:
    """Whether a risk is surely below the limit, surely above, or neither."""
    if risk.low is None or risk.high is None or not risk.trusted:
        return "undecided"
    if risk.high <= limit:
        return "met"
    return "not met" if risk.low > limit else "undecided"
