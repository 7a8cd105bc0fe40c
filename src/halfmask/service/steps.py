"""The steps of the page: each calls what its verb calls, and gives what the verb's --json gives.

They run in the process of the steps (``worker``). What leaves is written at once, through the
release's own ``write``, so that it outlasts that process.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.sample import SEED, write
from halfmask.service.files import FILES
from halfmask.table.schema_file import mapping_of

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.models.verdict import Model
    from halfmask.service import requests
    from halfmask.service.bench import Bench
    from halfmask.service.standing import Standing


def document(verb: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The document of a verb, as plain values."""
    text = json.dumps({"ok": True, "verb": verb, **facts}, default=str, allow_nan=False)
    plain: dict[str, Any] = json.loads(text)
    return plain


def described(now: Standing) -> dict[str, Any]:
    """The proposal of ``halfmask describe``, and beside it the schema in force."""
    facts = {"name": now.name, "proposed": now.proposed, "schema": now.schema.to_dict()}
    return document("describe", {**now.description, **facts})


def open_own(
    bench: Bench, path: Path, schema: object = None, how: dict[str, str | None] | None = None
) -> Standing:
    """Open a file of whoever started the service."""
    return bench.open(path, schema, **(how or {}))


def open_sent(bench: Bench, path: Path, unpacked_limit: int) -> Standing:
    """Open a file that the browser sent."""
    return bench.open_sent(path, unpacked_limit)


def open_sample(bench: Bench, folder: Path, rows: int) -> Standing:
    """Open an invented table, with its schema and hierarchies."""
    return bench.open(write(folder, rows, seed=SEED))


def schema(bench: Bench, now: Standing, asked: dict[str, Any], toml: str | None) -> Standing:
    """Put another schema in force, given as a mapping or as the text of a schema file."""
    given = asked if toml is None else mapping_of(toml, "schema.toml")
    return bench.change_schema(now, given)


def assess(bench: Bench, now: Standing, asked: requests.Assess, folder: Path) -> dict[str, Any]:
    """Measure who stands out."""
    from halfmask.assessment.assess import assess

    found = assess(bench.table(now), **asked.model_dump())
    return _kept("assess", found, found.to_dict(), folder)


def anonymize(
    bench: Bench, now: Standing, asked: requests.Anonymize, folder: Path
) -> dict[str, Any]:
    """Release the table with promises, losing least."""
    from halfmask.anonymize.run import anonymize

    names = ("method", "metric", "time_limit", "seed", "on_infeasible", "suppression")
    settings = {name: value for name in names if (value := getattr(asked, name)) is not None}
    release = anonymize(bench.table(now), *promises(asked), **settings)
    bench.releases[folder] = release
    return _kept("anonymize", release, release.to_dict(), folder)


def promises(asked: requests.Anonymize) -> list[Model]:
    """The models that were chosen; at least one."""
    from halfmask import models

    made: list[Model] = []
    if asked.k is not None:
        made.append(models.KAnonymity(asked.k))
    if asked.personal_k:
        made.append(models.PersonalKAnonymity())
    made += [models.LDiversity(one.l, one.column, kind=one.kind, c=one.c) for one in asked.l]
    made += [models.TCloseness(one.t, one.column, distance=one.distance) for one in asked.t]
    made += [models.PersonalLDiversity(column) for column in asked.personal_l]
    if not made:
        raise InputError("No promise is chosen: give k, people's own k, l or t.")
    return made


def compare(
    bench: Bench, now: Standing, asked: requests.Compare, folder: Path, made: Path
) -> dict[str, Any]:
    """Compare the release in ``made`` with the original."""
    from halfmask.assessment.compare import compare

    release = bench.releases.get(made) or made / "release.parquet"
    found = compare(bench.table(now), release, **asked.model_dump())
    return _kept("compare", found, found.to_dict(), folder)


def query(bench: Bench, now: Standing, asked: requests.Query, folder: Path) -> dict[str, Any]:
    """Answer SQL with guarantees, or with noise where the query says so."""
    from halfmask.query.run import query
    from halfmask.release.document import plain_rows

    answer = query(bench.table(now), asked.sql, time_limit=asked.time_limit)
    facts = {"answer": answer.to_dict(), "data": plain_rows(answer.to_arrow())}
    return _kept("query", answer, facts, folder)


def synthesize(
    bench: Bench, now: Standing, asked: requests.Synthesize, folder: Path
) -> dict[str, Any]:
    """Draw a synthetic table, under differential privacy where epsilon is given."""
    from halfmask.synthesize.run import synthesize

    options = {name: value for name, value in asked.model_dump().items() if value is not None}
    method = options.pop("method", "auto" if asked.epsilon is not None else "cocluster")
    release = synthesize(bench.table(now), method, **options)
    return _kept("synthesize", release, release.to_dict(), folder)


def _kept(verb: str, made: Any, facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the files of a step, and give its document."""
    for file, (source, kind) in FILES.items():
        if source == verb:
            (made.report if kind == "report" else made.write)(folder / file)
    return document(verb, facts)
