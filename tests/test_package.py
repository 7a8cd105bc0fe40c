"""What somebody meets who installs the package and imports it."""

from __future__ import annotations

from importlib.resources import files

import pytest

import halfmask


def test_type_checkers_are_told_that_the_package_has_types():
    assert files("halfmask").joinpath("py.typed").is_file()


@pytest.mark.parametrize("name", halfmask.__all__)
def test_every_promised_name_loads(name):
    assert getattr(halfmask, name) is not None
    assert name in dir(halfmask)


def test_a_name_that_is_not_there_is_answered_with_those_that_are():
    with pytest.raises(AttributeError, match=r"has no 'anonymise'; it has .*anonymize"):
        _ = halfmask.anonymise
