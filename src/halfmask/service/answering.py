"""The step that answers queries: what was answered or spent is on record before it is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.service.kept import document, kept

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.query.run import Session
    from halfmask.service import requests
    from halfmask.service.books import Books
    from halfmask.table.table import Table


def noisy_answer(
    session: Session, asked: requests.Query, noise: dict[str, Any], folder: Path, books: Books
) -> dict[str, Any]:
    """Answer under differential privacy, for a budget that is spent first; or plan it only."""
    from halfmask.query.private.answer import answer_privately
    from halfmask.query.private.explain import explained_privately
    from halfmask.query.private.prepare import prepare_privately
    from halfmask.release.document import plain_rows

    if asked.suggest:
        raise InputError("Guarantees are proposed for GUARANTEE only: leave EPSILON away.")
    if asked.explain:
        plan = explained_privately(prepare_privately(session, asked.sql, **noise), session)
        return document("query", {"explanation": plan.to_dict()})
    answer = answer_privately(session, asked.sql, ledger=books.accountant(), **noise)
    facts = {"answer": answer.to_dict(), "data": plain_rows(answer.to_arrow())}
    return kept("query", answer, facts, folder)


def guaranteed_answer(
    session: Session, table: Table, asked: requests.Query, folder: Path, books: Books
) -> dict[str, Any]:
    """Answer with guarantees what earlier answers do not forbid; or plan or propose only."""
    from halfmask.query.explain import explained
    from halfmask.query.history.ledger import Ledger
    from halfmask.query.suggest import suggest
    from halfmask.release.document import plain_rows
    from halfmask.release.files import private_folder

    if asked.suggest:
        return document("query", {"suggestion": suggest(table, asked.sql).to_dict()})
    work = session.prepare(asked.sql)
    if asked.explain:
        return document("query", {"explanation": explained(work.plan, session).to_dict()})
    ledger = Ledger.read(books.answers)
    answer = session.answer(work, ledger=ledger, effort=asked.effort)
    private_folder(books.answers.parent)
    ledger.write(books.answers)
    facts = {"answer": answer.to_dict(), "data": plain_rows(answer.to_arrow())}
    return kept("query", answer, facts, folder)
