"""Assembles the verbs and turns every failure into one sentence and an exit code.

Exit codes: 0 done, 1 input, 2 a promise is not kept, 3 the privacy budget does not suffice, 4 an
engine or package is missing, 70 a defect of halfmask, 130 interrupted, 141 the reader of our output
went away.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from halfmask.cli import show
from halfmask.errors import HalfmaskError, InputError, InternalError, mask_passwords
from halfmask.failure import Failure, failure

if TYPE_CHECKING:
    from collections.abc import Sequence


# The verbs in the order a user meets them, and the chapter of each; one line a verb.
VERBS = {
    "describe": "describe",
    "assess": "assess",
    "risks": "assess",
    "check": "check",
    "discriminate": "assess",
    "anonymize": "publish",
    "recode": "publish",
    "mask": "mask",
    "randomize": "mask",
    "shares": "mask",
    "query": "query",
    "synthesize": "publish",
    "tabulate": "tabulate",
    "budget": "budget",
    "cocluster": "cocluster",
    "compare": "compare",
    "frontier": "compare",
    "policies": "compare",
    "serve": "serve",
    "relay": "cells",
    "cell": "cells",
    "ask": "query",
    "cells": "cells",
    "demo": "serve",
}
INTERRUPTED, BROKEN_PIPE = 130, 141


class LazyGroup(click.Group):
    """A group whose verbs are imported when they are first asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The verbs in the order a user meets them."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one verb."""
        if cmd_name not in VERBS:
            return None
        chapter = import_module(f"halfmask.cli.{VERBS[cmd_name]}")
        command: click.Command = getattr(chapter, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, and refuse an option that is given twice: only the last would count."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            _refuse_repeats(click.Context(command, ctx, name), rest)
        return name, command, rest


def _refuse_repeats(ctx: click.Context, args: list[str]) -> None:
    try:
        _, _, order = ctx.command.make_parser(ctx).parse_args(list(args))
    except click.UsageError:
        return  # what is wrong with them is told where they are read for good
    seen = set()
    for one in order:
        single = isinstance(one, click.Option) and not (one.multiple or one.is_flag or one.count)
        if single and one in seen:
            raise click.UsageError(f"{one.opts[-1]} is given twice: give it once.", ctx)
        seen.add(one)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="halfmask", message="halfmask %(version)s")
def cli() -> None:
    """Publish a table so that every person in it keeps the privacy they asked for.

    Words go to stderr and data to stdout; every verb takes --json. Exit codes: 0 done, 1 input,
    2 a promise is not kept, 3 no budget left, 4 a package is missing, 70 a defect of halfmask.
    """


def run(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line; the only place where errors become exit codes."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _invoke(given)
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        _leave()
    sys.exit(code)


def _invoke(given: list[str]) -> int:
    try:
        # Not cli.main: click would turn a broken pipe into exit code 1, which means bad input.
        with cli.make_context("halfmask", list(given), obj=list(given)) as context:
            result = cli.invoke(context)
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return InputError.exit_code
    except click.ClickException as error:
        return _fail(given, Failure("input.usage", _usage(error), InputError.exit_code))
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted; nothing was released.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defense: no value may leak
        return _fail(given, _explain(error))
    return result if isinstance(result, int) else 0


def _fail(given: list[str], found: Failure) -> int:
    if "--json" in given:
        click.echo(json.dumps(found.to_dict(), indent=2, default=str))
    apart = "\n" if "\n" in found.message else " "
    show.say(f"halfmask:{apart}{found.message}")
    return found.exit_code


def _usage(error: click.ClickException) -> str:
    message = error.format_message()
    context = getattr(error, "ctx", None)
    hint = f" See {context.command_path} --help." if context else ""
    message += "" if message.endswith((".", "?", "!")) else "."
    return mask_passwords(f"{message}{hint}")


def _explain(error: Exception) -> Failure:
    """What an exception means; of a defect more is shown to whoever asks for it."""
    found = failure(error)
    if isinstance(error, HalfmaskError) or found.code != InternalError.code:
        return found
    if os.environ.get("HALFMASK_DEBUG"):
        import traceback

        show.say("".join(traceback.format_exception(error)))
    hint = " HALFMASK_DEBUG=1 shows more, and may show values of the table."
    return replace(found, message=found.message + hint)


def _leave() -> NoReturn:
    """The reader is gone: nothing more is written, and nothing is torn down that could abort.

    What must happen at exit happens; threads of engines and what buffers still hold is left as it
    is, for the interpreter would write it to the closed pipe, or wait for locks, and fail.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nothing, stream.fileno())
    atexit._run_exitfuncs()  # noqa: SLF001 - temporary folders go
    os._exit(BROKEN_PIPE)
