"""Adult as the thesis uses it, with demands and a tag that follows each row through a release."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm

_FILE = Path(__file__).parents[3] / "benchmarks" / "_adult.py"


@pytest.fixture(scope="session")
def thesis_adult(data: Path) -> hm.Table:
    spec = importlib.util.spec_from_file_location("_adult", _FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    table = module.adult(data / "adult")
    rows = table.arrow.append_column("tag", pa.array(np.arange(len(table))))
    columns = {**table.schema.columns, "tag": hm.Column("other")}
    return hm.Table(rows, replace(table.schema, columns=columns))
