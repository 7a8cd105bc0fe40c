"""The main job by itself: ``demo`` on an invented table, ``serve`` as a page in the browser."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.assess import show_assessment
from halfmask.cli.budget import GRANT, LEDGER, accountant_of
from halfmask.cli.compare import show_comparison
from halfmask.cli.options import as_json, schema_option, spare_pandas, text_options, verbose
from halfmask.cli.publish import show_release
from halfmask.errors import InputError

if TYPE_CHECKING:
    from halfmask.assessment.comparison import Comparison
    from halfmask.release.release import Release
    from halfmask.table.table import Table

SUPPRESSION = 0.05
# what the story says of a comparison, or follows from
_TOLD = ("rows", "suppressed", "before", "after", "finding", "counting")
HIGHEST_DEMAND = 10


@click.command("demo")
@click.option("--rows", type=click.IntRange(min=HIGHEST_DEMAND), default=2000, show_default=True,
              help="How many people; nobody hides among fewer than demanded.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), help="Another table of the same kind.")
@click.option("-o", "--output", type=click.Path(), default="demo", show_default=True,
              help="The folder to write to.")  # fmt: skip
@verbose
@as_json
def demo_command(rows: int, seed: int | None, output: str, verbose: bool, as_json: bool) -> None:
    """Do the main job on an invented table, and tell it as a story.

    Assesses a table of invented patients, releases it with each person's own k, compares, reports.

    Writes people.csv, people.toml and hierarchies to the folder, then the release, its recoding
    and its report. Example: halfmask demo --rows 10000 -o demo
    """
    import halfmask as hm
    from halfmask.assessment.assess import assessment_case
    from halfmask.assessment.compare import ComparisonOptions, compare_one
    from halfmask.sample import SEED, write

    folder, whole = Path(output), verbose or as_json
    with show.phases() as phase:
        phase("Inventing people")
        spare_pandas()
        path = write(folder, rows, seed=SEED if seed is None else seed)
        people = hm.read(path)
        phase("Assessing")
        risk = hm.assess(people) if whole else None
        alone = assessment_case(people).alone if risk is None else risk.unique_rows
        phase("Searching the recoding that loses least")
        release = hm.anonymize(people, hm.PersonalKAnonymity(), suppression=SUPPRESSION)
        phase("Searching one k for everybody, to compare")
        uniform = _one_k_for_all(people, release.method)
        phase("Comparing")
        options = ComparisonOptions(learn=False)
        gain = compare_one(people, release, {}, options, None if whole else _TOLD)
        phase("Writing")
        files = _write(release, folder)
    if as_json and risk is not None:
        facts: dict[str, Any] = {
            "assessment": risk.to_dict(),
            "release": release.to_dict(),
            "comparison": gain.to_dict(),
            "uniform": {"k": HIGHEST_DEMAND, "loss": uniform},
            "files": {"table": str(path), **files},
        }
        show.print_document("demo", facts)
        return
    if risk is not None:
        show_assessment(risk)
        show_release(release)
        show_comparison(gain)
    else:
        _tell(Story(people, alone, release, gain, uniform), str(path))
    _conclude(files)


@dataclass(frozen=True, slots=True)
class Story:
    """What the demo found: ``alone`` are people who are unique before the release."""

    people: Table
    alone: int
    release: Release
    gain: Comparison
    uniform: float | None


def _tell(found: Story, path: str) -> None:
    """Print it as a story of less than thirty lines; every figure is explained where it stands."""
    for title, lines in (
        (f"{len(found.people):,} invented patients are in {path}.", []),
        ("Who stands out", _standing_out(found)),
        ("What was promised", _promise_lines(found)),
        ("What was done", _done(found)),
        ("What is left", _remainder_lines(found)),
    ):
        show.echo(title)
        for line in lines:
            show.echo(f"  {line}")


def _standing_out(found: Story) -> list[str]:
    schema = found.people.schema
    return [
        f"{found.alone:,} of them ({show.percent(found.alone / len(found.people))}) are the "
        "only one with their values in",
        f"{', '.join(schema.quasi)}. Whoever knows these of a person",
        f"finds the row, and reads {' and '.join(schema.sensitive)} off it.",
    ]


def _promise_lines(found: Story) -> list[str]:
    from halfmask.report.words import demands_text

    lines = ["Nobody can be told from as many people as this person asked for:"]
    for verdict in found.release.verdicts:
        if verdict.column is None:
            said = demands_text(verdict.model, [one.to_dict() for one in verdict.demands], 4)
            lines += said.split("; ")
    lines.append("(a class is the people who look alike in the release)")
    return lines


def _done(found: Story) -> list[str]:
    release = found.release
    others = [one.method for one in release.tried if one.loss is not None]
    tried = [f"by {release.method}, which loses least of {', '.join(others)}"] if others else []
    return [*tried, *(f"{c.name}: {c.action}" for c in release.columns if c.role == "quasi")]


def _remainder_lines(found: Story) -> list[str]:
    release, gain = found.release, found.gain
    smallest = release.risk.smallest if release.risk is not None else 1
    one_k = (
        ""
        if found.uniform is None
        else f"; one k = {HIGHEST_DEMAND} for everybody would cost {show.percent(found.uniform)}"
    )
    return [
        f"{len(release):,} people, {release.suppressed:,} were left out. A person is found with a "
        f"chance of 1 in {smallest:,} at most,",
        f"of {show.percent(gain.mean_risk)} on average. {show.percent(release.loss or 0.0)} of the "
        f"detail of these columns is lost{one_k}.",
        f"Of random counts on both tables half differ by less than "
        f"{show.percent(gain.counting.median)}.",
    ]


def _one_k_for_all(people: Table, method: str) -> float | None:
    """The loss by the same method with everybody's highest demand; None where impossible."""
    import halfmask as hm
    from halfmask.errors import PrivacyError

    try:
        asked = hm.KAnonymity(HIGHEST_DEMAND)
        release = hm.anonymize(people, asked, method=method, suppression=SUPPRESSION)
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
    if release.recoding is None:
        del files["recoding"]
    else:
        release.recoding.save(files["recoding"])
    release.report(
        files["report"],
        title="Certificate of a release of invented people",
        original="people.csv",
        file=files["release"],
        command="halfmask demo",
    )
    return {name: str(file) for name, file in files.items()}


def _conclude(files: dict[str, str]) -> None:
    show.say("What to do next")
    show.say(f"  Look at the release in {files['release']}; halfmask check takes it as it is.")
    show.say(
        "  halfmask describe YOUR.csv -o YOUR.toml, then halfmask assess YOUR.csv: your table."
    )
    show.say("  -v prints every figure of this demo.")
    show.say(f"The report is in {Path(files['report']).resolve()}.")


_MB = 1_000_000
LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@click.argument("file", type=click.Path(), required=False)
@schema_option
@text_options
@LEDGER
@GRANT
@click.option("--answers", type=click.Path(),
              help="The file that keeps answers, to refuse what they forbid.")  # fmt: skip
@click.option("--host", default=LOCAL[0], show_default=True,
              help="Where to listen; any other shows the rows to the network.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8642, show_default=True,
              help="0 takes a free one.")  # fmt: skip
@click.option("--upload-limit", type=click.IntRange(min=1), default=500, show_default=True,
              help="The largest file that the browser may send, in MB.")  # fmt: skip
@click.option("--unpacked-limit", type=click.IntRange(min=1), default=2000, show_default=True,
              help="The most that such a file may unpack to, in MB.")  # fmt: skip
@click.option("--open/--no-open", "open_it", default=True, help="Open the browser.")
@as_json
def serve_command(file: str | None, host: str, port: int, as_json: bool, **given: Any) -> None:
    """Describe, assess, anonymize, compare, ask and synthesize FILE in the browser.

    Without FILE the page asks for one, or takes an invented table. Ends with Ctrl-C.

    Example: halfmask serve people.csv --schema people.toml
    """
    try:
        from halfmask.service.app import ends_by_signals, open_socket, serve
    except ImportError:
        from halfmask.errors import EngineUnavailableError

        what = "The service (fastapi, uvicorn)"
        raise EngineUnavailableError(what, "pip install 'halfmask[serve]'") from None
    from halfmask.service.worker import Worker
    from halfmask.service.workspace import Workspace

    if given["schema"] and not file:
        raise click.UsageError("--schema needs FILE: name the table that it describes.")
    accountant_of(given["ledger"], given["grant"])  # a ledger that cannot be used is said now
    ledgers = (_place(given["ledger"]), _place(given["answers"]))
    listener = open_socket(host, port)
    with ends_by_signals():
        space = Workspace(own_ledgers=ledgers)
        worker = Worker(space.folder)
        try:
            worker.start()
            if file:
                with show.show_working("Describing"):
                    how = {name: given[name] for name in ("delimiter", "encoding", "decimal")}
                    place, schema = Path(file), given["schema"]
                    space.become(worker.do("open_own", path=place, schema=schema, how=how))
            serve(
                space,
                worker,
                listener,
                host=host,
                limits=(given["upload_limit"] * _MB, given["unpacked_limit"] * _MB),
                ready=lambda told: _ready(told, space.folder, host, as_json, given["open_it"]),
            )
        finally:
            listener.close()
            worker.close()
            space.close()
    show.say("Stopped; what was sent or made is removed.")


def _place(file: str | None) -> Path | None:
    """Where a ledger lies, or is to be written: a missing folder is told before any work."""
    if file is None:
        return None
    place = Path(file).resolve()
    if not place.parent.is_dir():
        raise InputError(f"There is no folder for {place.name}: make it first.")
    return place


def _ready(address: str, folder: Path, host: str, as_json: bool, open_it: bool) -> None:
    """Say where the page is, and open it."""
    if host not in LOCAL:
        show.say(
            f"Listening on {host}: whoever reaches this port with the address below sees the rows, "
            "and nothing on the way is encrypted."
        )
    if as_json:
        show.print_document("serve", {"address": address})
        sys.stdout.flush()
    show.say(f"Open {address}\nEnds with Ctrl-C.")
    if open_it:
        threading.Thread(target=_open, args=(address, folder), daemon=True).start()


def _open(address: str, folder: Path) -> None:
    """Open the browser through a private file: others can read the arguments of a process."""
    import webbrowser

    page = folder / "open.html"
    page.write_text(f'<meta http-equiv="refresh" content="0;url={address}">', encoding="utf-8")
    webbrowser.open(page.as_uri())
