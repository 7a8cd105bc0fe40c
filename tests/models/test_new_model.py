"""To add a model: one class. Everything else follows from what it declares."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import install_package, run_beside

ROOT = Path(__file__).resolve().parents[2]

MODEL = '''
"""p-sensitive k-anonymity, as a package of somebody else brings it."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from halfmask.models.statistics import highest_demands, histogram, pass_empty
from halfmask.models.verdict import (
    KernelDemand, Model, Option, Words, judge, number, register_model, sensitive_column,
    whole_number, word,
)


@register_model
@dataclass(frozen=True, slots=True)
class PSensitive(Model):
    """Require ``k`` people and ``p`` values of ``column`` in every class."""

    family: ClassVar[str] = "p-sensitive k-anonymity"
    monotone: ClassVar[bool] = True
    absorbing: ClassVar[bool] = True
    option: ClassVar[Option] = Option("p-sensitive", "Distinct values; needs --k.", "p: values")
    words: ClassVar[Words] = Words("A sentence of its own.", "Anybody.", "Much.", "at least")

    p: int = field(metadata=whole_number(1, stronger=1))
    k: int = field(metadata=whole_number(2, stronger=1, option="k"))
    column: str = field(metadata=sensitive_column())
    mode: str = field(default="plain", metadata=word("Which", plain="plain", strict="strict"))

    def kernel_demand(self, table):
        return KernelDemand(rows=self.k, column=self.column, values=self.p)

    def passes(self, classes):
        values = np.diff(histogram(classes, self.column).starts)
        return pass_empty(classes, (classes.people >= self.k) & (values >= self.p))

    def check(self, classes):
        values = np.diff(histogram(classes, self.column).starts)
        return judge(
            self, classes, self.passes(classes), required=self.p, achieved=int(values.min())
        )


@register_model
@dataclass(frozen=True, slots=True)
class PersonalPairs(Model):
    """Require twice as many people as each person asks for."""

    family: ClassVar[str] = "personal pairs"
    monotone: ClassVar[bool] = True
    policy: ClassVar[tuple[str, ...]] = ("k",)
    option: ClassVar[Option] = Option("personal-pairs", "Twice each person's own k.", "twice k")
    words: ClassVar[Words] = Words("Twice what they asked for.", "Anybody.", "Much.", "at least")

    @classmethod
    def own(cls, table):
        return [cls()]

    def passes(self, classes):
        return pass_empty(classes, classes.people >= 2 * highest_demands(classes, "k", 1))

    def check(self, classes):
        least = int(classes.people.min())
        return judge(self, classes, self.passes(classes), required=2, achieved=least)
'''

SCRIPT = """
import json, runpy, sys
from pathlib import Path

from click.testing import CliRunner
from pyarrow import csv

import halfmask as hm
from halfmask.cli.main import cli
from halfmask.models.options import read_alternatives
from halfmask.service import requests

def shell(*arguments):
    done = CliRunner().invoke(cli, [*arguments])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.stdout

rows = {"age": [30, 30, 41, 41, 30], "disease": ["a", "b", "a", "c", "b"]}
people = hm.read(rows, schema={"age": "quasi", "disease": "sensitive"})
csv.write_csv(people.arrow, "people.csv")
roles = ("people.csv", "--quasi", "age", "--sensitive", "disease")
promise = ("--k", "2", "--p-sensitive", "disease=2:strict")
release = hm.anonymize(people, hm.PSensitive(2, 2, "disease"), method="mondrian")
release.report("release.html")
Path("asking.csv").write_text("age,own\\n" + "".join(f"{30 + i},2\\n" for i in range(8)))
Path("asking.toml").write_text('[policy]\\nk = "own"\\n[columns.age]\\nrole = "quasi"\\n')
demanded = hm.anonymize(hm.read("asking.csv"), method="mondrian")
reference = runpy.run_path(sys.argv[1])["table"]()
print(json.dumps({
    "help": shell("anonymize", "--help"),
    "frontier help": shell("frontier", "--help"),
    "check": json.loads(shell("check", *roles, *promise, "--json")),
    "anonymize": json.loads(shell("anonymize", *roles, *promise, "-o", "out.csv", "--json")),
    "frontier": json.loads(shell("frontier", *roles, "--k", "2,3", "--p-sensitive", "disease=1,2",
                                 "--suppression", "0", "--json")),
    "alternatives": [[one.to_dict() for one in several] for several in
                     read_alternatives({"k": "2", "p_sensitive": ["disease=1,2"]})],
    "asked": requests.AnonymizeRequest(p_sensitive=["disease=2"]).p_sensitive,
    "asked of a frontier": requests.FrontierRequest(p_sensitive=["disease=1,2"]).p_sensitive,
    "page": [one for one in requests.promise_fields() if one["name"] == "p_sensitive"],
    "report": Path("release.html").read_text(encoding="utf-8"),
    "document": release.to_dict(),
    "reference": reference,
    "demanded": demanded.to_dict(),
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a process sees that finds a package with the model."""
    home = tmp_path_factory.mktemp("elsewhere")
    install_package(home, "p_sensitive", MODEL, "halfmask.models", "p_sensitive:PSensitive")
    told = run_beside(home, "-c", SCRIPT, str(ROOT / "scripts" / "model_reference.py"))
    return json.loads(told.splitlines()[-1])


def test_the_command_line_asks_for_it(seen):
    assert "--p-sensitive COLUMN=NUMBER[:MODE]" in seen["help"]
    assert "--p-sensitive COLUMN=NUMBERS[:MODE]" in seen["frontier help"]


def test_the_verbs_keep_it(seen):
    verdicts = {one["model"]: one for one in seen["check"]["verdicts"]}
    assert verdicts["p-sensitive k-anonymity"]["achieved"] == 2
    assert seen["check"]["holds"]
    stated = {"model": "p-sensitive k-anonymity", "p": 2, "k": 2, "column": "disease"}
    assert seen["anonymize"]["models"][1] == {**stated, "mode": "strict"}
    assert seen["document"]["models"] == [{**stated, "mode": "plain"}]
    assert seen["document"]["verdicts"][0]["holds"]


def test_a_demand_of_the_schema_file_is_kept_by_it(seen):
    verdicts = {one["model"]: one["holds"] for one in seen["demanded"]["verdicts"]}
    assert verdicts == {"personal k-anonymity": True, "personal pairs": True}
    assert seen["demanded"]["classes"]["smallest"] >= 4  # everybody asks for two


def test_a_frontier_tries_it_from_weak_to_strong(seen):
    assert [[one["p"] for one in several] for several in seen["alternatives"]] == [[1, 2]]
    names = [point["name"] for point in seen["frontier"]["points"]]
    assert any(name.startswith("p = 2, k = 3 (disease)") for name in names), names


def test_the_page_asks_for_it(seen):
    assert seen["asked"] == ["disease=2"]
    assert seen["asked of a frontier"] == ["disease=1,2"]
    (field,) = seen["page"]
    assert field["label"] == "p: values"
    assert (field["kind"], field["min"], field["column"]) == ("whole", 1, True)
    words = [["plain", "plain"], ["strict", "strict"]]
    assert field["choices"] == [{"label": "Which", "words": words}]


def test_the_report_and_the_reference_explain_it(seen):
    assert "A sentence of its own." in seen["report"]
    line = '| `hm.PSensitive(p, k, column, mode="plain")` | `--p-sensitive COLUMN=NUMBER[:MODE]` |'
    assert line in seen["reference"]
