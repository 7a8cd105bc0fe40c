"""What a reader of an assessment should know besides its figures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.table.decimal_comma import HINT, are_comma_numbers
from halfmask.table.numbers import is_text

if TYPE_CHECKING:
    from halfmask.engines.counted import Counted
    from halfmask.metrics.risk.survey import SurveyRisk
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


def notes(
    held: Counted,
    classes: Classes,
    size: int,
    fraction: float | None,
    survey: SurveyRisk | None,
) -> tuple[str, ...]:
    """What goes with the figures of rows or tuples.

    Args:
        held: what was measured.
        classes: its classes.
        size: the largest column sets that were looked at.
        fraction: the share of the population that it holds, if it is known.
        survey: the risk by its weights, if it has any.
    """
    said = [held.note] if held.note else []
    if classes.members is not None:
        said.append(
            "People have several rows. Who is alone is counted by people: a row is alone where "
            "nobody else shares its values. What is learned of sensitive columns counts rows."
        )
    commas = [name for name in held.table.schema.quasi if _with_commas(held.table, name)]
    if commas:
        said.append(f"Read as text: {', '.join(commas)}.{HINT}")
    if size < len(held.table.schema.quasi):
        said.append(f"Column sets of up to {size} columns were looked at; larger ones tell more.")
    if fraction is None:
        said.append(
            "Nothing is said about the population: give the share of it that is in the table "
            "(fraction), a table of it (population), or the column of sampling weights (weights)."
        )
    return (*said, *_strangers(classes), *_drawn(survey))


def _with_commas(table: Table, name: str) -> bool:
    values = table.encode(name).values
    return is_text(values.type) and are_comma_numbers(values.drop_null())


def _strangers(classes: Classes) -> tuple[str, ...]:
    """What is to be said where the population does not hold everybody of the table."""
    if classes.population is None:
        return ()
    few = classes.population < classes.people
    if not few.any():
        return ()
    return (
        f"The population holds fewer people than the table in {int(few.sum()):,} classes of the "
        f"table, with {int(classes.people[few].sum()):,} people: it is not everybody. There, the "
        "journalist's risk is that of the table alone.",
    )


def _drawn(survey: SurveyRisk | None) -> tuple[str, ...]:
    """What is to be said of models beside weights."""
    if survey is None or survey.equal:
        return ()
    return (
        "The weights differ, so that people were not drawn with the same chance. The models of the "
        "population and DIS take them to be; the risks by weights do not.",
    )
