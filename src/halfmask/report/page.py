"""The pages: one HTML file each that carries its style, scripts and figures with it."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from halfmask.report import discrimination, population, side_by_side
from halfmask.report import frontier as frontier_words
from halfmask.report import words as sentences
from halfmask.report.frontier import frontier_plot
from halfmask.report.plots import (
    BAR,
    MOST_BARS,
    assessment,
    band,
    bin_label,
    comparison,
    plot,
    plots,
    quasi,
    synthetic,
)
from halfmask.report.words import (
    count_text,
    effort,
    figure_text,
    limit_sentences,
    model_words,
    percent_text,
    score_text,
    term,
)
from halfmask.table.document import grid, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_HOME = resources.files("halfmask.report")


_UNSIGNED: dict[str, Any] = dict.fromkeys(("title", "by", "original", "file", "command"), "") | {
    "date": "(see the signature)"
}


def render(document: dict[str, Any]) -> str:
    """The page for the document of a release (see docs/release.md for its shape).

    Example:
        >>> from halfmask.report import render
        >>> render(release.to_dict())  # doctest: +SKIP
        '<!doctype html>...'
    """
    return render_template(
        "release.html",
        document=document,
        certificate={**_UNSIGNED, **document.get("certificate", {})},
        say=sentences,
        quasi=quasi(document),
        plots=plots(document),
        bin_label=bin_label,
        words=model_words,
        effort=effort(document),
        limits=limit_sentences(document),
    )


def render_template(
    template: str, filters: Mapping[str, Callable[..., object]] | None = None, **facts: Any
) -> str:
    """One self-contained page from a template and what it shows."""
    import jinja2  # here: most verbs only take words of this folder

    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: _text(f"templates/{name}")),
    )
    environment.filters.update(
        count=count_text, percent=percent_text, figure=figure_text, embed=_embed
    )
    environment.filters.update(filters or {})
    return environment.get_template(template).render(
        style=Markup(_text("static/style.css")),  # noqa: S704 - our own file
        scripts=[embedded_script(name) for name in ("vega.min.js", "vega-lite.min.js", "plots.js")],
        **facts,
    )


def _text(name: str) -> str:
    return _HOME.joinpath(name).read_text(encoding="utf-8")


def embedded_script(name: str) -> Markup:
    """One of our scripts, as it may stand in a page."""
    text = re.sub(r"\n//# sourceMappingURL=.*", "", _text(f"static/{name}"))
    return Markup(text.replace("</script", "<\\/script"))  # noqa: S704 - our own file


def _embed(value: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - nothing in it is read as HTML


_KINDS: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "halfmask.assessment": ("assessment.html", assessment),
    "halfmask.comparison": ("comparison.html", comparison),
    "halfmask.discrimination": ("discrimination.html", lambda _: {}),
    "halfmask.frontier": ("frontier.html", frontier_plot),
    "halfmask.side_by_side": ("side_by_side.html", side_by_side.rate_plots),
    "halfmask.synthetic": ("synthetic.html", synthetic),
}


def render_page(document: dict[str, Any]) -> str:
    """The page for a document, by its ``format``.

    Example:
        >>> from halfmask.report.page import render_page
        >>> render_page(assessment.to_dict())  # doctest: +SKIP
        '<!doctype html>...'
    """
    template, plots = _KINDS[document["format"].split("/")[0]]
    return render_template(
        template,
        {
            "estimate": estimate_text,
            "score": score_text,
            "finding": finding,
            "meaning": meaning,
            "figure_rows": _noted_rows,
        },
        document=document,
        plots=plots(document),
        rates=discrimination,
        say=sentences,
        population=population,
        band=band,
        most_bars=MOST_BARS,
        frontier=frontier_words,
        side_by_side=side_by_side,
        term=term,
    )


_FORMS: dict[str, Callable[[float], str]] = {
    "percent": percent_text,
    "score": score_text,
    "figure": figure_text,
    "count": lambda value: count_text(round(value)),
}


def estimate_text(value: dict[str, Any] | None, form: str = "percent") -> str:
    """An estimate with its interval, or why there is none."""
    if value is None:
        return "not measured"
    if value["value"] is None:
        return f"not known: {value['reason']}"
    write = _FORMS[form]
    text = write(value["value"])
    low, high = value["low"], value["high"]
    if low is not None and high is not None and (low, high) != (value["value"], value["value"]):
        text += f" ({write(low)} to {write(high)})"
    return text if value["trusted"] else f"{text}, not to be relied on: {value['reason']}"


def finding(one: dict[str, Any]) -> str:
    """A finding as a figure: of the original and the release where both are known."""
    before, after, sentence = one["before"], one["after"], one["sentence"]
    if before is None and after is None:
        return sentence or "not known"
    text = "not known" if after is None else estimate_text(after, one["form"])
    if before is not None:
        text = f"{_FORMS[one['form']](before)} → {text}"
    return f"{text}. {sentence}" if sentence else text


def meaning(one: dict[str, Any]) -> str:
    """What a finding counts, on how many it was tried, and what a reader should know of it."""
    after, text = one["after"], one["meaning"]
    if after is None or after["value"] is None:
        return str(text)
    if after["low"] != after["high"]:
        text += f", n = {after['n']:,}"
    return f"{text}. {after['reason']}" if after["trusted"] and after["reason"] else str(text)


MOST_ROWS = 500


def render_answer(document: dict[str, Any], columns: list[str], rows: list[list[object]]) -> str:
    """The page for the document of an answer and its rows; long answers are cut and say so."""
    return render_template(
        "answer.html",
        document=document,
        columns=columns,
        rows=[[_cell_text(value) for value in row] for row in rows[:MOST_ROWS]],
        numeric=[_is_numeric(rows, i) for i in range(len(columns))],
        plots={"plot-levels": levels(document)},
    )


def levels(document: dict[str, Any]) -> dict[str, Any]:
    """One bar per level: how many rows were published there."""
    data = [
        {"level": f"{x['level']}: {x['step']} (k={x['k']}, l={x['l']})", "rows": x["rows"]}
        for x in document["levels"]
    ]
    text = {"field": "rows", "type": "quantitative", "format": ",d"}
    return plot(
        data,
        height=BAR * max(len(data), 1),
        encoding={
            "y": {
                "field": "level",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {"labelLimit": 320},
            },
            "x": {
                "field": "rows",
                "type": "quantitative",
                "title": "rows published",
                "axis": {"tickMinStep": 1, "format": ",d"},
            },
            "tooltip": [{"field": "level"}, text],
        },
        layer=[
            {"mark": "bar"},
            {"mark": {"type": "text", "align": "left", "dx": 4}, "encoding": {"text": text}},
        ],
    )


def _cell_text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _is_numeric(rows: list[list[object]], column: int) -> bool:
    values = [row[column] for row in rows if row[column] is not None]
    return bool(values) and not any(isinstance(v, str | bool) for v in values)


SCENARIOS = {
    "over_moderate": "over one moderate k",
    "over_uniform": "over the highest k for all",
    "over_deleting": "over deleting the demanding",
}


def render_policies(document: dict[str, Any]) -> str:
    """The page for the document of a comparison of policies."""
    return render_template(
        "policies.html",
        document=document,
        scenarios=SCENARIOS,
        plots={"plot-gains": gains(document)},
    )


def gains(document: dict[str, Any]) -> dict[str, Any]:
    """One point with its interval per population and scenario; above 1 personal demands gain."""
    data = [
        {
            "population": one["concern"],
            "scenario": words,
            "gain": one[key]["mean"],
            "low": one[key]["low"],
            "high": one[key]["high"],
        }
        for one in document["gains"]
        for key, words in SCENARIOS.items()
    ]
    order = [one["concern"] for one in document["gains"]]
    y = {"field": "population", "type": "nominal", "sort": order, "title": None}
    color = {
        "field": "scenario",
        "type": "nominal",
        "sort": None,
        "title": None,
        "legend": {"labelLimit": 260},
    }
    offset = {"field": "scenario", "type": "nominal", "sort": None}
    x = {"field": "gain", "type": "quantitative", "title": "loss of the alternative / personal",
         "scale": {"zero": False, "type": "log"}}  # fmt: skip
    return plot(
        data,
        height=64 * max(len(order), 1),
        layer=[
            {"mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": {"x": {"datum": 1}}},
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "color": color,
                    "x": {**x, "field": "low"},
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "color": color,
                    "x": x,
                    "tooltip": [
                        {"field": "population"},
                        {"field": "scenario"},
                        {"field": "gain", "format": ".3f"},
                    ],
                },
            },
        ],
    )


def notebook_parts(document: dict[str, Any]) -> list[str]:
    """What a notebook shows of a document: the outcome, the figures, what to do next."""
    kind = document["format"].split("/")[0].removeprefix("halfmask.")
    if kind == "comparison":
        shown = [one for one in document["findings"] if one["section"] == "sizes"]
        figures = [(one["name"], finding(one)) for one in shown]
        said, next_ = sentences.comparison_outcome(document), sentences.comparison_steps(document)
    elif kind == "assessment":
        figures = [
            (sentences.SMALLEST, count_text(document["smallest"])),
            (sentences.HIGHEST, percent_text(document["highest_risk"])),
            (sentences.MEAN, percent_text(document["mean_risk"])),
            ("rows alone in their class", count_text(document["unique_rows"])),
        ]
        said, next_ = sentences.assessment_outcome(document), sentences.next_steps(document)
    elif kind == "frontier":
        return _frontier_parts(document)
    elif kind == "side_by_side":
        return [grid(("", "original", *document["releases"]), _figure_rows(document), 60)]
    else:
        return [lines([str(one) for one in document.get("notes", [])])]
    return [lines([said]), grid(("", ""), figures), lines(["What to do next:", *next_])]


def _figure_rows(document: dict[str, Any]) -> list[tuple[str, ...]]:
    """Per figure its title, that of the original and that of each release."""
    return [
        (one["title"], "" if one["before"] is None else _FORMS[one["form"]](one["before"]),
         *(estimate_text(each, one["form"]) for each in one["after"]))
        for one in document["headlines"]
    ]  # fmt: skip


def _noted_rows(document: dict[str, Any]) -> dict[str, Any]:
    """The same with numbers in place of reasons, and these below: cells stay narrow."""
    reasons: dict[str, int] = {}

    def noted(value: dict[str, Any] | None, form: str) -> tuple[str, int | None]:
        if value is None or value["trusted"]:
            return estimate_text(value, form), None
        if value["value"] is None:
            text, said = "not known", value["reason"]
        else:
            text = estimate_text({**value, "trusted": True}, form)
            said = f"Not to be relied on: {value['reason']}"
        return text, reasons.setdefault(said, len(reasons) + 1)

    rows = [
        (row[:2], [noted(each, one["form"]) for each in one["after"]])
        for one, row in zip(document["headlines"], _figure_rows(document), strict=True)
    ]
    return {"rows": rows, "reasons": [*reasons]}


def _frontier_parts(document: dict[str, Any]) -> list[str]:
    shown = frontier_words.FIGURES
    rows = [
        (one["name"], "✓" if one["best"] else "",
         *("" if one[f.name] is None else f.text(one[f.name]) for f in shown))
        for one in frontier_words.distinct_results(document)
    ]  # fmt: skip
    headings = ("setting", "not dominated", *(f.title for f in shown))
    return [lines([frontier_words.frontier_summary(document)]), grid(headings, rows, 40)]
