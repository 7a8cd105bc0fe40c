from __future__ import annotations

import pytest

from halfmask.cli.show import number_text


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, ""),
        (True, "yes"),
        (30162, "30,162"),
        (45725.0, "45,725"),
        (44803.28, "44,803.3"),
        (0.24193, "0.2419"),
        (2.5e-7, "2.5e-07"),
        (float("inf"), "inf"),
    ],
)
def test_values_are_written_for_people(value, written):
    assert number_text(value) == written
