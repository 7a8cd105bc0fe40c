"""The part of ``halfmask query`` that answers with noise."""

from __future__ import annotations

from typing import Any

import click

from halfmask.cli import show
from halfmask.cli.budget import keeper, show_promise
from halfmask.cli.options import STDOUT, refuse_two_documents
from halfmask.cli.releases import deliver

_NOISE = ("delta", "domains", "rows_per_person", "share")


def refuse_noise(given: dict[str, Any]) -> None:
    """Refuse options that mean nothing without a budget."""
    if given["ignore_demands"]:
        raise click.UsageError(
            "--ignore-demands is for noisy answers: with a GUARANTEE everybody's demand is kept."
        )
    for name in (*_NOISE, "grant", "ledger_key", "insist"):
        if given[name]:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} is for noisy answers: add WITH EPSILON 1.0.")


def answer_with_noise(session: Any, text: str, given: dict[str, Any], *, as_json: bool) -> None:
    """Answer under differential privacy, print the figures and what they cost."""
    from halfmask.query.private.answer import answer_privately
    from halfmask.release.document import plain_rows

    for name in ("suggest", "policies"):
        if given[name]:
            raise click.UsageError(f"--{name} is for GUARANTEE: leave it away under EPSILON.")
    options = {name: given[name] for name in _NOISE if given[name] is not None}
    options |= {
        "insist": given["insist"],
        "demands": "ignore" if given["ignore_demands"] else "keep",
    }
    if given["explain"] or text.lstrip()[:7].upper() == "EXPLAIN":
        _explain(session, text, {**options, "epsilon": given["epsilon"]}, as_json=as_json)
        return
    refuse_two_documents(given["output"], json_too=as_json)
    with show.working("Answering"):
        answer = answer_privately(
            session,
            text,
            epsilon=given["epsilon"],
            ledger=keeper(
                given["ledger"], given["grant"], given["ledger_key"], insist=given["insist"]
            ),
            **options,
        )
    rows = answer.to_arrow()
    to = "stderr" if given["output"] == STDOUT else "stdout"
    if given["output"] or given["report"]:
        deliver(answer, given["output"], given["report"])
    if as_json:
        show.document("query", {"answer": answer.to_dict(), "data": plain_rows(rows)})
        return
    if not given["output"]:
        show.table("Answer", rows.column_names, [list(r.values()) for r in rows.to_pylist()])
    sure = float(answer.parameters["confidence"])
    facts = [("groups", answer.parameters["groups"]), ("confidence", show.percent(sure))]
    show_promise(answer, "Private answer", facts, to=to)


def _explain(session: Any, text: str, options: dict[str, Any], *, as_json: bool) -> None:
    from halfmask.query.private.explain import explained_privately
    from halfmask.query.private.prepare import prepare_privately

    plan = explained_privately(prepare_privately(session, text, **options), session)
    if as_json:
        show.document("query", {"explanation": plan.to_dict()})
    else:
        show.echo(str(plan))
