"""One of two executors is killed between the rows that were written and the door that counts them.

Blocks that stand in a checkpoint folder outlast it: the release is that of memory.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from effort import THOROUGH

SCRIPT = Path(__file__).parents[1] / "tools" / "lost_executor.py"


# Of three processes of Java; that rows go to the checkpoint folder is asked in test_spark.py.
@pytest.mark.skipif(not THOROUGH, reason="make thorough kills executors")
def test_a_killed_executor_changes_nothing_in_the_release(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="Spark is not installed (halfmask[spark])")
    if shutil.which("java") is None or not Path("/proc").is_dir():
        pytest.skip("Spark needs Java 17, and executors are found in /proc")
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(SCRIPT), str(tmp_path)],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert done.stdout.split()[-1:] == ["same"], done.stderr[-2000:]
