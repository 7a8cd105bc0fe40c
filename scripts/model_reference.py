"""Writes the table of models in docs/reference.md from the models; ``--check`` only compares."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from halfmask.models.options import Form, forms
from halfmask.models.verdict import Model, known_models, parameters

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
TITLE = "## Models\n"
INTRO = """
Each is a promise; its page under [definitions](definitions) gives the definition, the source
and what it does not protect. This table is written by `scripts/model_reference.py`.

| name | on the command line | promise |
|---|---|---|
"""


def table() -> str:
    """The table, one line a model."""
    return INTRO + "".join(map(_line, known_models()))


def _line(model: type[Model]) -> str:
    stated = []
    for one in inspect.signature(model).parameters.values():
        default = "" if one.default is one.empty else "=" + repr(one.default).replace("'", '"')
        stated.append(f"{one.name}{default}")
    promise = (model.__doc__ or "").partition("\n")[0].replace("``", "`").replace("|", "\\|")
    for one, parameter in parameters(model):
        if parameter.kind == "word":
            promise += f" `{one.name}` is {', '.join(parameter.words)}."
    option = "".join(f"`--{_written(form)}`" for form in forms([model]))
    return f"| `hm.{model.__name__}({', '.join(stated)})` | {option} | {promise} |\n"


def _written(form: Form) -> str:
    return form.name if form.is_flag else f"{form.name} {form.metavar()}"


def main() -> None:
    """Write the table, or say that it is old."""
    page = PAGE.read_text(encoding="utf-8")
    text = re.sub(rf"(?<={TITLE}).*?(?=\n## )", lambda _: table(), page, flags=re.DOTALL)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif page != text:
        sys.exit("docs/reference.md is old. Run: .venv/bin/python scripts/model_reference.py")


if __name__ == "__main__":
    main()
