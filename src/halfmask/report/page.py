"""The report page: one HTML file that carries its style, scripts and figures with it."""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from halfmask.report.figures import count, figure, percent
from halfmask.report.plots import bin_label, plots, quasi
from halfmask.report.words import effort, limits, words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HOME = resources.files("halfmask.report")


def render(document: dict[str, Any]) -> str:
    """The page for the document of a release (see docs/release.md for its shape).

    Example:
        >>> from halfmask.report import render
        >>> render(release.to_dict())  # doctest: +SKIP
        '<!doctype html>...'
    """
    return rendered(
        "release.html",
        document=document,
        quasi=quasi(document),
        plots=plots(document),
        bin_label=bin_label,
        words=words,
        effort=effort(document),
        limits=limits(document),
    )


def rendered(
    template: str, filters: Mapping[str, Callable[..., str]] | None = None, **facts: Any
) -> str:
    """One self-contained page from a template and what it shows."""
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: _text(f"templates/{name}")),
    )
    environment.filters.update(count=count, percent=percent, figure=figure, embed=_embed)
    environment.filters.update(filters or {})
    return environment.get_template(template).render(
        style=Markup(_text("static/style.css")),  # noqa: S704 - our own file
        scripts=[_script(name) for name in ("vega.min.js", "vega-lite.min.js", "plots.js")],
        **facts,
    )


def _text(name: str) -> str:
    return _HOME.joinpath(name).read_text(encoding="utf-8")


def _script(name: str) -> Markup:
    text = re.sub(r"\n//# sourceMappingURL=.*", "", _text(f"static/{name}"))
    return Markup(text.replace("</script", "<\\/script"))  # noqa: S704 - our own file


def _embed(value: object) -> Markup:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - nothing in it is read as HTML
