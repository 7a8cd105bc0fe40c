"""How many kernels a command compiles on the sample, counted: seconds would depend on the machine.

Each command runs in a process of its own, where nothing counts as compiled before.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from halfmask.sample import write

COUNTING = """
import sys
from halfmask.kernels.compilation.cache import KernelCache
from halfmask.kernels.compilation.compiler import Sparing

used, load = set(), KernelCache.load_overload

def note(cache, signature, context):
    used.add(cache._name)
    return load(cache, signature, context)

KernelCache.load_overload = note
Sparing._kept = False
from halfmask.cli.main import run
try:
    run()
finally:
    print("kernels", *sorted(used), file=sys.stderr)
"""

COMMANDS = {
    "own demands": (
        ["--personal-k", "--personal-l", "disease"],
        "partition.label_loss._run",
    ),
    "mdav": (["--k", "5", "--ignore-demands", "--method", "mdav"], "partition.label_loss._run"),
}


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return write(tmp_path_factory.mktemp("people"), 2_000)


@pytest.mark.parametrize("name", COMMANDS)
def test_few_kernels_are_compiled(people, tmp_path, name):
    options, kernels = COMMANDS[name]
    words = ["anonymize", str(people), *options, "-o", str(tmp_path / "out.csv")]
    ran = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", COUNTING, *words],
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line for line in ran.stderr.splitlines() if line.startswith("kernels")]
    assert told == [f"kernels {kernels}"], ran.stderr
