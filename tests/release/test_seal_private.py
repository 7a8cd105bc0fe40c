from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

from halfmask.dp.accountant import Accountant, Allowance, Entry
from halfmask.dp.budget import Approximate, Pure
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.seal_private import Draft, seal_private
from halfmask.table.schema import Schema

DRAFT = Draft(pa.table({"sex": ["f", "m", "f"]}), {"sex": 2}, "test")


def paid(promise=None) -> Allowance:
    promise = promise or Pure(1)
    allowance = Accountant(promise).allow(promise, "test")
    allowance.charge(Entry("sex", "DiscreteLaplace", allowance.limit))
    return allowance


def test_a_receipt_opens_the_door() -> None:
    made = seal_private(DRAFT, paid().receipt())
    assert len(made) == 3
    assert (made.verdicts, made.loss, made.levels, made.suppressed) == ((), None, None, 0)


def test_an_overspent_receipt_does_not() -> None:
    allowance = paid()
    allowance.entries.append(Entry("more", "m", Pure(1)))
    with pytest.raises(InternalError):
        seal_private(DRAFT, allowance.receipt())


def test_a_receipt_without_views_does_not() -> None:
    allowance = Accountant(Pure(1)).allow(Pure(1), "test")
    with pytest.raises(InternalError):
        seal_private(DRAFT, allowance.receipt())


def test_test_noise_does_not() -> None:
    allowance = paid()
    allowance.secure = False
    with pytest.raises(PrivacyError, match="secure"):
        seal_private(DRAFT, allowance.receipt())


def test_a_large_delta_is_told() -> None:
    made = seal_private(DRAFT, paid(Approximate(1, "0.5")).receipt())
    assert any("Delta" in note for note in made.notes)
    made = seal_private(DRAFT, paid(Approximate(1, "0.3")).receipt())  # three rows: below a third
    assert not any("Delta" in note for note in made.notes)


def test_a_release_is_not_copied() -> None:
    with pytest.raises(PrivacyError):
        copy.copy(seal_private(DRAFT, paid().receipt()))


def test_a_receipt_that_forgot_what_people_allow_does_not() -> None:
    """The table says that people state an epsilon; who planned the answer must have asked."""
    schema = Schema({"sex": "quasi"}, policy={"epsilon": "own"}, epsilon_levels=(0.5, 2))
    draft = replace(DRAFT, schema=schema)
    with pytest.raises(InternalError, match="what they pay"):
        seal_private(draft, paid().receipt())
    half, two = Fraction(1, 2), Fraction(2)
    for levels in ({half: half}, {half: Fraction(1), two: Fraction(1)}):
        allowance = paid()
        allowance.levels = levels  # one level is missing, one pays more than it allows
        with pytest.raises(InternalError):
            seal_private(draft, allowance.receipt())
    allowance = paid()
    allowance.levels = {half: Fraction(0), two: Fraction(1)}
    assert len(seal_private(draft, allowance.receipt())) == 3
    aside = replace(draft, parameters={"demands": "ignore"})
    assert seal_private(aside, paid().receipt()).to_dict()["outcome"].startswith("People's own")
