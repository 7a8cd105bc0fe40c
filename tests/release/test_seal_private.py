from __future__ import annotations

import copy

import pyarrow as pa
import pytest

from halfmask.dp.accountant import Accountant, Allowance, Entry
from halfmask.dp.budget import Approximate, Pure
from halfmask.errors import InternalError, PrivacyError
from halfmask.release.seal_private import Draft, seal_private

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
