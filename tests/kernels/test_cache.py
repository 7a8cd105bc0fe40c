"""Compiled code goes where it can be written, and is never trusted blindly."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from halfmask.kernels.compilation import cache
from halfmask.kernels.compilation.cache import KernelCache, choose_cache, source_digest
from halfmask.kernels.compilation.compiler import kernel

as_anybody = pytest.mark.skipif(
    os.geteuid() == 0, reason="the superuser can write everywhere; nothing to see"
)


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)


def test_beside_the_source_where_that_can_be_written(tmp_path):
    assert choose_cache(tmp_path, tmp_path) == tmp_path / "__pycache__"


def test_in_the_cache_folder_of_the_user_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    blocked = tmp_path / "file"
    blocked.write_text("a file cannot hold a folder")
    home = tmp_path / "home"
    home.mkdir()
    assert choose_cache(blocked, home) == home / ".cache" / "halfmask" / "kernels"


def test_in_a_private_temporary_folder_as_the_last_resort(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocked = tmp_path / "file"
    blocked.write_text("a file cannot hold a folder")
    chosen = choose_cache(blocked, blocked)
    assert chosen.parent == tmp_path
    assert chosen.stat().st_mode & 0o077 == 0


@as_anybody
def test_a_folder_without_permission_counts_as_not_writable(tmp_path):
    source = tmp_path / "package"
    source.mkdir(mode=0o500)
    assert choose_cache(source, tmp_path) != source / "__pycache__"


def twice(x):
    return helper(x, -1) + x + 1


@kernel
def helper(x, y):
    return x - y - 1


def fresh(folder):
    """``twice`` as a new process sees it."""
    made = kernel(twice)
    made._cache = KernelCache(twice, folder)
    return made


def hits(made):
    return sum(made.stats.cache_hits.values())


def test_what_was_compiled_is_found_again(tmp_path):
    first, second = fresh(tmp_path), fresh(tmp_path)
    assert first(3) == second(3) == 7
    assert (hits(first), hits(second)) == (0, 1)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    "spoil", [lambda held: b"", lambda held: held[:-9], lambda held: b"x" * 99]
)
def test_a_file_that_cannot_be_read_is_compiled_anew(tmp_path, spoil):
    fresh(tmp_path)(3)
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(spoil(whole))
    made = fresh(tmp_path)
    assert made(3) == 7
    assert hits(made) == 0
    again = fresh(tmp_path)
    assert again(3) == 7
    assert hits(again) == 1


def test_what_no_longer_unpickles_is_compiled_anew(tmp_path):
    fresh(tmp_path)(3)
    (file,) = tmp_path.iterdir()
    gone = pickle.dumps(twice).replace(b"twice", b"gone!")  # names what is not there
    file.write_bytes(hashlib.sha256(gone).digest() + gone)
    assert fresh(tmp_path)(3) == 7


def test_a_folder_that_cannot_be_written_is_no_fault(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file cannot hold a folder")
    assert fresh(blocked / "folder")(3) == 7


def test_an_interrupt_leaves_nothing_half_written(tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fresh(tmp_path)(3)
    assert list(tmp_path.iterdir()) == []


def test_the_digest_follows_every_source(tmp_path):
    (tmp_path / "one.py").write_text("1")
    before = source_digest(tmp_path)
    (tmp_path / "two.py").write_text("2")
    after = source_digest(tmp_path)
    (tmp_path / "two.py").write_text("3")
    changed = source_digest(tmp_path)
    (tmp_path / "within").mkdir()
    (tmp_path / "within" / "two.py").write_text("3")
    inside = source_digest(tmp_path)
    (tmp_path / "within" / "two.py").rename(tmp_path / "within" / "three.py")
    assert len({before, after, changed, inside, source_digest(tmp_path)}) == 5


def test_the_folder_follows_the_sources_of_all_kernels():
    kernels = Path(cache.__file__).parents[1]
    assert (kernels / "grouping.py").exists()
    assert cache.folder().name == f"halfmask-{source_digest(kernels)}"


def test_two_processes_at_once_do_not_disturb_each_other(tmp_path):
    script = (
        "import numpy as np\n"
        "from halfmask.kernels.grouping import add_up\n"
        "a, b = np.array([0, 1, 1], np.int32), np.array([1, 2, 3])\n"
        "print(add_up(a, b, 2).tolist(), sum(add_up.stats.cache_hits.values()))\n"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    start = [sys.executable, "-c", script]
    both = [
        subprocess.Popen(start, env=environment, stdout=subprocess.PIPE, text=True)  # noqa: S603
        for _ in range(2)
    ]
    assert [one.communicate()[0][:6] for one in both] == ["[1, 5]"] * 2
    later = subprocess.run(  # noqa: S603 - our own program
        start, env=environment, capture_output=True, text=True, check=True
    )
    assert later.stdout == "[1, 5] 1\n"
    (folder,) = tmp_path.iterdir()
    assert folder.name.startswith("halfmask-")
    assert len(list(folder.iterdir())) == 1


def test_other_versions_of_numba_compile_as_they_do(tmp_path):
    """The pipeline reaches into numba: with a version that it was not tried with it is not used."""
    script = (
        "import numba, sys; numba.__version__ = '0.60.0'\n"
        "import numpy as np\n"
        "from halfmask.kernels.compilation.compiler import ascend\n"
        "assert 'halfmask.kernels.compilation.pipeline' not in sys.modules\n"
        "print(ascend(np.array([3, 1, 2])).tolist())\n"
    )
    found = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        check=False,
    )
    assert found.stdout.split() == ["[1,", "2,", "0]"], found.stderr
