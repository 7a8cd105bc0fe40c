"""``halfmask assess``: who stands out, through which columns, how much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.criteria import show_criteria
from halfmask.cli.options import (
    as_json,
    engine_options,
    load,
    refuse_bad_outputs,
    report_option,
    rows_or_place,
    source,
    weights_option,
)

if TYPE_CHECKING:
    from halfmask.assessment.assessment import Assessment


@click.command("assess")
@source
@click.option("--population", type=click.Path(), help="The population table's file.")
@click.option("--fraction", type=float, help="Share of the population that is in FILE (0 to 1).")
@weights_option
@click.option("--size", type=int, default=3, show_default=True, help="Largest column sets.")
@click.option("--limit", type=float, default=0.09, show_default=True,
              help="Highest acceptable risk of a criterion.")  # fmt: skip
@engine_options
@report_option
@as_json
def command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure who stands out in FILE.

    Example: halfmask assess people.csv -o report.html
    """
    from halfmask.assessment.assess import assess

    refuse_bad_outputs(file, None, output)
    population = load(given["population"], {}) if given["population"] else None
    table, how = rows_or_place(file, given)
    with show.working("Assessing"):
        found = assess(
            table,
            population=population,
            fraction=given["fraction"],
            weights=given["weights"],
            size=given["size"],
            limit=given["limit"],
            **how,
        )
    show.outcome("assess", found, show_assessment, report=output, as_json=as_json)


def show_assessment(found: Assessment) -> None:
    """Print an assessment for people."""
    facts = [
        ("rows", found.rows),
        ("people", found.people),
        ("classes", found.classes),
        ("smallest class, people", found.smallest),
        (
            "rows alone in their class",
            f"{found.unique_rows:,} ({show.percent(found.unique_share)})",
        ),
        ("highest risk (prosecutor)", show.percent(found.highest_risk)),
        ("mean risk (marketer)", show.percent(found.mean_risk)),
    ]
    show.table("Risk", ("", ""), facts)
    show_criteria([one.to_dict() for one in found.criteria])
    sizes = [(size, classes, rows) for size, classes, rows in found.sizes]
    show.table("Class sizes", ("people in the class", "classes", "rows"), sizes)
    columns = [(c.name, c.distinct, c.missing, show.percent(c.unique_share)) for c in found.columns]
    show.table(
        "Quasi-identifiers",
        ("column", "distinct values", "missing", "rows alone by this column"),
        columns,
    )
    steps = [(a.column, a.unique_rows, a.one_level, a.removed) for a in found.advice]
    show.table(
        "Rows alone in their class, if one column is",
        ("column", "as it is", "one level up", "removed"),
        steps,
    )
    _show_secrets(found)
    _show_survey(found)
    _show_population(found)
    _show_intrusion(found)
    for note in found.notes:
        show.say(note)


def _show_secrets(found: Assessment) -> None:
    if not found.disclosures:
        return
    learned = [
        (
            one.column,
            show.percent(one.homogeneity),
            show.percent(one.background),
            show.percent(one.skewness),
            "not known" if one.similarity is None else show.percent(one.similarity),
        )
        for one in found.disclosures
    ]
    show.table(
        "What an attacker who knows the quasi-identifiers learns",
        ("column", "certain", "certain if one is ruled out", "largest gain", "alike in meaning"),
        learned,
    )
    rated = [
        (
            target,
            ", ".join(one.columns),
            one.rate,
            None if one.inflation is None else one.inflation.chance.value,
            one.kind,
        )
        for target, sets in found.discrimination
        for one in sets[:3]
    ]
    if rated:
        show.table(
            "Discrimination rates (0 to 1), beside what chance gives such small groups",
            ("column", "told by", "rate", "by chance", "class"),
            rated,
        )


def _show_survey(found: Assessment) -> None:
    if found.survey is None:
        return
    from halfmask.report import survey

    facts = found.survey.to_dict()
    kinds = (facts["individual"], facts["plain"])
    show.table(
        "Found in the population, estimated from the weights",
        ("", "individual risk", "1 / people stood for"),
        [
            ("highest chance", *(show.percent(one["highest"]) for one in kinds)),
            ("global risk (mean)", *(show.percent(one["mean"]) for one in kinds)),
            ("expected number found", *(survey.people(one["expected"]) for one in kinds)),
            (
                f"rows above {show.percent(found.limit)}",
                *(show.number(survey.rows_above(one, found.limit)) for one in kinds),
            ),
        ],
    )
    show.say(survey.outcome(facts, found.limit))
    models = None if found.uniqueness is None else found.uniqueness.to_dict()
    show.say(survey.lean(facts, models))


def _show_population(found: Assessment) -> None:
    if found.uniqueness is None:
        return
    from halfmask.report import population

    facts = found.uniqueness.to_dict()
    shown = [
        ("relied on", facts["unique"]),
        *((title, facts[name]) for name, title in population.MODELS),
    ]
    rows = [
        (title, one["reason"] if one["value"] is None else show.percent(one["value"]),
         *("" if one[end] is None else show.percent(one[end]) for end in ("low", "high")))
        for title, one in shown
    ]  # fmt: skip
    rows.append(("under any model", "", *(show.percent(end) for end in facts["bounds"])))
    show.table(
        "Share of the population who are unique, estimated", ("model", "", "from", "to"), rows
    )
    for line in (population.outcome(facts), facts["why"], population.agreement(facts)):
        if line:
            show.say(line)


def _show_intrusion(found: Assessment) -> None:
    if found.intrusion is None or found.intrusion.chance.value is None:
        return
    from halfmask.report import survey
    from halfmask.report.risk_plots import band

    facts = found.intrusion.to_dict()
    held = [(band(one), one["rows"]) for one in facts["distribution"] if one["rows"]]
    if held:
        show.table(
            "Rows that few columns single out, by the chance that a match is right (DIS-SUDA)",
            ("chance", "rows"),
            held,
        )
    show.say(survey.intrusion(facts))
