"""A package of somebody else that brings a model, a mask or measures, as an installer leaves it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"


def install_package(home: Path, module: str, source: str, group: str, place: str) -> None:
    """Write a package of one module whose ``place`` is an entry point of ``group``."""
    (home / f"{module}.py").write_text(source, encoding="utf-8")
    facts = home / f"{module}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[{group}]\none = {place}\n")


def run_beside(home: Path, *arguments: str) -> str:
    """What Python prints in a process that finds the packages in ``home``."""
    path = os.pathsep.join([str(home), str(SOURCE)])
    found = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, capture_output=True, check=False, cwd=home, env=found, text=True)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout
