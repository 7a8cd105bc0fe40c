"""Parameters out of range are refused, with the parameter's name."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from halfmask.errors import ParameterError
from halfmask.models import (
    AlphaKAnonymity,
    AverageRisk,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    KAnonymity,
    KMap,
    LDiversity,
    PersonalKAnonymity,
    SampleUniques,
    TCloseness,
)
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table

POPULATION = Table(pa.table({"q": ["a"]}), Schema({"q": Column("quasi")}))

REFUSED = [
    (lambda: KAnonymity(1), "k"),
    (lambda: KAnonymity(2.5), "k"),
    (lambda: KAnonymity(True), "k"),
    (lambda: KAnonymity("5"), "k"),
    (lambda: PersonalKAnonymity(default=0), "default"),
    (lambda: LDiversity(1, "s"), "l"),
    (lambda: LDiversity(2.5, "s"), "l"),
    (lambda: LDiversity(1, "s", "entropy"), "l"),
    (lambda: LDiversity(math.nan, "s", "entropy"), "l"),
    (lambda: LDiversity(2, "s", "shannon"), "kind"),
    (lambda: LDiversity(2, "s", "recursive"), "c"),
    (lambda: LDiversity(2, "s", "recursive", c=0), "c"),
    (lambda: LDiversity(2, "s", c=2), "c"),
    (lambda: AlphaKAnonymity(0, 2, "s"), "alpha"),
    (lambda: AlphaKAnonymity(1.1, 2, "s"), "alpha"),
    (lambda: AlphaKAnonymity(0.5, 1, "s"), "k"),
    (lambda: TCloseness(-0.1, "s"), "t"),
    (lambda: TCloseness(1.1, "s"), "t"),
    (lambda: TCloseness(0.1, "s", "euclidean"), "distance"),
    (lambda: DeltaDisclosure(0, "s"), "delta"),
    (lambda: DeltaDisclosure(math.inf, "s"), "delta"),
    (lambda: DeltaDisclosure(1, "s", base=1), "base"),
    (lambda: DeltaDisclosure(1, "s", absent="passes"), "absent"),
    (lambda: BetaLikeness(0, "s"), "beta"),
    (lambda: BetaLikeness(1, "s", kind="super"), "kind"),
    (lambda: DeltaPresence(-0.1, 0.5, POPULATION), "lower"),
    (lambda: DeltaPresence(0.1, 1.5, POPULATION), "upper"),
    (lambda: DeltaPresence(0.6, 0.5, POPULATION), "lower"),
    (lambda: DeltaPresence(0, 0.5, None), "population"),
    (lambda: KMap(1, POPULATION), "k"),
    (lambda: LDiversity(2, "s", missing="often"), "missing"),
    (lambda: AverageRisk(0), "limit"),
    (lambda: SampleUniques(1.5), "limit"),
]


@pytest.mark.parametrize(("make", "name"), REFUSED)
def test_refused(make, name):
    with pytest.raises(ParameterError) as caught:
        make()
    assert caught.value.name == name
    assert "give" in str(caught.value)


def test_numbers_of_every_kind_are_taken():
    for t in (0, 1, 0.5, Fraction(1, 2), Decimal("0.5"), np.float64(0.5)):
        assert TCloseness(t, "s").t == t
    assert KAnonymity(np.int64(5)).k == 5


def test_the_guarded_value_and_the_population_are_not_shown():
    assert "secret" not in repr(AlphaKAnonymity(0.5, 2, "s", value="secret"))
    assert "Table" not in repr(KMap(2, POPULATION))


@pytest.mark.parametrize(
    "model",
    [
        KAnonymity(3),
        PersonalKAnonymity(default=2),
        LDiversity(2, "s", "recursive", c=1.5),
        AlphaKAnonymity(0.5, 2, "s", value="a"),
        TCloseness(0.25, "s", "ordered"),
        DeltaDisclosure(1.5, "s", base=2, absent="ignored"),
        BetaLikeness(2.5, "s", kind="enhanced"),
        AverageRisk(0.1),
        SampleUniques(0.0),
    ],
    ids=lambda model: model.name,
)
def test_what_a_document_holds_makes_the_model_again(model):
    facts = model.to_dict()
    assert facts.pop("model") == model.family
    assert type(model)(**facts) == model
