"""The door lets no table out that breaks a rule, whatever its maker says."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import halfmask as hm
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.candidate import Proof
from halfmask.release.seal import seal
from halfmask.release.tabulation.door import TableRelease
from halfmask.tabulate import run


@pytest.fixture
def candidates(monkeypatch):
    """What the verb hands to the door, kept for a second look."""
    seen = []

    def keep(candidate):
        seen.append(candidate)
        return seal(candidate)

    monkeypatch.setattr(run, "seal", keep)
    return seen


@pytest.fixture
def suppressed(town, candidates):
    hm.tabulate(town, ["city", "ill"], threshold=4)
    return candidates[0]


def cell(candidate, *labels):
    grid = candidate.grid
    places = [axis.labels.index(label) for axis, label in zip(grid.axes, labels, strict=True)]
    return int(np.ravel_multi_index(places, grid.shape))


def changed(candidate, at, value):
    values = candidate.values.copy()
    values[at] = value
    return replace(candidate, values=values)


def test_what_was_made_passes(suppressed):
    assert isinstance(seal(suppressed), TableRelease)


def test_a_figure_that_is_not_true(suppressed):
    with pytest.raises(InternalError, match="not the one that is counted again"):
        seal(changed(suppressed, cell(suppressed, "a", "no"), 3))


def test_a_figure_that_a_rule_forbids(suppressed):
    with pytest.raises(InternalError, match="a rule forbids"):
        seal(changed(suppressed, cell(suppressed, "b", "hiv"), 1))


def test_a_secondary_cell_that_was_forgotten(suppressed):
    hidden = np.isnan(suppressed.values)
    true = suppressed.findings["values"]
    for at in np.flatnonzero(hidden & (suppressed.findings["people"] >= 8)):
        with pytest.raises(InternalError, match="found out too closely"):
            seal(changed(suppressed, at, true[at]))


def test_an_empty_cell_that_is_withheld(suppressed):
    with pytest.raises(InternalError, match="without anybody"):
        seal(changed(suppressed, cell(suppressed, "d", "hiv"), np.nan))


def test_proofs_are_not_believed(suppressed):
    # Without proofs the door looks for its own, and finds them.
    assert seal(replace(suppressed, proofs=())).withheld > 0
    at = cell(suppressed, "b", "hiv")
    true = suppressed.findings["values"]
    forged = Proof(at, 1, np.array([at]), np.array([50.0]))
    open_ = suppressed.values.copy()
    for one in np.flatnonzero(np.isnan(open_)):
        if suppressed.findings["people"][one] >= 8:
            open_[one] = true[one]
    with pytest.raises(InternalError, match="found out"):
        seal(replace(suppressed, values=open_, proofs=(forged,)))


def test_everything_withheld(suppressed):
    with pytest.raises(PrivacyError, match="Every cell"):
        seal(replace(suppressed, values=np.full(suppressed.grid.size, np.nan)))


def test_demands_are_read_by_the_door_itself(suppressed):
    # The same figures under rules without the threshold still keep people's own k.
    loose = replace(suppressed, rules={**suppressed.rules, "threshold": None})
    assert seal(loose).demands.kept
    with pytest.raises(InternalError, match="a rule forbids"):
        seal(changed(loose, cell(suppressed, "b", "hiv"), 1))


def test_columns_that_must_not_leave(suppressed):
    design = replace(suppressed.design, by=("city", "id"))
    with pytest.raises(InternalError, match="must not"):
        seal(replace(suppressed, design=design))


def test_rounded_figures(town, candidates):
    hm.tabulate(town, ["city", "sex"], method="round", base=10)
    made = candidates[0]
    at = cell(made, "a", "f")
    for value, words in ((made.values[at] + 20, "farther"), (made.values[at] + 3, "multiple|far")):
        with pytest.raises(InternalError, match=words):
            seal(changed(made, at, value))
    up = changed(made, at, made.values[at] + 10)
    with pytest.raises(InternalError, match=r"add up|farther"):
        seal(up)


def test_sums_are_held_to_dominance_and_p(town, candidates):
    hm.tabulate(town, ["city", "ill"], sum="income", threshold=3, p=10, demands="ignore")
    made = candidates[0]
    at = cell(made, "b", "hiv")
    with pytest.raises(InternalError, match="a rule forbids"):
        seal(changed(made, at, made.findings["values"][at]))


def test_a_release_cannot_be_made_or_copied_by_hand(suppressed):
    release = seal(suppressed)
    with pytest.raises(PrivacyError, match=r"call halfmask\.tabulate"):
        TableRelease(guarantee=release.guarantee, method="suppress", grid=release.grid, value="n",
                     withheld=0, _arrow=release.to_arrow(), door=None)  # fmt: skip
    with pytest.raises(PrivacyError):
        pickle.dumps(release)


def test_public_forms_have_one_mark(suppressed, tmp_path):
    release = seal(suppressed)
    document = str(release.to_dict())
    assert "primary" not in document
    assert "reasons" not in document
    release.write(tmp_path / "long.csv")
    release.write(tmp_path / "crossed.parquet", form="crossed")
    release.report(tmp_path / "table.html")
    release.report(tmp_path / "table.json")
    text = (tmp_path / "long.csv").read_text(encoding="utf-8")
    assert text.splitlines()[0] == '"city","ill","count","withheld"'
    assert "<td>x</td>" in (tmp_path / "table.html").read_text(encoding="utf-8")
    assert release.to_pandas()["withheld"].sum() == release.withheld
    assert len(release.to_polars()) == len(release)
    assert release.to_crossed().num_rows == 5
    with pytest.raises(hm.errors.ParameterError):
        release.write(tmp_path / "other.csv", form="wide")
