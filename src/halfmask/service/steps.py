"""The steps of the page: each calls what its verb calls, and gives what the verb's --json gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.service.workspace import Result

if TYPE_CHECKING:
    from halfmask.models.verdict import Model
    from halfmask.service import requests
    from halfmask.service.workspace import Workspace


def document(verb: str, facts: dict[str, Any]) -> dict[str, Any]:
    """The document of a verb, as plain values."""
    text = json.dumps({"ok": True, "verb": verb, **facts}, default=str, allow_nan=False)
    plain: dict[str, Any] = json.loads(text)
    return plain


def _kept(space: Workspace, verb: str, made: Any, facts: dict[str, Any]) -> dict[str, Any]:
    """Keep what a step gave, and give its document."""
    found = document(verb, facts)
    space.results[verb] = Result(made, found)
    return found


def described(space: Workspace) -> dict[str, Any]:
    """The proposal of ``halfmask describe``, and beside it the schema in force."""
    now = space.opened
    schema = now.table.schema.to_dict()
    facts = {"name": now.name, "proposed": now.proposed, "schema": schema}
    return document("describe", {**now.description.to_dict(), **facts})


def assess(space: Workspace, asked: requests.Assess) -> dict[str, Any]:
    """Measure who stands out."""
    from halfmask.assessment.assess import assess

    found = assess(space.opened.table, **asked.model_dump())
    return _kept(space, "assess", found, found.to_dict())


def anonymize(space: Workspace, asked: requests.Anonymize) -> dict[str, Any]:
    """Release the table with promises, losing least."""
    from halfmask.anonymize.run import anonymize

    names = ("method", "metric", "time_limit", "seed", "on_infeasible", "suppression")
    settings = {name: value for name in names if (value := getattr(asked, name)) is not None}
    release = anonymize(space.opened.table, *promises(asked), **settings)
    return _kept(space, "anonymize", release, release.to_dict())


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


def compare(space: Workspace, asked: requests.Compare) -> dict[str, Any]:
    """Compare the release with the original."""
    from halfmask.assessment.compare import compare

    release = space.result("anonymize").made
    found = compare(space.opened.table, release, **asked.model_dump())
    return _kept(space, "compare", found, found.to_dict())


def query(space: Workspace, asked: requests.Query) -> dict[str, Any]:
    """Answer SQL with guarantees, or with noise where the query says so."""
    from halfmask.query.run import query
    from halfmask.release.document import plain_rows

    answer = query(space.opened.table, asked.sql, time_limit=asked.time_limit)
    facts = {"answer": answer.to_dict(), "data": plain_rows(answer.to_arrow())}
    return _kept(space, "query", answer, facts)


def synthesize(space: Workspace, asked: requests.Synthesize) -> dict[str, Any]:
    """Draw a synthetic table, under differential privacy where epsilon is given."""
    from halfmask.synthesize.run import synthesize

    options = {name: value for name, value in asked.model_dump().items() if value is not None}
    method = options.pop("method", "auto" if asked.epsilon is not None else "cocluster")
    release = synthesize(space.opened.table, method, **options)
    return _kept(space, "synthesize", release, release.to_dict())
