"""``halfmask serve``: the main job as a page in the browser, on this machine."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.budget import keeper
from halfmask.cli.options import as_json
from halfmask.errors import InputError

_MB = 1_000_000
LOCAL = ("127.0.0.1", "::1", "localhost")


@click.command("serve")
@click.argument("file", type=click.Path(), required=False)
@click.option("--schema", type=click.Path(), help="Schema file; default: FILE's .toml sibling.")
@click.option("--delimiter", help="What separates the fields of a CSV file.")
@click.option("--encoding", help="utf-8 or latin-1.")
@click.option("--decimal", metavar="MARK", help="The decimal mark of a CSV file: , or a point.")
@click.option("--ledger", type=click.Path(), help="The file that keeps this table's budget.")
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
def command(file: str | None, host: str, port: int, as_json: bool, **given: Any) -> None:
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
    keeper(given["ledger"], given["grant"])  # a ledger that cannot be used is said now
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
