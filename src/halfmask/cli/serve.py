"""The main job by itself: ``demo`` on an invented table, ``serve`` as a page in the browser."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.assess import show_assessment
from halfmask.cli.budget import LEDGER, accountant_of
from halfmask.cli.compare import show_comparison
from halfmask.cli.options import as_json
from halfmask.cli.publish import show_release
from halfmask.errors import InputError

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
def demo_command(rows: int, seed: int | None, output: str, as_json: bool) -> None:
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
    if release.recoding is None:
        del files["recoding"]
    else:
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


_MB = 1_000_000
LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@click.argument("file", type=click.Path(), required=False)
@click.option("--schema", type=click.Path(), help="Schema file; default: FILE's .toml sibling.")
@click.option("--delimiter", help="What separates the fields of a CSV file.")
@click.option("--encoding", help="utf-8 or latin-1.")
@click.option("--decimal", metavar="MARK", help="The decimal mark of a CSV file: , or a point.")
@LEDGER
@click.option("--grant", metavar="EPSILON[,DELTA]",
              help="Start --ledger with this budget for the table.")  # fmt: skip
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
        from halfmask.service.listen import bind, ends_by_signals, serve
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
    listener = bind(host, port)
    with ends_by_signals():
        space = Workspace(own_ledgers=ledgers)
        worker = Worker(space.folder)
        try:
            worker.start()
            if file:
                with show.working("Describing"):
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
        show.document("serve", {"address": address})
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
