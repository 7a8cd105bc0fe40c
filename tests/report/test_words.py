from __future__ import annotations

from pathlib import Path

import pytest

from halfmask.models.verdict import known_models
from halfmask.report import side_by_side
from halfmask.report.words import effort, model_words

WORDS = {model.family: model.words for model in known_models()}


@pytest.mark.parametrize("family", WORDS)
def test_every_model_has_its_words(family):
    assert model_words(family) is WORDS[family]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("entropy l-diversity", "l-diversity"),
        ("personal k-anonymity", "personal k-anonymity"),
        ("(alpha, k)-anonymity", "(alpha, k)-anonymity"),
        ("t-closeness (equal distance)", "t-closeness"),
        ("relaxed delta-disclosure", "delta-disclosure"),
    ],
)
def test_kinds_of_a_model_share_its_words(name, key):
    assert model_words(name) is WORDS[key]


def test_an_unknown_model_points_to_its_documentation():
    assert "documentation" in model_words("something new").promise


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"gap": 0.0}, "proven"),
        ({"gap": None}, "heuristic"),
        ({"gap": 0.0125}, "0.0125"),
        ({"method": "recoding", "gap": None}, "other rows"),
    ],
)
def test_the_effort_is_told_as_it_was(document, changes, part):
    assert part in effort(document | changes)


def test_the_stars_of_measures_are_those_of_the_docs():
    docs = Path(__file__).parents[2] / "docs" / "discrimination-rate.md"
    told = [line for line in docs.read_text("utf-8").splitlines() if "☆" in line or "★" in line]
    shown = [f"| {name} | {' | '.join(stars)} |" for name, stars in side_by_side.rated_measures()]
    assert len(shown) == 8
    assert shown == told
