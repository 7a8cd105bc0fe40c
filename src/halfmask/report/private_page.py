"""The report page of a private release: epsilon, what it means, and what was read for it."""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup


def render_private(document: dict[str, Any]) -> str:
    """The page for the document of a private release, without any script.

    Example:
        >>> render_private(release.to_dict())  # doctest: +SKIP
        '<!doctype html>...'
    """
    home = resources.files("halfmask.report")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    template = environment.from_string(
        home.joinpath("templates/private.html").read_text(encoding="utf-8")
    )
    style = home.joinpath("static/style.css").read_text(encoding="utf-8")
    return template.render(document=document, style=Markup(style))  # noqa: S704 - our own file
