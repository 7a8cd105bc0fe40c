"""The steps of the page: each calls what its verb calls, and gives what the verb's --json gives.

They run in the process of the steps (``worker``). What leaves is written at once, through the
release's own ``write``, so that it outlasts that process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.sample import SEED, write
from halfmask.service import requests
from halfmask.service.answering import guaranteed_answer, noisy_answer
from halfmask.service.kept import document, kept
from halfmask.table.demands import EXACT, states
from halfmask.table.schema_file import mapping_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from halfmask.service.bench import Bench
    from halfmask.service.books import Books
    from halfmask.service.standing import Population, Standing
    from halfmask.table.table import Table


def described(now: Standing) -> dict[str, Any]:
    """The proposal of ``halfmask describe``, and beside it the schema in force."""
    facts = {"name": now.name, "proposed": now.proposed, "schema": now.schema.to_dict()}
    return document("describe", {**now.description, **facts})


def open_own(
    bench: Bench, path: Path, schema: object = None, how: dict[str, str | None] | None = None
) -> Standing:
    """Open a file of whoever started the service."""
    return bench.open(path, schema, **(how or {}))


def open_sent(
    bench: Bench, path: Path, unpacked_limit: int, how: dict[str, str | None]
) -> Standing:
    """Open a file that the browser sent."""
    return bench.open_sent(path, unpacked_limit, **how)


def open_population(bench: Bench, path: Path, unpacked_limit: int) -> Population:
    """Open a population that the browser sent."""
    return bench.open_population(path, unpacked_limit)


def open_sample(bench: Bench, folder: Path, rows: int) -> Standing:
    """Open an invented table, with its schema and hierarchies."""
    return bench.open(write(folder, rows, seed=SEED))


def schema(bench: Bench, now: Standing, asked: dict[str, Any], toml: str | None) -> Standing:
    """Put another schema in force, given as a mapping or as the text of a schema file."""
    given = asked if toml is None else mapping_of(toml, "schema.toml")
    return bench.change_schema(now, given)


def assess(
    bench: Bench, now: Standing, asked: requests.Assess, folder: Path, population: Path | None
) -> dict[str, Any]:
    """Measure who stands out, also in a population where there is one."""
    from halfmask.assessment.assess import assess

    people = _people(bench, population)()
    found = assess(bench.table(now), population=people, **asked.model_dump())
    return kept("assess", found, found.to_dict(), folder)


def anonymize(
    bench: Bench, now: Standing, asked: requests.Anonymize, folder: Path, population: Path | None
) -> dict[str, Any]:
    """Release the table with promises, losing least."""
    from halfmask.anonymize.run import anonymize
    from halfmask.models.stated import stated_models

    given = asked.model_dump()
    names = set(given) - set(requests.Promises.model_fields)
    settings = {name: given[name] for name in names if given[name] is not None}
    table = bench.table(now)
    own = asked.demands == "keep" and any(states(table.schema, demand) for demand in EXACT)
    models = stated_models(given, population=_people(bench, population), needed=not own)
    release = anonymize(table, *models, **settings)
    bench.release = folder, release
    return kept("anonymize", release, release.to_dict(), folder)


def frontier(
    bench: Bench, now: Standing, asked: requests.Frontier, folder: Path, population: Path | None
) -> dict[str, Any]:
    """Show risk against utility for many settings; nothing is released."""
    from halfmask.assessment.frontier import frontier
    from halfmask.models.stated_alternatives import stated_alternatives, stated_numbers

    given = asked.model_dump()
    names = ("methods", "metric", "risk", "utility", "seed", "time_limit", "demands")
    settings = {name: given[name] for name in names if given[name] is not None}
    if asked.suppression is not None:
        settings["suppression"] = stated_numbers("suppression", asked.suppression)
    wanted = stated_alternatives(given, population=_people(bench, population))
    if not wanted:
        raise InputError("No promise is named: give k, l, t or another.")
    found = frontier(bench.table(now), *wanted, **settings)
    return kept("frontier", found, found.to_dict(), folder)


def compare(
    bench: Bench, now: Standing, asked: requests.Compare, folder: Path, made: Path
) -> dict[str, Any]:
    """Compare the release in ``made`` with the original."""
    from halfmask.assessment.compare import compare

    table = bench.table(now)  # a bench that has to read it holds no release of it
    held, release = bench.release or (None, None)
    found = compare(
        table, release if held == made else made / "release.parquet", **asked.model_dump()
    )
    return kept("compare", found, found.to_dict(), folder)


def query(
    bench: Bench, now: Standing, asked: requests.Query, folder: Path, books: Books
) -> dict[str, Any]:
    """Answer SQL with guarantees, or with noise where the query says so."""
    from halfmask.query.private.clause import is_private
    from halfmask.query.run import Session

    noise = _stated(asked, requests.Noise)
    with Session(bench.table(now)) as session:
        if asked.epsilon is not None or is_private(asked.sql):
            return noisy_answer(session, asked, noise, folder, books)
        if noise:
            raise InputError(f"'{min(noise)}' is for noisy answers: add WITH EPSILON 1.0.")
        return guaranteed_answer(session, bench.table(now), asked, folder, books)


def synthesize(
    bench: Bench, now: Standing, asked: requests.Synthesize, folder: Path, books: Books
) -> dict[str, Any]:
    """Draw a synthetic table, under differential privacy where epsilon is given."""
    from halfmask.synthesize.run import synthesize

    options = _stated(asked, requests.Synthesize)
    method = options.pop("method", "auto" if asked.epsilon is not None else "cocluster")
    if asked.epsilon is not None:
        options["accountant"] = books.accountant()
    elif method == "cocluster" and asked.k is None and not states(bench.table(now).schema, "k"):
        raise InputError(
            "Neither epsilon nor k is given: give epsilon for differential privacy, or k, the "
            "fewest people in a group of the model."
        )
    release = synthesize(bench.table(now), method, **options)
    return kept("synthesize", release, release.to_dict(), folder)


def _stated(asked: requests.Asked, kind: type[requests.Asked]) -> dict[str, Any]:
    """The fields of ``kind`` that were given."""
    given = asked.model_dump(include=set(kind.model_fields))
    return {name: value for name, value in given.items() if value is not None}


def _people(bench: Bench, population: Path | None) -> Callable[[], Table | None]:
    """What reads the population, where there is one."""
    return lambda: None if population is None else bench.population(population)
