"""``halfmask demo``: the main job on an invented table: assess, anonymize, compare, report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.assess import show_assessment
from halfmask.cli.compare import show_comparison
from halfmask.cli.options import as_json
from halfmask.cli.releases import show_release

if TYPE_CHECKING:
    from halfmask.release.release import Release
    from halfmask.table.table import Table

SUPPRESSION = 0.05
HIGHEST_DEMAND = 10


@click.command("demo")
@click.option("--rows", type=click.IntRange(min=HIGHEST_DEMAND), default=2000, show_default=True,
              help="How many people; nobody hides among fewer than demanded.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Another table of the same kind.")
@click.option("-o", "--output", type=click.Path(), default="demo", show_default=True,
              help="The folder to write to.")  # fmt: skip
@as_json
def command(rows: int, seed: int | None, output: str, as_json: bool) -> None:
    """Do the main job on an invented table.

    Assesses a table of invented patients, releases it with each person's own k, compares, reports.

    Writes people.csv, people.toml and hierarchies to the folder, then the release, its recoding
    and its report. Example: halfmask demo --rows 10000 -o demo
    """
    import halfmask as hm
    from halfmask.sample import SEED, write

    folder = Path(output)
    with show.working("Inventing people"):
        path = write(folder, rows, seed=SEED if seed is None else seed)
    people = hm.read(path)
    with show.working("Assessing"):
        risk = hm.assess(people)
    with show.working("Searching the recoding that loses least"):
        release = hm.anonymize(people, hm.PersonalKAnonymity(), suppression=SUPPRESSION)
    uniform = _one_k_for_all(people)
    gain = hm.compare(people, release, learn=False)
    files = _write(release, folder)
    if as_json:
        facts: dict[str, Any] = {
            "assessment": risk.to_dict(),
            "release": release.to_dict(),
            "comparison": gain.to_dict(),
            "uniform": {"k": HIGHEST_DEMAND, "loss": uniform},
            "files": {"table": str(path), **files},
        }
        show.document("demo", facts)
        return
    show_assessment(risk)
    show_release(release)
    show_comparison(gain)
    _conclude(release, uniform, files)


def _one_k_for_all(people: Table) -> float | None:
    """The loss if everybody got the highest demand of anybody; None where that is impossible."""
    import halfmask as hm
    from halfmask.errors import PrivacyError

    try:
        release = hm.anonymize(people, hm.KAnonymity(HIGHEST_DEMAND), suppression=SUPPRESSION)
    except PrivacyError:
        return None
    return release.loss


def _write(release: Release, folder: Path) -> dict[str, str]:
    files = {
        "release": folder / "people.anonymous.csv",
        "recoding": folder / "recoding.json",
        "report": folder / "report.html",
    }
    release.write(files["release"])
    if release.recoding is not None:
        release.recoding.save(files["recoding"])
    release.report(files["report"])
    return {name: str(file) for name, file in files.items()}


def _conclude(release: Release, uniform: float | None, files: dict[str, str]) -> None:
    if uniform is not None:
        show.say(
            f"With each person's own k the release loses {show.number(release.loss)}; "
            f"with k = {HIGHEST_DEMAND} for everybody it would lose {show.number(uniform)}."
        )
    show.say(f"The release is in {files['release']}.")
    show.say(f"The report is in {Path(files['report']).resolve()}.")
