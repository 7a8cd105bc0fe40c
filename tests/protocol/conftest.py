"""What tests of cells share: where relays are begun that die."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from tests.protocol.deaths import Nursery

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def nursery() -> Iterator[Nursery]:
    with closing(Nursery()) as found:
        yield found
