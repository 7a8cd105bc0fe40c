"""Khiops as a second optimizer: the extra ``khiops``, and what the tests compare with.

Khiops reads and writes files; they hold the observations, stand in a private temporary folder and
are deleted. Where Khiops finds no structure it writes no report, which means the null grid.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.grid import Grid
from halfmask.errors import EngineError, EngineUnavailableError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import GridPartition
    from halfmask.coclustering.observations import Observations, Variable

_NAME = "observations"
_COUNT = "count"


def khiops_cocluster(observations: Observations) -> Grid:
    """The grid that Khiops 11 finds, with its cost in the Khiops 11 form; it ends by itself.

    Raises:
        EngineUnavailableError: the package ``khiops`` is not installed.
        EngineError: Khiops failed.
    """
    with tempfile.TemporaryDirectory(prefix="halfmask-khiops-") as folder:
        report = _run(observations, Path(folder))
    judge = GridCriterion(observations, "khiops11")
    if report is None:
        return Grid.of(judge, tuple(np.zeros(s, dtype=np.int32) for s in observations.sizes))
    return Grid.of(judge, read_report(observations, report))


def _run(observations: Observations, folder: Path) -> dict[str, Any] | None:
    path = os.environ.get("PATH", "")
    binaries = str(Path(sys.executable).parent)
    if binaries not in path.split(os.pathsep):  # Khiops looks for its programs there
        os.environ["PATH"] = binaries + os.pathsep + path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about sample tables that we do not need
        try:
            from khiops import core
        except ImportError as error:
            raise EngineUnavailableError("khiops", 'pip install "halfmask[khiops]"') from error
        data = _write(observations, folder)
        target = folder / "report.khcj"
        try:
            core.train_coclustering(
                _dictionary(core, observations),
                _NAME,
                str(data),
                [variable.name for variable in observations.variables],
                str(target),
                frequency_variable=_COUNT,
                temp_dir=str(folder),
            )
        except core.KhiopsRuntimeError as error:
            raise EngineError("Khiops ended with an error.") from error
    if not target.exists():
        return None
    report: dict[str, Any] = json.loads(target.read_text(encoding="utf-8", errors="replace"))
    return report


def _dictionary(core: Any, observations: Observations) -> Any:
    domain, dictionary = core.DictionaryDomain(), core.Dictionary()
    dictionary.name = _NAME
    for variable in observations.variables:
        side = core.Variable()
        side.name = variable.name
        side.type = "Numerical" if variable.kind == "numeric" else "Categorical"
        dictionary.add_variable(side)
    count = core.Variable()
    count.name, count.type = _COUNT, "Numerical"
    dictionary.add_variable(count)
    domain.add_dictionary(dictionary)
    return domain


def _write(observations: Observations, folder: Path) -> Path:
    """The observations as codes: no value leaves the process."""
    target = folder / "observations.txt"
    names = [variable.name for variable in observations.variables]
    table = np.column_stack([observations.codes, observations.weights])
    header = "\t".join([*names, _COUNT])
    np.savetxt(target, table, fmt="%d", delimiter="\t", header=header, comments="")
    return target


def read_report(observations: Observations, report: dict[str, Any]) -> GridPartition:
    """The partition in a report on observations whose values were written as their codes."""
    sides = {side["name"]: side for side in report["coclusteringReport"]["dimensionPartitions"]}
    return tuple(_side(sides.get(variable.name), variable) for variable in observations.variables)


def _side(side: dict[str, Any] | None, variable: Variable) -> NDArray[np.int32]:
    out = np.zeros(variable.size, dtype=np.int32)
    if side is None:  # a variable with one part is left out of the report
        return out
    if variable.kind == "numeric":
        ends = [part["bounds"][1] for part in side["intervals"][:-1] if part.get("bounds")]
        return np.searchsorted(np.array(ends), np.arange(variable.size)).astype(np.int32)
    for part, group in enumerate(side["valueGroups"]):
        codes = [int(value) for value in group["values"] if value.isdigit()]
        out[codes] = part
    return out
