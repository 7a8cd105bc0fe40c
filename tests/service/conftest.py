"""A service over a small table."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

# The service is an extra: without it there is nothing to test.
collect_ignore_glob = [] if find_spec("fastapi") and find_spec("uvicorn") else ["test_*.py"]


@pytest.fixture
def service(tmp_path):
    from serving import served

    with served(tmp_path / "private") as made:
        yield made


@pytest.fixture
def opened(service):
    """The service with the small table, roles as a person would set them."""
    return _with_table(service)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """The same for questions that are all refused and change nothing."""
    from serving import served

    with served(tmp_path_factory.mktemp("guarded") / "private") as made:
        yield _with_table(made)


def _with_table(service):
    from serving import PEOPLE

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
