"""halfmask inside scikit-learn, pandas and Polars: thin, and as careful as elsewhere."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import halfmask as hm
import halfmask.pandas
import halfmask.polars
from halfmask.errors import InputError, ParameterError, UnsatisfiableError
from halfmask.sklearn import Anonymizer

SCHEMA = {
    "name": "identifier",
    "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
    "sex": "quasi",
    "ill": "sensitive",
}
PEOPLE = pd.DataFrame(
    {
        "name": ["a", "b", "c", "d"],
        "age": [31, 34, 52, 58],
        "sex": ["f", "f", "m", "m"],
        "ill": ["flu", "gout", "flu", "gout"],
    },
    index=[7, 5, 3, 1],
)
NEW = PEOPLE.assign(age=[39, 30, 51, 50])
ALONE = PEOPLE.assign(age=[39, 30, 51, 20])
AGES = ["30-39", "30-39", "50-59", "50-59"]


def made(**settings):
    return Anonymizer((hm.KAnonymity(2),), SCHEMA, **settings)


def test_rows_keep_their_order_and_identifiers_stay():
    out = made().fit_transform(PEOPLE)
    assert out.index.tolist() == [0, 1, 2, 3]  # an index may hold who people are
    assert out.columns.tolist() == ["age", "sex", "ill"]
    assert [str(age) for age in out["age"]] == AGES
    assert out["ill"].tolist() == PEOPLE["ill"].tolist()


def test_an_index_leaves_only_where_it_counts_rows():
    named = PEOPLE.set_index(pd.Index(["ann", "bob", "cy", "di"], name="who"))
    out = made().fit_transform(named)
    assert out.index.equals(pd.RangeIndex(4))
    assert out.index.name is None
    counted = PEOPLE.set_index(pd.RangeIndex(10, 18, 2))
    assert made().fit_transform(counted).index.tolist() == [10, 12, 14, 16]


def test_one_promise_needs_no_list():
    out = Anonymizer(hm.KAnonymity(2), SCHEMA).fit_transform(PEOPLE)
    assert [str(age) for age in out["age"]] == AGES


def test_new_rows_get_the_levels_that_were_learned():
    fitted = made().fit(PEOPLE)
    assert fitted.recoding_.levels == {"age": 1, "sex": 0}
    assert [str(age) for age in fitted.transform(NEW)["age"]] == AGES
    assert fitted.get_feature_names_out().tolist() == ["age", "sex", "ill"]
    assert fitted.feature_names_in_.tolist() == ["name", "age", "sex", "ill"]


def test_new_rows_that_do_not_keep_the_promise_are_refused():
    with pytest.raises(UnsatisfiableError):
        made().fit(PEOPLE).transform(ALONE)
    out = made(new_rows="recode").fit(PEOPLE).transform(ALONE)
    assert [str(age) for age in out["age"]] == ["30-39", "30-39", "50-59", "20-29"]


def test_other_columns_are_refused():
    fitted = made().fit(PEOPLE)
    with pytest.raises(InputError, match="sex"):
        fitted.transform(PEOPLE.drop(columns="sex"))
    with pytest.raises(InputError, match="another order"):
        fitted.transform(PEOPLE[["age", "name", "sex", "ill"]])
    with pytest.raises(ParameterError, match="new_rows"):
        made(new_rows="often").fit(PEOPLE)


def test_it_works_in_a_pipeline_and_can_be_cloned():
    again = clone(made(demands="ignore"))
    assert again.get_params()["demands"] == "ignore"
    piped = make_pipeline(again, OneHotEncoder(sparse_output=False)).fit(PEOPLE)
    assert piped.transform(NEW).shape == (4, 6)  # 2 ages, 2 sexes, 2 illnesses
    assert np.array_equal(piped.transform(NEW)[0], piped.transform(PEOPLE)[0])


def test_polars_goes_in_and_comes_out():
    out = made().fit_transform(pl.from_pandas(PEOPLE))
    assert isinstance(out, pl.DataFrame)
    assert out["age"].cast(pl.String).to_list() == AGES


@pytest.mark.parametrize("frame", [PEOPLE, pl.from_pandas(PEOPLE)], ids=["pandas", "polars"])
def test_frames_offer_the_verbs(frame):
    assert [v.holds for v in frame.halfmask.check(hm.KAnonymity(2), schema=SCHEMA)] == [False]
    assert frame.halfmask.assess(schema=SCHEMA).smallest == 1
    release = frame.halfmask.anonymize(hm.KAnonymity(2), schema=SCHEMA, method="optimal")
    assert release.levels == {"age": 1, "sex": 0}
