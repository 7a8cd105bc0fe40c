"""Every mechanism and every private method has its page, and every hazard its decision."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from halfmask.dp import mechanisms

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "definitions"
PARTS = ("Definition", "Source", "Argument", "Protects", "Does not protect", "Attacker",
         "Exactness")  # fmt: skip


def named() -> list[str]:
    kinds = [kind for kind in vars(mechanisms).values() if hasattr(kind, "cost")]
    own = [kind.__name__ for kind in kinds if kind.__module__ == mechanisms.__name__]
    found = [re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in own]
    assert len(found) >= 6
    found += ["personal_sampling", "personal_partitioning"]
    return [*found, "histogram", "privbayes", "marginals", "dp_cocluster"]


@pytest.mark.parametrize("name", named())
def test_page_with_the_argument(name: str) -> None:
    page = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    for part in PARTS:
        assert f"**{part}.**" in page, part


def test_every_hazard_has_a_decision_and_tests_that_exist() -> None:
    page = (ROOT / "docs" / "dp.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (D\d+) [^|]*\|[^|]*\|([^|]*)\|$", page, re.MULTILINE))
    assert set(rows) == {f"D{i}" for i in range(1, 17)}
    tests: defaultdict[str, str] = defaultdict(str)
    for path in (ROOT / "tests").rglob("*.py"):
        tests[path.name] += path.read_text(encoding="utf-8")
    for hazard, cited in rows.items():
        names = re.findall(r"`(test_\w+\.py)::(\w+)`", cited)
        assert names, hazard
        for file, name in names:
            assert f"def {name}(" in tests[file], name
