"""The steps of the page: each calls what its verb calls, and gives what the verb's --json gives.

They run in the process of the steps (``worker``), which holds one table in memory and can be lost
at any time: whoever asks says which table is meant, and a process that does not hold it reads it
again. What leaves is written at once, through the release's own ``write``, so that it outlasts that
process; what was answered or spent is on record before it is told.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.sample import SEED, write
from halfmask.service import requests
from halfmask.service.files import FILES, require_unpacked
from halfmask.service.workspace import OpenTable, Population, changed_schema
from halfmask.table.demands import states
from halfmask.table.files.toml import mapping_of
from halfmask.table.policies import EXACT
from halfmask.table.proposals.describe import describe
from halfmask.table.read import declared_schema, read_rows
from halfmask.table.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from halfmask.query.run import Session
    from halfmask.service.workspace import Ledgers
    from halfmask.table.table import Table


def verb_document(verb: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The document of a verb, as plain values."""
    text = json.dumps({"ok": True, "verb": verb, **facts}, default=str, allow_nan=False)
    plain: dict[str, Any] = json.loads(text)
    return plain


def write_result(verb: str, made: Any, facts: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Write the files of a step, and give its document."""
    for file, (source, kind) in FILES.items():
        if source == verb and kind != "record":  # it is written with its rows
            (made.report if kind == "report" else made.write)(folder / file)
    return verb_document(verb, facts)


def noisy_answer(
    session: Session,
    asked: requests.QueryRequest,
    noise: dict[str, Any],
    folder: Path,
    ledgers: Ledgers,
) -> dict[str, Any]:
    """Answer under differential privacy, for a budget that is spent first; or plan it only."""
    from halfmask.query.explain import explain_prepared
    from halfmask.query.private.answer import NoiseTerms, answer_with_noise, prepare_noise
    from halfmask.release.document import plain_rows

    if asked.suggest:
        raise InputError("Guarantees are proposed for GUARANTEE only: leave EPSILON away.")
    terms = NoiseTerms(**noise)
    if asked.explain:
        plan = explain_prepared(prepare_noise(session, asked.sql, terms), session)
        return verb_document("query", {"explanation": plan.to_dict()})
    answer = answer_with_noise(session, asked.sql, terms, ledgers.accountant())
    facts = {"answer": answer.to_dict(), "data": plain_rows(answer.to_arrow())}
    return write_result("query", answer, facts, folder)


def guaranteed_answer(
    session: Session, table: Table, asked: requests.QueryRequest, folder: Path, ledgers: Ledgers
) -> dict[str, Any]:
    """Answer with guarantees what earlier answers do not forbid; or plan or propose only."""
    from halfmask.ownership import private_folder
    from halfmask.query.explain import explain_prepared
    from halfmask.query.history.ledger import Ledger
    from halfmask.query.suggest import suggest
    from halfmask.release.document import plain_rows

    if asked.suggest:
        return verb_document("query", {"suggestion": suggest(table, asked.sql).to_dict()})
    work = session.prepare(asked.sql)
    if asked.explain:
        return verb_document("query", {"explanation": explain_prepared(work, session).to_dict()})
    ledger = Ledger.read(ledgers.answers)
    answer = session.answer(work, ledger=ledger, effort=asked.effort)
    private_folder(ledgers.answers.parent)
    ledger.write(ledgers.answers)
    facts = {"answer": answer.to_dict(), "data": plain_rows(answer.to_arrow())}
    return write_result("query", answer, facts | {"coverage": list(answer.coverage)}, folder)


@dataclass(eq=False)
class LoadedTable:
    """One table in memory, and its last release with the folder of its files."""

    release: tuple[Path, Any] | None = None
    _serial: str = ""
    _table: Table | None = None
    _population: tuple[Path, Table] | None = None

    def open(self, path: Path, schema: object = None, **how: str | None) -> OpenTable:
        """Open a file; its schema is the given one, the one beside it, or the proposal."""
        found = describe(read_rows(path, Schema(), **how))
        declared = declared_schema(path, schema)
        proposed = declared == Schema()
        table = read_rows(path, found.to_schema() if proposed else declared, **how)
        toml = found.to_toml() if proposed else table.schema.to_toml()
        facts = (how, found.to_dict(), table.schema, toml, proposed)
        return self._hold(OpenTable(_new(), path, _content(path), *facts), table)

    def open_sent(self, path: Path, unpacked_limit: int, **how: str | None) -> OpenTable:
        """Open a file that the browser sent and that may unpack to so many bytes."""
        with _without_place(path):
            require_unpacked(path, unpacked_limit)
            return self.open(
                path, Schema(), **how
            )  # it may not be its own schema, which names files

    def open_population(self, path: Path, unpacked_limit: int) -> Population:
        """The same for a population."""
        with _without_place(path):
            require_unpacked(path, unpacked_limit)
            return Population(path, len(self.population(path)))

    def population(self, path: Path) -> Table:
        """The rows of a population, whose roles do not matter."""
        if self._population is None or self._population[0] != path:
            self._population = path, read_rows(path, Schema())
        return self._population[1]

    def change_schema(self, now: OpenTable, asked: Mapping[str, object]) -> OpenTable:
        """Put another schema in force."""
        schema = changed_schema(asked, now.schema)
        table = read_rows(now.path, schema, **now.how)
        held, toml = table.schema, table.schema.to_toml()
        changed = replace(now, serial=_new(), schema=held, toml=toml, proposed=False)
        return self._hold(changed, table)

    def table(self, now: OpenTable) -> Table:
        """The rows, bound to the schema in force."""
        if self._table is None or self._serial != now.serial:
            self._hold(now, read_rows(now.path, now.schema, **now.how))
        assert self._table is not None  # noqa: S101 - it is held now
        return self._table

    def _hold(self, table_facts: OpenTable, table: Table) -> OpenTable:
        self.release = None
        self._serial, self._table = table_facts.serial, table
        return table_facts


@contextmanager
def _without_place(path: Path) -> Iterator[None]:
    """Where a file lies is no help to whoever sent it."""
    try:
        yield
    except InputError as error:
        if type(error) is not InputError:
            raise
        raise InputError(str(error).replace(f"{path.parent}/", "")) from None


def _new() -> str:
    return secrets.token_hex(8)


def _content(path: Path) -> str:
    if not path.is_file():
        return _new()  # a pipe cannot be read again
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def describe_table(now: OpenTable) -> dict[str, Any]:
    """The proposal of ``halfmask describe``, and beside it the schema in force."""
    facts = {"name": now.name, "proposed": now.proposed, "schema": now.schema.to_dict()}
    return verb_document("describe", {**now.description, **facts})


def open_own(
    loaded: LoadedTable, path: Path, schema: object = None, how: dict[str, str | None] | None = None
) -> OpenTable:
    """Open a file of whoever started the service."""
    return loaded.open(path, schema, **(how or {}))


def open_sent(
    loaded: LoadedTable, path: Path, unpacked_limit: int, how: dict[str, str | None]
) -> OpenTable:
    """Open a file that the browser sent."""
    return loaded.open_sent(path, unpacked_limit, **how)


def open_population(loaded: LoadedTable, path: Path, unpacked_limit: int) -> Population:
    """Open a population that the browser sent."""
    return loaded.open_population(path, unpacked_limit)


def open_sample(loaded: LoadedTable, folder: Path, rows: int) -> OpenTable:
    """Open an invented table, with its schema and hierarchies."""
    return loaded.open(write(folder, rows, seed=SEED))


def schema(
    loaded: LoadedTable, now: OpenTable, asked: dict[str, Any], toml: str | None
) -> OpenTable:
    """Put another schema in force, given as a mapping or as the text of a schema file."""
    given = asked if toml is None else mapping_of(toml, "schema.toml")
    return loaded.change_schema(now, given)


def assess(
    loaded: LoadedTable,
    now: OpenTable,
    asked: requests.AssessRequest,
    folder: Path,
    population: Path | None,
) -> dict[str, Any]:
    """Measure who stands out, also in a population where there is one."""
    from halfmask.assessment.assess import assess
    from halfmask.report.words import next_steps

    people = _people(loaded, population)()
    found = assess(
        loaded.table(now), population=people, **_fields_given(asked, requests.AssessRequest)
    )
    facts = found.to_dict()
    return write_result("assess", found, facts | {"steps": next_steps(facts)}, folder)


def anonymize(
    loaded: LoadedTable,
    now: OpenTable,
    asked: requests.AnonymizeRequest,
    folder: Path,
    population: Path | None,
) -> dict[str, Any]:
    """Release the table with promises, losing least."""
    from halfmask.anonymize.run import anonymize
    from halfmask.models.options import read_models

    settings = _fields_given(asked, requests.AnonymizeRequest, beside=requests.Promises)
    table = loaded.table(now)
    own = asked.demands == "keep" and any(states(table.schema, demand) for demand in EXACT)
    people = _people(loaded, population)
    models = read_models(asked.model_dump(), population=people, needed=not own)
    release = anonymize(table, *models, **settings)
    loaded.release = folder, release
    return write_result("anonymize", release, release.to_dict(), folder)


def mask(
    loaded: LoadedTable, now: OpenTable, asked: requests.MaskRequest, folder: Path
) -> dict[str, Any]:
    """Mask the table step by step, and check what is promised of the rows that leave.

    Raises:
        InputError: a step names a file of the machine, or leaves a table beside the rows.
    """
    from halfmask.masking.masks import read_steps, secret_places
    from halfmask.masking.methods.anatomy import Anatomy
    from halfmask.masking.run import mask
    from halfmask.models.options import read_models

    table = loaded.table(now)
    steps = read_steps(asked.steps or table.schema.mask)
    if secret_places(steps):
        raise InputError(
            "A step names a file of a key or of tokens, which no page may do: use halfmask mask."
        )
    second = InputError(
        "A step leaves a second table beside the rows, which this page does not offer: use "
        "halfmask mask."
    )
    if any(isinstance(one, Anatomy) for one in steps):  # before any work
        raise second
    models = read_models(asked.model_dump(), population=lambda: None, needed=False)
    release = mask(table, *steps, models=models, demands=asked.demands)
    if release.tables:  # of a mask from elsewhere
        raise second
    return write_result("mask", release, release.to_dict(), folder)


def frontier(
    loaded: LoadedTable,
    now: OpenTable,
    asked: requests.FrontierRequest,
    folder: Path,
    population: Path | None,
) -> dict[str, Any]:
    """Show risk against utility for many settings; nothing is released."""
    from halfmask.assessment.frontier import frontier
    from halfmask.models.options import read_alternatives, read_numbers

    settings = _fields_given(asked, requests.FrontierRequest, beside=requests.Alternatives)
    if asked.suppression is not None:
        settings["suppression"] = read_numbers("suppression", asked.suppression)
    wanted = read_alternatives(asked.model_dump(), population=_people(loaded, population))
    if not wanted:
        raise InputError("No promise is named: give k, l, t or another.")
    found = frontier(loaded.table(now), *wanted, **settings)
    return write_result("frontier", found, found.to_dict(), folder)


def compare(
    loaded: LoadedTable, now: OpenTable, asked: requests.CompareRequest, folder: Path, made: Path
) -> dict[str, Any]:
    """Compare the release in ``made`` with the original."""
    from halfmask.assessment.compare import compare
    from halfmask.report.words import comparison_steps

    table = loaded.table(now)  # a process that has to read it holds no release of it
    held, release = loaded.release or (None, None)
    there = release if held == made else made / "release.parquet"
    found = compare(table, there, **_fields_given(asked, requests.CompareRequest))
    facts = found.to_dict()
    return write_result("compare", found, facts | {"steps": comparison_steps(facts)}, folder)


def query(
    loaded: LoadedTable,
    now: OpenTable,
    asked: requests.QueryRequest,
    folder: Path,
    ledgers: Ledgers,
) -> dict[str, Any]:
    """Answer SQL with guarantees, or with noise where the query says so."""
    from halfmask.query.parse import parse
    from halfmask.query.run import Session

    noise = _fields_given(asked, requests.NoiseRequest)
    with Session(loaded.table(now)) as session:
        if parse(asked.sql, noisy=asked.epsilon is not None).noisy:
            return noisy_answer(session, asked, noise, folder, ledgers)
        if noise:
            raise InputError(f"'{min(noise)}' is for noisy answers: add WITH EPSILON 1.0.")
        return guaranteed_answer(session, loaded.table(now), asked, folder, ledgers)


def synthesize(
    loaded: LoadedTable,
    now: OpenTable,
    asked: requests.SynthesizeRequest,
    folder: Path,
    ledgers: Ledgers,
) -> dict[str, Any]:
    """Draw a synthetic table, under differential privacy where epsilon is given."""
    from halfmask.dp.conditions import read_conditions
    from halfmask.synthesize.run import synthesize

    options = _fields_given(asked, requests.SynthesizeRequest)
    if isinstance(asked.given, list):
        options["given"] = read_conditions(asked.given)
    method = options.pop("method", "auto" if asked.epsilon is not None else "cocluster")
    if asked.epsilon is not None:
        options["accountant"] = ledgers.accountant()
    elif method == "cocluster" and asked.k is None and not states(loaded.table(now).schema, "k"):
        raise InputError(
            "Neither epsilon nor k is given: give epsilon for differential privacy, or k, the "
            "fewest people in a group of the model."
        )
    release = synthesize(loaded.table(now), method, **options)
    return write_result("synthesize", release, release.to_dict(), folder)


def _fields_given(
    asked: requests.PageRequest,
    kind: type[requests.PageRequest],
    *,
    beside: type[requests.PageRequest] = requests.PageRequest,
) -> dict[str, Any]:
    """The fields of ``kind`` that were given, without those that it has of another."""
    given = asked.model_dump(include=set(kind.model_fields) - set(beside.model_fields))
    return {name: value for name, value in given.items() if value is not None}


def _people(loaded: LoadedTable, population: Path | None) -> Callable[[], Table | None]:
    """What reads the population, where there is one."""
    return lambda: None if population is None else loaded.population(population)
