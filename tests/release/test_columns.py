from __future__ import annotations

import pytest

from halfmask.release import Recoding, seal


@pytest.mark.parametrize(
    ("levels", "step", "words"),
    [
        ([{"age": 0, "zip": 5}], [0, 0, 0, 0, 0], "kept as it was"),
        ([{"age": 2, "zip": 5}], [0, 0, 0, 0, 0], "50-year groups, e.g. 50-99"),
        ([{"age": 4, "zip": 5}], [0, 0, 0, 0, 0], "suppressed in every row"),
        (
            [{"age": 1, "zip": 0}, {"age": 3, "zip": 5}],
            [0, 0, 1, 1, 1],
            "row by row: 10-year groups to nothing left, e.g. 30-39",
        ),
        (
            [{"age": 1, "zip": 0}, {"age": 4, "zip": 5}],
            [0, 0, 1, 1, 1],
            "row by row: 10-year groups, e.g. 30-39; 3 cells suppressed",
        ),
    ],
)
def test_what_was_done_is_said_in_words(lab, levels, step, words):
    from halfmask.models.population import AverageRisk

    table = lab.people()
    recoding = Recoding.of(table, levels)
    release = seal(
        lab.candidate(
            table,
            models=[AverageRisk(1)],
            recoding=recoding,
            step=lab.steps(*step),
            parameters={},
        )
    )
    age = next(c for c in release.columns if c.name == "age")
    assert age.action == words
    assert sum(age.cells.values()) == 5
