"""The verbs that measure one table: ``assess``, ``risks`` and ``discriminate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    POPULATION,
    as_json,
    engine_options,
    load,
    output,
    refuse_bad_outputs,
    report_option,
    show_criteria,
    source,
    split_names,
    verbose,
    weights_option,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.assessment.assess import Assessment
    from halfmask.assessment.comparison import Comparison
    from halfmask.assessment.discriminate import DiscriminationReport
    from halfmask.metrics.discrimination.need import Need
    from halfmask.metrics.discrimination.rate import Discrimination

_fraction = click.option(
    "--fraction", type=float, help="Share of the population that is in FILE (0 to 1)."
)
_size = click.option("--size", type=int, default=3, show_default=True, help="Largest column sets.")
limit_option = click.option(
    "--limit",
    type=float,
    default=0.09,
    show_default=True,
    help="Highest acceptable risk of a criterion.",
)


@click.command("assess")
@source
@POPULATION
@_fraction
@weights_option
@_size
@limit_option
@engine_options
@report_option
@verbose
@as_json
def assess_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure who stands out in FILE.

    Example: halfmask assess people.csv -o report.html
    """
    from halfmask.assessment.assess import assess

    refuse_bad_outputs(file, None, output)
    population = load(given["population"], {}) if given["population"] else None
    table = load(file, given)
    with show.show_working("Assessing"):
        found = assess(
            table,
            population=population,
            fraction=given["fraction"],
            weights=given["weights"],
            size=given["size"],
            limit=given["limit"],
        )
    write = show_assessment if given["verbose"] else show_short_assessment
    show.print_outcome("assess", found, write, report=output, as_json=as_json)


_STEPS = 5  # pieces of advice that are printed; -o writes all


def show_short_assessment(found: Assessment) -> None:
    """Print who stands out, whether attacks succeed, and what to do next."""
    _show_risk(found)
    document = found.to_dict()
    show.print_criteria(document)
    _show_survey(found)
    _show_population(found)
    for note in found.notes:
        show.say(note)
    _show_steps(found, short=True)


def _show_steps(found: Assessment, *, short: bool) -> None:
    """Say what to do next; the last of many steps, to anonymize, is the one that counts."""
    from halfmask.report.words import next_steps

    steps = next_steps(found.to_dict())
    if short and len(steps) > _STEPS:
        steps = [*steps[: _STEPS - 1], steps[-1]]
    show.print_steps(steps, short=short)


def show_assessment(found: Assessment) -> None:
    """Print an assessment for people."""
    _show_risk(found)
    _show_classes(found)
    _show_secrets(found)
    _show_survey(found)
    _show_population(found)
    _show_intrusion(found)
    show.findings("Further measures", found.findings, "sizes", "classes", "use", "attacks")
    for note in found.notes:
        show.say(note)
    _show_steps(found, short=False)


def _show_risk(found: Assessment) -> None:
    from halfmask.metrics.risk.reidentification import HIGHEST, MEAN, SMALLEST

    facts = [
        ("rows", found.rows),
        *((("people", found.people),) if found.people != found.rows else ()),
        ("classes", found.classes),
        (SMALLEST, found.smallest),
        (
            "rows alone in their class",
            f"{found.unique_rows:,} ({show.percent(found.unique_share)})",
        ),
        (HIGHEST, show.percent(found.highest_risk)),
        (MEAN, show.percent(found.mean_risk)),
    ]
    show.print_table("Risk", ("", ""), facts)


def _show_classes(found: Assessment) -> None:
    show_criteria([one.to_dict() for one in found.criteria])
    sizes = [(size, classes, rows) for size, classes, rows in found.sizes]
    show.print_table("Class sizes", ("people in the class", "classes", "rows"), sizes)
    most = sorted(found.columns, key=lambda c: -c.unique_share)[:_SHOWN]
    shown = found.columns if len(found.columns) <= _SHOWN else most
    columns = [(c.name, c.distinct, c.missing, show.percent(c.unique_share)) for c in shown]
    few = f", the {_SHOWN} that single out most of {len(found.columns)}"
    few = few if len(found.columns) > _SHOWN else ""
    show.print_table(
        f"Quasi-identifiers{few}",
        ("column", "distinct values", "missing", "rows alone by this column"),
        columns,
    )
    advice = found.advice
    if len(advice) > _SHOWN:
        advice = sorted(advice, key=lambda a: a.removed)[:_SHOWN]
    steps = [(a.column, a.unique_rows, a.one_level, a.removed) for a in advice]
    show.print_table(
        "Rows alone in their class, if one column is",
        ("column", "as it is", "one level up", "removed"),
        steps,
    )


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
    show.print_table(
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
        show.print_table(
            "Discrimination rates (0 to 1), beside what chance gives such small groups",
            ("column", "told by", "rate", "by chance", "class"),
            rated,
        )


def _show_survey(found: Assessment) -> None:
    if found.survey is None:
        return
    from halfmask.report import population

    facts = found.survey.to_dict()
    kinds = (facts["individual"], facts["plain"])
    show.print_table(
        "Found in the population, estimated from the weights",
        ("", "individual risk", "1 / people stood for"),
        [
            ("highest chance", *(show.percent(one["highest"]) for one in kinds)),
            ("global risk (mean)", *(show.percent(one["mean"]) for one in kinds)),
            ("expected number found", *(population.people_text(one["expected"]) for one in kinds)),
            (
                f"rows above {show.percent(found.limit)}",
                *(show.number_text(population.rows_above(one, found.limit)) for one in kinds),
            ),
        ],
    )
    show.say(population.survey_outcome(facts, found.limit))
    models = None if found.uniqueness is None else found.uniqueness.to_dict()
    show.say(population.lean(facts, models))


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
    show.print_table(
        "Share of the population who are unique, estimated", ("model", "", "from", "to"), rows
    )
    for line in (population.uniqueness_outcome(facts), facts["why"], population.agreement(facts)):
        if line:
            show.say(line)


def _show_intrusion(found: Assessment) -> None:
    if found.intrusion is None or found.intrusion.chance.value is None:
        return
    from halfmask.report import population
    from halfmask.report.plots import band

    facts = found.intrusion.to_dict()
    held = [(band(one), one["rows"]) for one in facts["distribution"] if one["rows"]]
    if held:
        show.print_table(
            "Rows that few columns single out, by the chance that a match is right (DIS-SUDA)",
            ("chance", "rows"),
            held,
        )
    show.say(population.intrusion_sentence(facts))


@click.command("risks")
@source
@POPULATION
@_fraction
@weights_option
@click.option("--household", metavar="COLUMN", help="Which rows belong together.")
@_size
@click.option("--limit", type=float, default=0.09, show_default=True,
              help="Rows above this risk are counted.")  # fmt: skip
@engine_options
@output("The figures of every row: .csv, .parquet, ...")
@as_json
def risks_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure every row of FILE, to filter and treat rows by.

    The figures are about single people: keep them as safe as FILE itself.

    Example: halfmask risks people.csv -o risks.csv
    """
    from halfmask.assessment.row_risks import row_risks

    refuse_bad_outputs(file, output, None)
    population = load(given["population"], {}) if given["population"] else None
    table = load(file, given)
    with show.show_working("Measuring"):
        found = row_risks(
            table,
            population=population,
            fraction=given["fraction"],
            weights=given["weights"],
            household=given["household"],
            size=given["size"],
        )
    if output:
        found.write(output)
        show.say(f"The risk of every row is in {output}.")
    facts = found.summary(given["limit"])
    if as_json:
        show.print_document("risks", {"rows": len(found), "limit": given["limit"], "risks": facts})
    else:
        show.print_table(
            "Risk of rows",
            ("risk", "highest", "mean", f"rows above {show.number_text(given['limit'])}"),
            [(one["risk"], one["highest"], one["mean"], one["above"]) for one in facts],
        )
        if any(one["above"] for one in facts):
            where = f"{output} says which" if output else "-o risks.csv writes which"
            show.say(
                f"Rows are above the limit: {where}; halfmask anonymize with a promise (--k) "
                "brings them below, halfmask assess says which columns make them stand out."
            )


def read_needs(given: dict[str, Any]) -> list[Need]:
    """The needs of ``--need`` and of the file of ``--needs``."""
    from halfmask.metrics.discrimination.need import stated_needs

    asked = [_need(text) for text in given["needs"]]
    return asked + (stated_needs(given["needs_file"]) if given["needs_file"] else [])


def _need(text: str) -> Need:
    """A need written as ``target=key,key``."""
    from halfmask.metrics.discrimination.need import Need

    target, sign, keys = text.partition("=")
    if not sign or not target.strip() or not split_names(keys):
        raise click.UsageError("--need wants COLUMN=A,B, such as --need disease=age,sex.")
    return Need(target.strip(), tuple(split_names(keys)))


def show_needs(found: Comparison) -> None:
    """Print how far needs are served, and whether as asked."""
    if not found.needs:
        return
    rows = [
        (
            one.name,
            show.rate_text(one.before),
            show.rate_text(one.after, one.reason),
            f"{one.rows_before:,} -> {one.rows_after:,}",
            _bounds_text(one.at_least, one.at_most),
            "" if one.met is None else one.met,
        )
        for one in found.needs
    ]
    headings = ("need", "original", "release", "rows", "asked", "met")
    show.print_table("Needs (discrimination rate, 0 to 1)", headings, rows)
    for note in dict.fromkeys(note for one in found.needs for note in one.notes):
        show.say(note)


def _bounds_text(at_least: float | None, at_most: float | None) -> str:
    said = [] if at_least is None else [f"at least {at_least:g}"]
    return " and ".join(said if at_most is None else [*said, f"at most {at_most:g}"])


def show_release_rates(found: Comparison) -> None:
    """Print attacks scored by discrimination rates, and where a weaker release tells less."""
    from halfmask.report.discrimination import ATTACKERS, NAMES

    held, quasi = found.discrimination, len(found.generalized)
    rows = [
        (
            f"{NAMES.get(one.attack, one.attack)}{show.box_of(ATTACKERS.get(one.attack))}",
            one.target,
            None if one.before is None else show.rate_text(one.before),
            show.rate_text(one.rate),
            None if one.chance is None else show.rate_text(one.chance.value),
            one.kind or "",
        )
        for one in held.rates
        if one.attack == "identity" or len(one.keys) == quasi
    ]
    headings = ("attack", "on", "original", "release", "by chance", "class")
    loss = show.rate_text(held.loss)
    show.print_table(f"Discrimination rates; overall information loss: {loss}", headings, rows)
    each = [
        (
            one.target,
            one.keys[0],
            show.rate_text(one.before),
            show.rate_text(one.rate),
            one.kind or "",
        )
        for one in held.rates
        if one.attack == "homogeneity" and len(one.keys) < quasi
    ]
    if each:
        parts = ("column", "told by", "original", "release", "class")
        show.print_table("By each quasi-identifier alone", parts, each)
    show.say(f"{held.pairing} Identity bounds an attacker without this pairing from above.")
    _say_reasons([(one.attack, one.target, one.reason) for one in held.rates if one.reason])
    for gone in held.absent:
        show.say(
            f"Column {gone.column}: no released label but * stands for {gone.absent:,} of its "
            f"{gone.values:,} values."
        )
    if held.inversions is None:
        return
    if held.weaker_rows != held.rows:
        show.say(
            f"The weaker release holds {held.weaker_rows:,} rows, this one {held.rows:,}: their "
            "coverage differs."
        )
    if not held.inversions:
        show.say("Nowhere does it tell more than the weaker release.")
        return
    worse = [(i.attack, i.target, ", ".join(i.keys), i.rate, i.weaker) for i in held.inversions]
    compared = ("attack", "on", "known", "this release", "the weaker one")
    show.print_table("It tells more than the weaker release", compared, worse)


def _say_reasons(reasons: Sequence[tuple[str, str, str]]) -> None:
    for attack, target, reason in dict.fromkeys(reasons):
        show.say(f"{attack.capitalize()} of {target} is not known: {reason}")


_SHOWN = 20  # lines of a table for people


@click.command("discriminate")
@source
@click.option("--target", required=True, metavar="COLUMN", help="What is to be learned.")
@click.option("--key", "keys", metavar="A,B", help="What somebody knows, jointly.")
@click.option("--size", type=int, help="Rank all sets of so many columns (of --key, or of all).")
@click.option("--values", is_flag=True, help="Also list each value of the keys. Shows cells.")
@click.option(
    "--partition", type=click.Path(), help="Which values count as one, per column: .toml."
)
@click.option(
    "--suppressed",
    type=click.Choice(("keep", "drop", "missing")),
    default="keep",
    show_default=True,
    help="Cells that hold *: a value, rows left out, or missing.",
)
@click.option("--permutations", type=int, default=20, show_default=True,
              help="Shuffles that show what chance gives; 0: none.")  # fmt: skip
@engine_options
@report_option
@as_json
def discriminate_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Measure how far other columns of FILE tell one: the discrimination rate.

    With --key the rate of these columns together; without, or with --size, a ranking of all sets
    of columns up to a size (3 unless told).

    Example: halfmask discriminate people.csv --target disease --key age,sex
    """
    from halfmask.assessment.discriminate import discriminate

    refuse_bad_outputs(file, None, output)
    table = load(file, given)
    with show.show_working("Measuring"):
        found = discriminate(
            table,
            given["target"],
            split_names(given["keys"]) or None,
            size=given["size"],
            values=given["values"],
            partition=given["partition"],
            suppressed=given["suppressed"],
            permutations=given["permutations"],
        )
    show.print_outcome("discriminate", found, show_rates, report=output, as_json=as_json)


def show_rates(found: DiscriminationReport) -> None:
    """Print rates for people."""
    if found.rate is not None:
        _show_rate(found.rate)
        _show_values(found.rate)
    if found.sets:
        rows = [
            (
                ", ".join(one.columns),
                show.rate_text(one.rate),
                None if one.inflation is None else show.rate_text(one.inflation.chance.value),
                one.kind,
                one.identified_rows,
            )
            for one in found.sets[:_SHOWN]
        ]
        headings = ("told by", "rate", "by chance", "class", "rows certain")
        show.print_table(f"Column sets that tell most about {found.target}", headings, rows)
        _more(len(found.sets), "column sets")
    for note in found.notes:
        show.say(note)


def _show_rate(one: Discrimination) -> None:
    facts: list[tuple[str, Any]] = [
        ("rate (0 tells nothing, 1 everything)", show.rate_text(one.rate)),
        ("class", one.kind),
        ("rows", one.rows),
        ("rows left out, with suppressed cells", one.left_out),
        (f"bits of {one.target}, H(X)", show.rate_text(one.entropy)),
        ("bits still needed, H(X | Y)", show.rate_text(one.residual)),
        ("values or combinations that leave one outcome", one.identifying),
        ("rows that hold them", one.identified_rows),
    ]
    if one.inflation is not None:
        chance, left = one.inflation.chance, one.inflation.adjusted
        facts.append(
            ("rate by chance (shuffled target)", show.rate_text(chance.value, chance.reason))
        )
        facts.append(("rate beyond chance", show.rate_text(left.value, left.reason)))
    title = f"What {', '.join(one.keys_)} tells about {one.target}"
    show.print_table(title, ("", ""), facts)


def _show_values(one: Discrimination) -> None:
    """The values that tell most, whatever their frequency; the more frequent first."""
    if not one.details:
        return
    telling = sorted(one.details, key=lambda v: (-v.unweighted * v.share, -v.count))
    rows = [
        (
            ", ".join(show.number_text(part) for part in v.value)
            if isinstance(v.value, tuple)
            else str(v.value),
            show.rate_text(v.rate),
            v.count,
            show.percent(v.share),
            show.rate_text(v.unweighted),
            show.percent(v.top),
        )
        for v in telling[:_SHOWN]
    ]
    headings = (", ".join(one.keys_), "rate", "rows", "share", "rate alone", "likeliest outcome")
    show.print_table("Values", headings, rows)
    _more(len(telling), "values")


def _more(count: int, what: str) -> None:
    if count > _SHOWN:
        show.say(f"The first {_SHOWN} of {count:,} {what}; --json gives all.")
