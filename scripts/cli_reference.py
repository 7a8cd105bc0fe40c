"""Writes docs/cli.md from the commands themselves; ``--check`` only compares."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from halfmask.cli.main import VERBS, cli

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
WIDTH = 100

INTRO = """# The command line

Written by `scripts/cli_reference.py`; do not edit by hand.

Data goes to stdout, words go to stderr. Every verb prints tables for people and, with `--json`, one
JSON document `{"ok": true, "verb": ..., ...}`. Exit codes and the shape of errors are in
[errors.md](errors.md). FILE is CSV, Parquet, Arrow or Feather; its schema is the TOML file of the
same name beside it, unless `--schema` names another.
"""


def reference() -> str:
    """The whole page."""
    settings = {**cli.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    root = click.Context(cli, info_name="halfmask", **settings)
    parts = [INTRO, _section("halfmask", cli.get_help(root))]
    for verb in VERBS:
        parts += _command(cli, verb, root, settings)
    return "\n".join(parts)


def _command(
    group: click.Group, name: str, above: click.Context, settings: dict[str, Any]
) -> list[str]:
    """The section of a command, and of those below it."""
    command = group.get_command(above, name)
    if command is None:
        sys.exit(f"The verb {name} has no command.")
    context = click.Context(command, above, name, **settings)
    parts = [_section(context.command_path, command.get_help(context))]
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            parts += _command(command, below, context, settings)
    return parts


def _section(title: str, text: str) -> str:
    lines = "\n".join(line.rstrip() for line in text.splitlines())
    return f"## {title}\n\n```\n{lines}\n```\n"


def main() -> None:
    """Write the page, or say that it is old."""
    text = reference()
    if "--check" in sys.argv[1:]:
        if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
            sys.exit("docs/cli.md is old. Run: .venv/bin/python scripts/cli_reference.py")
        return
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
