"""The certificate of a release: what an officer reads and signs, and how it is printed."""

from __future__ import annotations

import hashlib
import json
import re
import shutil

import pytest

import halfmask as hm
from halfmask.errors import EngineUnavailableError, ParameterError
from halfmask.release import files


@pytest.fixture(scope="module")
def release() -> hm.Release:
    schema = {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "ill": "sensitive"}
    rows = {"age": [31, 32, 33, 41, 42, 43], "ill": ["flu", "gout"] * 3}
    return hm.anonymize(hm.read(rows, schema={"columns": schema}), hm.KAnonymity(3),
                        method="optimal")  # fmt: skip


def text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.split("<body>")[1].split("<script")[0]))


def test_it_names_data_file_hash_date_and_who_signs(release, tmp_path):
    path, page = tmp_path / "out.csv", tmp_path / "out.html"
    release.write(path)
    release.report(page, title="Patients 2026", by="Unit 7", original="patients.csv", file=path,
                   command="halfmask anonymize patients.csv --k 3")  # fmt: skip
    said = text(page.read_text(encoding="utf-8"))
    for words in (
        "Patients 2026", "patients.csv", "out.csv", "Unit 7", "--k 3",
        hashlib.sha256(path.read_bytes()).hexdigest(),
        "10-year groups", "others may know it", "What is not promised", "Privacy officer",
        "smallest class, people 3", "highest risk (prosecutor) 33.3%", "Signature",
    ):  # fmt: skip
        assert words in said, words


def test_without_them_it_is_still_one_to_sign(release, tmp_path):
    release.report(tmp_path / "a.html")
    said = text((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert "Certificate of a release" in said
    release.report(tmp_path / "a.json", by="Unit 7")
    assert json.loads((tmp_path / "a.json").read_text())["certificate"]["by"] == "Unit 7"
    with pytest.raises(ParameterError, match="one of title"):
        release.report(tmp_path / "a.html", signed="me")


def test_pdf_needs_a_printer_and_says_so(release, tmp_path, monkeypatch):
    monkeypatch.setattr(files.shutil, "which", lambda _: None)
    monkeypatch.setattr(files.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EngineUnavailableError, match="print it from a browser"):
        release.report(tmp_path / "a.pdf")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium here")
def test_a_browser_prints_it(release, tmp_path):
    release.report(tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    assert [one.name for one in tmp_path.iterdir()] == ["a.pdf"]
