"""The heat map: every cell is there, red where parts meet often, blue where they do not."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from halfmask.coclustering.generate import heat_map
from halfmask.coclustering.hierarchy import simplify
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid
from halfmask.errors import InputError


def test_every_cell_is_drawn_in_its_color(grid):
    coarse = simplify(grid, parts={"part": 7})
    picture = ElementTree.fromstring(heat_map(coarse))  # noqa: S314 - our own text
    cells = picture.findall("{http://www.w3.org/2000/svg}rect")
    assert len(cells) == 21
    for cell in cells:
        words = cell[0].text
        gain = float(re.search(r"([+-][\d.]+) nats", words)[1])
        red, _, blue = map(int, re.findall(r"\d+", cell.get("fill")))
        assert (red == 255) if gain > 0 else (blue == 255)
    assert any("species=setosa" in cell[0].text and "150 obs" in cell[0].text for cell in cells)


def test_values_are_escaped():
    sides = [
        Variable("a", "categorical", 2, ("<x>", "&")),
        Variable("b", "categorical", 2, ("y", "z")),
    ]
    codes = np.repeat([0, 1], 30).astype(np.int32)
    text = heat_map(optimize_grid(observe(sides, [codes, codes])))
    assert "&lt;x&gt;" in text
    assert "<x>" not in text


def test_other_grids_are_refused():
    codes = np.repeat([0, 1], 30).astype(np.int32)
    sides = [Variable(name, "categorical", 2) for name in "abc"]
    with pytest.raises(InputError, match="two variables"):
        heat_map(optimize_grid(observe(sides, [codes] * 3)))
