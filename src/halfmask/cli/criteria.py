"""Prints the three criteria of the data protection authorities, with the figures behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.cli import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def show_criteria(criteria: Sequence[Mapping[str, Any]], *, to: str = "stdout") -> None:
    """Print criteria that are given as plain values."""
    rows = [
        (
            one["name"] if one["column"] is None else f"{one['name']} of {one['column']}",
            one["outcome"],
            *(one["risk"][end] for end in ("value", "low", "high")),
            one["attack"]["value"],
            (one["control"] or one["baseline"])["value"],
        )
        for one in criteria
    ]
    show.table(
        "Criteria (risk beyond control or guessing, 95 % interval)",
        ("criterion", "outcome", "risk", "from", "to", "attack", "without"),
        rows,
        to=to,
    )
