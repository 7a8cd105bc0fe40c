"""Documents as a release writes them: one full-domain, one local, both with hostile names."""

from __future__ import annotations

import copy
from typing import Any

import pytest

HOSTILE = "</script><script>alert(1)</script><b>&\"'"


def _column(name: str, role: str, **more: Any) -> dict[str, Any]:
    column = {
        "name": name,
        "role": role,
        "action": "kept as it was",
        "published": True,
        "level": None,
        "height": None,
        "before": None,
        "after": None,
        "loss": None,
        "cells": [],
        "steps": [],
    }
    return column | more


def _verdict(model: str, **more: Any) -> dict[str, Any]:
    verdict = {
        "model": model,
        "holds": True,
        "required": 5,
        "achieved": 6,
        "failing_classes": 0,
        "failing_rows": 0,
        "classes": 12,
        "rows": 950,
        "column": None,
        "note": "",
        "smallest": 6,
        "demands": [],
    }
    return verdict | more


@pytest.fixture
def document() -> dict[str, Any]:
    quasi = {"before": 70, "after": 7, "height": 4}
    return {
        "format": "halfmask.release/1",
        "outcome": "950 of 1,000 rows may leave.",
        "rows": {"original": 1000, "published": 950, "suppressed": 50, "suppressed_share": 0.05},
        "models": [{"model": "k-anonymity", "k": 5}, {"model": "t-closeness", "t": 0.3}],
        "verdicts": [
            _verdict("k-anonymity"),
            _verdict(
                "t-closeness (ordered distance)",
                required=0.3,
                achieved=0.28765432,
                column=HOSTILE,
                note="A note of the model.",
            ),
        ],
        "loss": 0.2346,
        "levels": {"age": 1, HOSTILE: 4},
        "columns": [
            _column("name", "identifier", published=False, action="removed: it names a person"),
            _column("age", "quasi", level=1, loss=0.2, cells=[{"level": 1, "rows": 950}], **quasi),
            _column(
                HOSTILE, "quasi", level=4, loss=1.0, cells=[{"level": 4, "rows": 950}], **quasi
            ),
            _column("disease", "sensitive", before=9, after=8),
        ],
        "risk": {"smallest": 6, "highest_risk": 1 / 6, "mean_risk": 12 / 950},
        "classes": {
            "count": 12,
            "smallest": 6,
            "largest": 300,
            "mean": 79.2,
            "bins": [
                {"smallest": 6, "largest": 9, "classes": 4, "rows": 30},
                {"smallest": 10, "largest": 10, "classes": 0, "rows": 0},
                {"smallest": 11, "largest": 300, "classes": 8, "rows": 920},
            ],
        },
        "method": "optimal",
        "metric": "loss",
        "gap": 0.0,
        "steps": 1,
        "parameters": {"suppression": 0.05, "seed": None, "weights": {"age": 1.0}, "models": []},
        "versions": {"python": "3.11.7", "halfmask": "0.1.0"},
        "notes": ["A note of the search."],
    }


@pytest.fixture
def local(document: dict[str, Any]) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    changed |= {"levels": None, "method": "local", "gap": None, "steps": 2}
    changed["columns"][1] |= {
        "level": None,
        "cells": [{"level": 0, "rows": 700}, {"level": 5, "rows": 250}],
    }
    return changed
