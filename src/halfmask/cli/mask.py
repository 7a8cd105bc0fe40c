"""``halfmask mask``: apply masks in order, and say what they did.

``halfmask randomize`` and ``halfmask shares``: answers told by chance, and what they let estimate.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from halfmask.cli import show
from halfmask.cli.options import (
    POPULATION,
    STDOUT,
    PromiseCommand,
    as_json,
    bare_source,
    demand_options,
    demand_settings,
    engine_options,
    load,
    output,
    output_table,
    population_of,
    refuse_bad_outputs,
    refuse_two_documents,
    source,
)
from halfmask.cli.publish import deliver
from halfmask.cli.show import show_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from halfmask.masking.methods.cloaking import Cloak
    from halfmask.masking.methods.response import ShareEstimate
    from halfmask.release.doors.masked import MaskedRelease


class MaskCommand(PromiseCommand):
    """A verb that lists the masks at the end of its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The way to write each mask."""
        from halfmask.masking.masks import known_masks, metavar

        del ctx
        with formatter.section("Steps"):
            formatter.write_dl([(metavar(one), one.words.does) for one in known_masks()])


@click.command("mask", cls=MaskCommand)
@source
@click.option("--step", "steps", multiple=True, metavar="MASK", help="A step, in order; see below.")
@click.option(
    "--like", type=click.Path(), help="Repeat a release's steps and promises: its .json report."
)
@POPULATION
@demand_options
@click.option("--seed", type=int, help="Repeat draws in tests; whoever knows it can undo them.")
@output("The release: .parquet, .csv, .arrow, a folder/ or a database; - is CSV on stdout.")
@output_table
@engine_options
@click.option("--report", type=click.Path(), help="A report: .html or .json.")
@click.option(
    "--figures", type=click.Path(), help="What steps found and changed, for you alone: .json."
)
@click.option("--map", "areas", type=click.Path(), help="The areas of a cloak: .geojson.")
@as_json
def mask_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Mask FILE step by step: swap, round, perturb, suppress, sample.

    Without --step and --like, the steps of [mask] in the schema are taken. Masks promise nothing by
    themselves; promises that are named are checked on the rows that leave. --like repeats those of
    the release unless others are named.

    Example: halfmask mask people.csv --step "top-code salary share=0.01" -o out.csv; in a database:
    halfmask mask postgresql://host/db --table visits --step "round age base=5"
    -o postgresql://host/db --output-table visits_public
    """
    from halfmask.masking.masks import read_steps, secret_places
    from halfmask.masking.methods.cloaking import Cloak
    from halfmask.masking.methods.pseudonyms import refuse_near_vault
    from halfmask.masking.run import mask, read_like, read_like_models
    from halfmask.models.options import read_models
    from halfmask.release.doors.masked import companion_path

    refuse_two_documents(output, json_too=as_json)
    outputs = (output, given["report"], given["figures"], given["areas"])
    place = given["output_table"]
    refuse_bad_outputs(file, *outputs, beside=True, table=place)
    if given["steps"] and given["like"]:
        raise click.UsageError("--step and --like both say what to do: give one of them.")
    steps = read_like(given["like"]) if given["like"] else read_steps(given["steps"])
    table = load(file, given)
    named = steps or read_steps(table.schema.mask)
    refuse_near_vault(named, None if output == STDOUT else output)
    inputs = secret_places(named)
    refuse_bad_outputs(file, *outputs, inputs=inputs, beside=True, table=place)
    cloaks = [one for one in named if isinstance(one, Cloak)]
    if given["areas"] and len(cloaks) != 1:
        which = f"{len(cloaks)} steps are" if cloaks else "no step is one"
        raise click.UsageError(f"--map draws the areas of one cloak, and {which}.")
    models = read_models(given, mark="--", population=population_of(given), needed=False)
    if given["like"] and not models:
        models = list(read_like_models(given["like"]))
    settings = {"models": models, "seed": given["seed"], **demand_settings(given)}
    with show.show_working("Masking"):
        release = mask(table, *steps, **settings)
    if output and output != STDOUT:
        beside = (str(companion_path(output, name)) for name in release.tables)
        refuse_bad_outputs(file, *outputs, *beside, beside=True, table=place)
    deliver(release, output, given["report"], table=place)
    if given["figures"]:
        _keep_figures(release, given["figures"])
    if given["areas"]:
        _draw_areas(release, cloaks[0], given["areas"])
    if as_json:
        show.print_document("mask", release.to_dict())
    else:
        show_masked(release, to="stderr" if output == STDOUT else "stdout")


@click.command("randomize")
@source
@click.option("-c", "--column", "columns", multiple=True, required=True, help="Whose answers.")
@click.option("--epsilon", type=float, required=True, help="What one answer costs.")
@demand_options
@output("The release: .parquet, .csv, .arrow; - is CSV on stdout.")
@click.option("--report", type=click.Path(), help="A report with plots: .html; or .json.")
@as_json
def randomize_command(file: str, output: str | None, as_json: bool, **given: Any) -> None:
    """Tell the answers in some columns of FILE truly by chance, else another declared one.

    Each row's answer has local differential privacy. The schema lists the answers of a column as
    its domain. Other columns leave as they are; mask --step "randomize ..." combines it with more.

    Example: halfmask randomize people.csv -c smokes --epsilon 1 -o out.csv --report out.html
    """
    from halfmask.masking.methods.response import estimate_shares
    from halfmask.masking.run import randomize

    refuse_two_documents(output, json_too=as_json)
    refuse_bad_outputs(file, output, given["report"])
    table = load(file, given)
    with show.show_working("Randomizing"):
        release = randomize(
            table, *given["columns"], epsilon=given["epsilon"], **demand_settings(given)
        )
    deliver(release, output, given["report"])
    if as_json:
        show.print_document("randomize", release.to_dict())
        return
    to = "stderr" if output == STDOUT else "stdout"
    names = ("column", "epsilon", "true answers", "odds change at most by")
    told = release.statement["randomized"]
    rows = [
        (one["column"], f"{one['epsilon']:g}", show.percent(one["truth"]), f"{one['odds']:.4g}")
        for one in told
    ]
    show.print_table("Randomized answers", names, rows, to=to)
    for one in told:
        show.say(f"{one['column']}: {one['meaning']}")
    _show_shares(estimate_shares(release), to=to)
    show.print_notes(release)


@click.command("shares")
@bare_source
@click.option("--like", type=click.Path(), required=True, help="The release's .json report.")
@as_json
def shares_command(file: str, like: str, as_json: bool, **given: Any) -> None:
    """Estimate from randomized answers in FILE, all rows of a release or some, what was true.

    Example: halfmask shares out.csv --like out.json
    """
    from halfmask.masking.methods.response import estimate_shares, read_responses

    table = load(file, given)
    found = [
        one
        for told in read_responses(like)
        for one in estimate_shares(
            table, told["column"], epsilon=told["epsilon"], values=told["values"]
        )
    ]
    if as_json:
        show.print_document("shares", {"shares": [one.to_dict() for one in found]})
    else:
        _show_shares(found)


def _show_shares(found: Sequence[ShareEstimate], *, to: str = "stdout") -> None:
    rows = [
        (
            one.column,
            "(missing)" if one.value is None else one.value,
            one.told,
            "" if one.share is None else show.percent(one.share),
            f"{show.percent(one.low)} to {show.percent(one.high)}",
        )
        for one in found
    ]
    show.print_table("Estimated shares", ("column", "answer", "told", "share", "95 %"), rows, to=to)


def _keep_figures(release: MaskedRelease, path: str) -> None:
    from halfmask.release.files import private_file
    from halfmask.table.document import plain_value

    with private_file(path) as temporary:
        text = json.dumps(plain_value({"steps": list(release.figures)}), indent=2)
        temporary.write_text(text + "\n", encoding="utf-8")
    show.say(f"The figures are in {path}; they are for you alone.")


def _draw_areas(release: MaskedRelease, cloak: Cloak, path: str) -> None:
    from halfmask.masking.methods.cloaking import geojson
    from halfmask.release.files import whole_file

    with whole_file(path) as temporary:
        temporary.write_text(geojson(release.tables["cells"], cloak.cell) + "\n", encoding="utf-8")
    show.say(f"The areas are in {path}.")


def _fact_lines(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a step found, a line each; no document holds it."""
    for name, value in facts.items():
        words = name.replace("_", " ")
        if isinstance(value, dict):
            yield words, ", ".join(f"{one} {show.number_text(n)}" for one, n in value.items())
        elif isinstance(value, list | tuple):
            yield words, ", ".join(map(show.number_text, value))
        else:
            yield words, show.percent(value) if name.endswith("_share") else show.number_text(value)


def show_masked(release: MaskedRelease, *, to: str = "stdout") -> None:
    """Print what each step did, and what was measured."""
    from halfmask.metrics.risk.reidentification import HIGHEST, MEAN, SMALLEST

    if release.verdicts:
        show_verdicts(release.verdicts, to=to)
    rows = []
    for step in release.steps:
        columns = step["figures"]["columns"]
        for name in step["changes"]:
            found = columns.get(name, {})
            changed = show.percent(found["changed"]) if "changed" in found else "new or removed"
            near = found.get("within_interval")
            rows.append((step["mask"], name, changed, "" if near is None else show.percent(near)))
    near_words = "of all cells, still close to the true number"
    show.print_table("Steps", ("mask", "column", "cells changed", near_words), rows, to=to)
    found = [(step["mask"], *line) for step in release.steps for line in _fact_lines(step["facts"])]
    if found:
        show.print_table("What steps found, for you alone", ("mask", "what", ""), found, to=to)
    for step in release.steps:
        if "told" in step:
            show.say(f"{step['mask']}: {step['told']['words']}")
    linked = release.measured["linked"]
    facts = [
        ("rows that leave", len(release)),
        ("rows left out", release.suppressed),
        (
            "linked to their own row",
            "" if linked["value"] is None else show.percent(linked["value"]),
        ),
    ]
    risk = release.risk
    if risk is not None:
        facts += [
            (SMALLEST, risk.smallest),
            (HIGHEST, show.percent(risk.prosecutor)),
            (MEAN, show.percent(risk.marketer)),
        ]
    show.print_table("Release", ("", ""), facts, to=to)
    show.print_notes(release)
