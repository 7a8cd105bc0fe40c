"""A service over a small table."""

from __future__ import annotations

import pytest
from serving import PEOPLE, served


@pytest.fixture
def service(tmp_path):
    with served(tmp_path / "private") as made:
        yield made


@pytest.fixture
def opened(service):
    """The service with the small table, roles as a person would set them."""
    assert service.upload(PEOPLE)["ok"]
    schema = {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
            "city": {"role": "quasi"},
            "disease": {"role": "sensitive"},
        }
    }
    assert service.run("PUT", "/api/schema", json=schema)["ok"]
    return service
