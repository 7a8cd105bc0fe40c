"""Compiled code goes where it can be written."""

from __future__ import annotations

import os

import pytest

from halfmask.kernels import choose_cache

as_anybody = pytest.mark.skipif(
    os.geteuid() == 0, reason="the superuser can write everywhere; nothing to see"
)


def test_beside_the_source_where_that_can_be_written(tmp_path):
    assert choose_cache(tmp_path, tmp_path) is None


def test_in_the_cache_folder_of_the_user_otherwise(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    blocked = tmp_path / "file"
    blocked.write_text("a file cannot hold a folder")
    home = tmp_path / "home"
    home.mkdir()
    assert choose_cache(blocked, home) == home / ".cache" / "halfmask" / "numba"


def test_in_a_private_temporary_folder_as_the_last_resort(tmp_path, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocked = tmp_path / "file"
    blocked.write_text("a file cannot hold a folder")
    chosen = choose_cache(blocked, blocked)
    assert chosen is not None
    assert chosen.parent == tmp_path
    assert chosen.stat().st_mode & 0o077 == 0


@as_anybody
def test_a_folder_without_permission_counts_as_not_writable(tmp_path):
    source = tmp_path / "package"
    source.mkdir(mode=0o500)
    assert choose_cache(source, tmp_path) is not None
