from __future__ import annotations

import copy
from fractions import Fraction

import pyarrow as pa
import pytest

from halfmask.dp.accountant import Accountant, Allowance, Receipt, ViewCost
from halfmask.dp.budget import Approximate, Pure
from halfmask.errors import InternalError, PrivacyError
from halfmask.release import seal
from halfmask.release.candidate import NoiseCandidate
from halfmask.table.schema import Schema


def paid(promise=None) -> Allowance:
    promise = promise or Pure(1)
    allowance = Accountant(promise).allow(promise, "test")
    allowance.charge(ViewCost("sex", "DiscreteLaplace", allowance.limit))
    return allowance


def against(receipt: Receipt, **more: object) -> NoiseCandidate:
    rows = pa.table({"sex": ["f", "m", "f"]})
    return NoiseCandidate(rows, receipt, {"sex": 2}, "test", **more)  # type: ignore[arg-type]


def test_a_receipt_opens_the_door() -> None:
    made = seal(against(paid().receipt()))
    assert len(made) == 3
    assert (made.verdicts, made.loss, made.levels, made.suppressed) == ((), None, None, 0)


def test_an_overspent_receipt_does_not() -> None:
    allowance = paid()
    allowance.entries.append(ViewCost("more", "m", Pure(1)))
    with pytest.raises(InternalError):
        seal(against(allowance.receipt()))


def test_a_receipt_without_views_does_not() -> None:
    allowance = Accountant(Pure(1)).allow(Pure(1), "test")
    with pytest.raises(InternalError):
        seal(against(allowance.receipt()))


def test_test_noise_does_not() -> None:
    allowance = paid()
    allowance.secure = False
    with pytest.raises(PrivacyError, match="secure"):
        seal(against(allowance.receipt()))


def test_a_large_delta_is_told() -> None:
    made = seal(against(paid(Approximate(1, "0.5")).receipt()))
    assert any("Delta" in note for note in made.notes)
    made = seal(against(paid(Approximate(1, "0.3")).receipt()))  # three rows: below a third
    assert not any("Delta" in note for note in made.notes)


def test_a_release_is_not_copied() -> None:
    with pytest.raises(PrivacyError):
        copy.copy(seal(against(paid().receipt())))


def test_a_receipt_that_forgot_what_people_allow_does_not() -> None:
    """The table says that people state an epsilon; who planned the answer must have asked."""
    schema = Schema({"sex": "quasi"}, policy={"epsilon": "own"}, epsilon_levels=(0.5, 2))
    with pytest.raises(InternalError, match="what they pay"):
        seal(against(paid().receipt(), schema=schema))
    half, two = Fraction(1, 2), Fraction(2)
    for levels in ({half: half}, {half: Fraction(1), two: Fraction(1)}):
        allowance = paid()
        allowance.levels = levels  # one level is missing, one pays more than it allows
        with pytest.raises(InternalError):
            seal(against(allowance.receipt(), schema=schema))
    allowance = paid()
    allowance.levels = {half: Fraction(0), two: Fraction(1)}
    assert len(seal(against(allowance.receipt(), schema=schema))) == 3
    aside = against(paid().receipt(), schema=schema, parameters={"demands": "ignore"})
    assert seal(aside).to_dict()["outcome"].startswith("People's own")


def test_noise_that_is_nearly_exact_does_not_leave_beside_people_who_ask_for_k() -> None:
    schema = Schema({"sex": "quasi"}, policy={"k": "own"})
    assert len(seal(against(paid().receipt(), schema=schema))) == 3
    with pytest.raises(InternalError, match="nearly exact"):
        seal(against(paid(Pure(2)).receipt(), schema=schema))
    aside = seal(against(paid(Pure(2)).receipt(), schema=schema, parameters={"demands": "ignore"}))
    assert "set aside" in aside.to_dict()["outcome"]
