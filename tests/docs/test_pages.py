"""The pages say what is there: names, paths, errors, commands and examples."""

from __future__ import annotations

import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import halfmask
from halfmask import errors

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", halfmask.__all__)
def test_every_public_name_is_documented(name):
    assert re.search(rf"`hm\.{name}\b", text("docs/reference.md"))


def test_the_reference_names_nothing_that_is_not_there():
    for name in re.findall(r"`hm\.(\w+)", text("docs/reference.md")):
        assert hasattr(halfmask, name), name


@pytest.mark.parametrize("name", ["read", "anonymize", "LDiversity", "TCloseness", "AverageRisk"])
def test_parameters_in_the_reference_are_those_of_the_code(name):
    row = re.search(rf"`hm\.{name}\((.*?)\)` \|", text("docs/reference.md"))
    assert row is not None
    stated = [p.split("=")[0].strip(" *") for p in row[1].split(",") if p.strip(" *")]
    assert stated == list(inspect.signature(getattr(halfmask, name)).parameters)


def test_every_error_has_a_line():
    page = text("docs/errors.md")
    for name, error in vars(errors).items():
        if inspect.isclass(error) and issubclass(error, errors.HalfmaskError):
            if error is errors.HalfmaskError:
                continue
            assert f"| `{error.code}` | `{name}` |" in page


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_every_path_that_a_page_names_exists(page):
    named = re.findall(r"`((?:src|tests|docs|scripts|benchmarks)/[\w./-]*)`", text(page))
    assert named
    for path in named:
        assert (ROOT / path).exists(), path


def test_every_stop_of_a_walk_exists_and_there_are_at_most_twelve():
    walks = re.findall(r"```\n( 1  .*?)```", text("ARCHITECTURE.md"), re.DOTALL)
    assert len(walks) == 5
    for walk in walks:
        stops = re.findall(r"^[ \d]\d  ([\w/.]+)", walk, re.MULTILINE)
        assert len(stops) <= 12
        for stop in [*stops, *re.findall(r"[a-z_]+/[\w/]+\.py", walk)]:
            assert (ROOT / "src" / "halfmask" / stop).exists(), stop


def test_the_architecture_speaks_of_every_folder():
    page = text("ARCHITECTURE.md")
    for folder in (ROOT / "src" / "halfmask").iterdir():
        if (folder / "__init__.py").exists():
            assert re.search(rf"\*\*[^*]*`src/halfmask/{folder.name}/`[^*]*\.\*\*", page)


def test_pages_stay_short():
    assert len(text("ARCHITECTURE.md").splitlines()) < 220  # five walks among them
    assert len(text("CONTRIBUTING.md").splitlines()) < 100


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", ["cli", "mask", "measure", "model"])
def test_what_scripts_write_is_current(page):
    # In a process of its own: what earlier tests loaded or declared is no part of a page.
    script = ROOT / "scripts" / f"{page}_reference.py"
    run = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


def test_make_knows_the_commands_that_pages_name():
    targets = set(re.findall(r"^([a-z]+):", text("Makefile"), re.MULTILINE))
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"^make (\w+)", text(page), re.MULTILINE):
            assert target in targets


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirements_are_pinned_by_hash_and_name_no_host(name):
    lines = text(name).splitlines()
    assert not [line for line in lines if "://" in line or line.startswith("-")]
    pinned = [line for line in lines if line and not line.startswith(" ")]
    assert pinned
    assert all(re.fullmatch(r"[\w.-]+(\[[\w,]+\])?==[\w.+!-]+ \\", line) for line in pinned)
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", text(name))) >= len(pinned)


def test_the_example_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    from halfmask.sample import write

    write(tmp_path, 150)
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", text("README.md"), re.DOTALL)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 - our own page
    assert capsys.readouterr().out.splitlines()[0] == "150"
    assert (tmp_path / "people.anonymous.parquet").exists()
    assert (tmp_path / "people.html").exists()


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    from halfmask.cli.main import run

    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text("README.md"), re.MULTILINE | re.DOTALL)
    plain = "".join(block for language, block in blocks if not language)
    lines = re.findall(r"^halfmask (.*?)(?:#.*)?$", plain, re.MULTILINE)
    assert len(lines) >= 6
    for line in lines:
        arguments = shlex.split(line)
        if arguments[0] == "demo":
            arguments += ["--rows", "150"]
        with pytest.raises(SystemExit) as stop:
            run(arguments)
        assert stop.value.code == (2 if arguments[0] == "check" else 0), line
