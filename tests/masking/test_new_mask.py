"""To add a mask: one class. Everything else follows from what it declares."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest
from packages import install_package, run_beside

from halfmask.masking.masks import secret_places
from halfmask.masking.step import MaskStep, MaskWords, one_column, secret_place

ROOT = Path(__file__).resolve().parents[2]

MASK = '''
"""Reverses texts, as a package of somebody else brings it."""

from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow.compute as pc

from halfmask.masking.step import MaskStep, MaskWords, Outcome, one_column, register_mask
from halfmask.models.verdict import whole_number


@register_mask
@dataclass(frozen=True, slots=True)
class Reverse(MaskStep):
    """Turn texts around."""

    name: ClassVar[str] = "reverse"
    words: ClassVar[MaskWords] = MaskWords("Texts are turned around.", "Nobody.", "Readers.")

    column: str = field(metadata=one_column())
    times: int = field(default=1, metadata=whole_number(1))

    def apply(self, rows):
        values = rows.table.arrow[self.column].cast("string")
        for _ in range(self.times):
            values = pc.utf8_reverse(values)
        return Outcome({self.column: values})
'''

SCRIPT = """
import json, runpy, sys
from pathlib import Path

from click.testing import CliRunner

import halfmask as hm
from halfmask.cli.main import cli

Path("people.csv").write_text("town,age\\nxy,1\\nzy,2\\n")
Path("people.toml").write_text(
    '[mask]\\nsteps = ["reverse town"]\\n'
    '[columns.town]\\nrole = "quasi"\\n[columns.age]\\nrole = "quasi"\\n'
)

def shell(*arguments):
    done = CliRunner().invoke(cli, [*arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout

release = hm.mask(hm.read("people.csv"), hm.masks.Reverse("town"))
release.report("release.html")
print(json.dumps({
    "help": shell("mask", "--help"),
    "command": json.loads(shell("mask", "people.csv", "--step", "reverse town times=2", "--json")),
    "schema": json.loads(shell("mask", "people.csv", "--json")),
    "report": Path("release.html").read_text(encoding="utf-8"),
    "rows": release.to_arrow()["town"].to_pylist(),
    "reference": runpy.run_path(sys.argv[1])["table"](),
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a process sees that finds a package with the mask."""
    home = tmp_path_factory.mktemp("elsewhere")
    install_package(home, "reverse_mask", MASK, "halfmask.masks", "reverse_mask:Reverse")
    told = run_beside(home, "-c", SCRIPT, str(ROOT / "scripts" / "mask_reference.py"))
    return json.loads(told.splitlines()[-1])


def test_python_applies_it(seen):
    assert sorted(seen["rows"]) == ["yx", "yz"]


def test_command_line_and_schema_file_ask_for_it(seen):
    assert "reverse COLUMN [times=NUMBER]" in " ".join(seen["help"].split())
    assert seen["command"]["steps"][0]["times"] == 2
    assert seen["schema"]["steps"][0]["mask"] == "reverse"


def test_the_report_and_the_reference_explain_it(seen):
    assert "Texts are turned around" in seen["report"]
    assert (
        "| `hm.masks.Reverse(column, times=1)` | `reverse COLUMN [times=NUMBER]` |"
        in seen["reference"]
    )


@dataclass(frozen=True, slots=True)
class Salted(MaskStep):
    """A mask from elsewhere that reads a file of its own."""

    name: ClassVar[str] = "salted"
    words: ClassVar[MaskWords] = MaskWords("Adds salt.", "Nothing.", "All.")
    column: str = field(metadata=one_column())
    salt_file: str | None = field(default=None, metadata=secret_place())


def test_the_place_of_a_secret_is_known_by_what_its_field_says():
    assert secret_places([Salted("a", salt_file="salt.key")]) == ["salt.key"]
    assert secret_places([Salted("a")]) == []
