"""To add a method that divides rows: one function and one line. The verbs and the page follow."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import json

import numpy as np
from click.testing import CliRunner
from pydantic import ValidationError
from pyarrow import csv

from halfmask.anonymize.partition import run
from halfmask.anonymize.partition.methods import Division, Method, repair


def divide_in_order(task):
    '''Neighbors in the order of the rows, as many as anybody demands.'''
    ids = np.arange(len(task)) // int(task.demands.k.max())
    order = ids.max() - ids if task.options.get("direction") == "down" else ids
    return Division(repair(task, order))


run.DIVISIONS["in-order"] = Method(divide_in_order, options={"direction": ("up", "down")})

import halfmask as hm
from halfmask.cli.main import cli
from halfmask.errors import ParameterError
from halfmask.service import requests
from halfmask.service.app import state
from halfmask.service.jobs import Jobs
from halfmask.service.workspace import Workspace

people = hm.read({"age": [30, 31, 50, 51, 70, 71]}, schema={"age": "quasi"})
csv.write_csv(people.arrow, "people.csv")
release = hm.anonymize(people, hm.KAnonymity(2), method="in-order", direction="down")
told = "people.csv --quasi age --k 2 --method in-order -o out.csv --json".split()
shell = CliRunner().invoke(cli, ["anonymize", *told])
tried = hm.frontier(people, [hm.KAnonymity(2)], methods=["in-order"])
gained = hm.compare_policies(people, ["personal"], k=(2, 2, 2), seeds=[0], method="in-order")
refused = []
for settings in ({"method": "nonsense"}, {"method": "in-order", "direction": "left"}):
    try:
        hm.anonymize(people, hm.KAnonymity(2), **settings)
    except ParameterError as error:
        refused.append(str(error))
try:
    requests.AnonymizeRequest(direction="left")
except ValidationError as error:
    refused.append(error.errors()[0]["ctx"]["expected"])
space = Workspace()
page = state(space, Jobs(lambda: None))["choices"]["methods"]
space.close()
print(json.dumps({
    "classes": sorted(release.to_arrow()["age"].to_pylist()),
    "parameters": release.to_dict()["parameters"],
    "shell": json.loads(shell.stdout)["method"],
    "tried": [point["name"] for point in tried.to_dict()["points"]],
    "gained": gained.method,
    "asked": requests.AnonymizeRequest(k=2, method="in-order", direction="down").direction,
    "refused": refused,
    "page": page,
}))
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a process sees whose divisions have one line more."""
    home = tmp_path_factory.mktemp("method")
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, check=False, cwd=home, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_it_divides_and_its_release_leaves_by_the_door(seen):
    # Cells of two years hold two people; their ends are held by one person each.
    assert seen["classes"] == ["28-33", "28-33", "48-53", "48-53", "68-73", "68-73"]
    assert seen["parameters"]["direction"] == "down"


def test_the_verbs_take_it(seen):
    assert (seen["shell"], seen["gained"]) == ("in-order", "in-order")
    assert any("in-order" in name for name in seen["tried"]), seen["tried"]


def test_the_page_offers_it_and_takes_its_option(seen):
    assert "in-order" in seen["page"]
    assert seen["asked"] == "down"


def test_wrong_words_are_answered_with_those_that_it_takes(seen):
    unknown, python, page = seen["refused"]
    assert "in-order" in unknown
    assert "'up', 'down'" in python
    assert page == "'up' or 'down'"
