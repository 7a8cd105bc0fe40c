"""Every error that halfmask raises, on one screen.

HalfmaskError
├── InputError (ValueError)        the caller's data, schema, parameters or query
│   ├── SchemaError  HierarchyError  ParameterError  NotObservedError
│   └── QueryError                 carries line, column, highlight
│       └── UnsupportedQueryError
├── PrivacyError                   a promise cannot be kept; nothing was released
│   ├── UnsatisfiableError         carries the verdicts and the closest candidate's levels
│   │   └── InfeasibleDemandsError carries the rows whose own demands nothing can meet
│   ├── BudgetExceededError        carries requested, remaining, missing
│   └── LedgerError                an earlier release forbids this one
├── ProtocolError                  cells, relay and asker: the exchange failed; nothing was released
│   ├── AuthenticationError        a key, certificate or signature does not fit
│   ├── TamperedMessageError       somebody changed, moved, dropped or repeated a message
│   ├── MessageError               a message is malformed or too large
│   ├── RoomError                  more groups, or a larger answer, than the query has room for
│   └── PartyUnavailableError      somebody does not answer, or has nothing to answer with
├── ServiceError                   the page in the browser: it cannot listen, or refused a request
│   ├── RefusedError               the token, the Host or the Origin of a request does not fit
│   ├── MissingError               nothing is there (any more) under this address
│   ├── BusyError                  another step is still running
│   ├── CancelledError             somebody cancelled the step
│   └── TooLargeError              more bytes than the service takes
├── ElsewhereError                 a step failed in its own process; carries what that one told
├── EngineError
│   ├── EngineUnavailableError     carries the install command
│   └── UnsupportedByEngineError
└── InternalError (AssertionError) our bug; says where to report it

Branches answer whose move it is now. A message says what is wrong, where (column, parameter,
count) and what to do; it never holds a cell value.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

# user:secret@ behind a scheme (a path has one slash of it left), or where a path ends in it.
_ADDRESS = re.compile(
    r"([a-z][a-z0-9+.-]*:/{1,2}[^\s:/@]*):\S*@|([^\s:/@'\"]+):(?!/)[^\s'\"]+@", re.I
)
_BITS = 128  # of a whole number that is written out
_SETTING = re.compile(r"\b((?:ssl)?password|passwd|pwd)=[^\s&'\"]+", re.I)


def mask_passwords(text: str) -> str:
    """The text with ``***`` in place of the passwords of the addresses in it.

    Example:
        >>> mask_passwords("postgres://ann:secret@host/db?sslpassword=secret")
        'postgres://ann:***@host/db?sslpassword=***'
    """
    text = _ADDRESS.sub(lambda found: f"{found[1] or found[2]}:***@", text)
    return _SETTING.sub(r"\1=***", text)


class HalfmaskError(Exception):
    """Base of all errors; ``code`` is stable and ``exit_code`` is what the command line returns."""

    code: ClassVar[str] = "halfmask"
    exit_code: ClassVar[int] = 70

    def __init__(self, *words: object) -> None:
        super().__init__(
            *(mask_passwords(word) if isinstance(word, str) else word for word in words)
        )


class InputError(HalfmaskError, ValueError):
    """Something the caller gave cannot be used as it is."""

    code = "input"
    exit_code = 1


class SchemaError(InputError):
    """The schema and the table do not fit; ``faults`` lists everything that is wrong."""

    code = "input.schema"

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__(_join(faults))


class HierarchyError(InputError):
    """Hierarchies do not cover the table or do not nest; ``faults`` lists all of them."""

    code = "input.hierarchy"

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__(_join(faults))


class ParameterError(InputError):
    """A parameter is out of range."""

    code = "input.parameter"

    def __init__(self, name: str, value: object, allowed: str) -> None:
        self.name, self.value, self.allowed = name, value, allowed
        found = "is missing" if value is None else f"= {_short(value)} is not possible"
        super().__init__(f"{name} {found}: give {allowed}.")


def _short(value: object) -> str:
    """What was given; 1e308 may have become a whole number of 309 digits."""
    if isinstance(value, int) and value.bit_length() > _BITS:
        return f"a number of about {round(value.bit_length() * 0.30103)} digits"
    return repr(value)


class NotObservedError(InputError, KeyError):
    """No row of the table holds the value that was asked for."""

    code = "input.not_observed"

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = tuple(columns)
        super().__init__(
            f"No row holds this value of {', '.join(columns)}: ask for an observed one."
        )

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class QueryError(InputError):
    """The query cannot be understood or answered; points at the place in its text.

    Attributes:
        line: the line of the fault, counted from 1; None where it has no place.
        column: the column of the fault, counted from 1.
        highlight: the faulty line of the query with a caret under the place.
    """

    code = "input.query"

    def __init__(
        self, message: str, *, text: str = "", start: int | None = None, length: int = 1
    ) -> None:
        self.line: int | None = None
        self.column: int | None = None
        self.highlight = ""
        self.reason = message
        if start is not None:
            start = min(max(start, 0), len(text))
            before = text[:start]
            self.line = before.count("\n") + 1
            self.column = start - (before.rfind("\n") + 1) + 1
            row = text.split("\n")[self.line - 1]
            carets = "^" * max(1, min(length, len(row) - self.column + 1))
            pad = "".join("\t" if c == "\t" else " " for c in row[: self.column - 1])
            self.highlight = f"{row}\n{pad}{carets}"
            message = f"line {self.line}, column {self.column}: {message}\n{self.highlight}"
        super().__init__(message)


class UnsupportedQueryError(QueryError):
    """The query is understood, but answering it would break a promise or is not built."""

    code = "input.query.unsupported"


class PrivacyError(HalfmaskError):
    """A promise cannot be kept; nothing was released."""

    code = "privacy"
    exit_code = 2


class UnsatisfiableError(PrivacyError):
    """No candidate satisfies the models; carries the closest one and what to relax.

    Attributes:
        verdicts: what the closest candidate achieved, one verdict per model.
        levels: the closest candidate's generalization level per column.
        suppressed: how many rows it would have to leave out.
        advice: what to relax, in words.
    """

    code = "privacy.unsatisfiable"

    def __init__(
        self,
        message: str,
        *,
        verdicts: Sequence[Any] = (),
        levels: Mapping[str, int] | None = None,
        suppressed: int = 0,
        advice: Sequence[str] = (),
    ) -> None:
        self.verdicts = tuple(verdicts)
        self.levels = dict(levels or {})
        self.suppressed = suppressed
        self.advice = tuple(advice)
        super().__init__(_join((message, *advice)))


class InfeasibleDemandsError(UnsatisfiableError):
    """People demand more than the table can give, whoever stands in their class.

    Attributes:
        columns: the policy columns.
        rows: the numbers of the rows (from 0) that cannot be served; all others together are the
            largest set that can. None are said of rows that stay elsewhere.
        feasible: how many rows can be served.
    """

    code = "privacy.infeasible"

    def __init__(
        self, columns: Sequence[str], rows: Sequence[int] | int, total: int, remedy: str = ""
    ) -> None:
        """``remedy`` is what the verb has for them; in it {share} stands for theirs of all rows.

        ``rows`` that have no numbers are told by how many they are.
        """
        self.columns = tuple(columns)
        self.rows = () if isinstance(rows, int) else tuple(int(row) for row in rows)
        count = rows if isinstance(rows, int) else len(self.rows)
        self.feasible = total - count
        named = ", ".join(str(row) for row in self.rows[:5])
        more = f" and {count - 5} more" if count > 5 else ""
        places = f": rows {named}{more}, counted from 0" if self.rows else ""
        stated = " and ".join(f"'{column}'" for column in self.columns)
        where = f" (policy column {stated})" if stated else ""
        share = -(-count * 10_000 // max(total, 1)) / 10_000
        if self.feasible:
            served = f"The other {self.feasible} are the largest set that can be served: "
            served += remedy.format(share=share) + (", or " if remedy else "")
        else:
            served = "Nobody can be served: ask for less, or "
        super().__init__(
            f"{count} of {total} people demand more{where} than the table can give{places}.",
            suppressed=count,
            advice=(
                f"{served}add rows; only the controller may set demands aside: demands='ignore', "
                "or --ignore-demands.",
            ),
        )


class BudgetExceededError(PrivacyError):
    """More of a privacy budget was asked for than is left; nothing was computed."""

    code = "privacy.budget"
    exit_code = 3

    def __init__(
        self,
        requested: object,
        remaining: object,
        missing: object,
        *,
        file: str = "",
        level: object = None,
    ) -> None:
        self.requested, self.remaining, self.missing = requested, remaining, missing
        whose = "" if level is None else f" of the people who allow {level}"
        advice = "let the controller grant more"
        if level is not None:
            advice = "leave these people out"
        elif file:
            advice += f": `halfmask budget raise {file} --to EPSILON --reason ...`"
        super().__init__(
            f"The privacy budget{whose} does not suffice: requested {requested}, remaining "
            f"{remaining}, missing {missing}. Ask for less, or {advice}."
        )


class LedgerError(PrivacyError):
    """Together with an earlier release (``entry``) this one would isolate people."""

    code = "privacy.ledger"

    def __init__(self, message: str, *, entry: str = "") -> None:
        self.entry = entry
        super().__init__(message)


class ProtocolError(HalfmaskError):
    """The exchange between cells, relay and asker failed; nothing was released."""

    code = "protocol"
    exit_code = 4


class AuthenticationError(ProtocolError):
    """A key, a certificate or a signature does not fit."""

    code = "protocol.authentication"


class TamperedMessageError(ProtocolError):
    """A message was changed, moved, dropped or repeated on its way."""

    code = "protocol.tampered"


class MessageError(ProtocolError):
    """A message is malformed or too large."""

    code = "protocol.message"


class RoomError(ProtocolError):
    """There are more groups, or a larger answer, than the query has room for."""

    code = "protocol.room"


class PartyUnavailableError(ProtocolError):
    """Another party does not answer, or has nothing to answer with."""

    code = "protocol.unavailable"


class ServiceError(HalfmaskError):
    """The page in the browser: the service cannot listen, or refused a request."""

    code = "service"
    exit_code = 4


class RefusedError(ServiceError):
    """The token, the Host or the Origin of a request does not fit."""

    code = "service.refused"


class MissingError(ServiceError):
    """Nothing is there, or not any more."""

    code = "service.missing"


class BusyError(ServiceError):
    """Another step is still running; nothing was changed."""

    code = "service.busy"


class CancelledError(ServiceError):
    """Somebody cancelled the step; it gave nothing."""

    code = "service.cancelled"

    def __init__(self) -> None:
        super().__init__("The step was cancelled: it gave nothing, and can be started again.")


class TooLargeError(ServiceError):
    """More bytes were sent than the service takes."""

    code = "service.too_large"


class ElsewhereError(HalfmaskError):
    """A step failed in a process of its own; ``told`` is the failure as that process told it."""

    def __init__(self, told: Any) -> None:
        self.told = told
        super().__init__(told.message)


class EngineError(HalfmaskError):
    """An engine or an optional package failed or is missing."""

    code = "engine"
    exit_code = 4


class EngineUnavailableError(EngineError):
    """A package that this step needs is not installed; ``install`` is the command that helps."""

    code = "engine.unavailable"

    def __init__(self, what: str, install: str) -> None:
        self.install = install
        super().__init__(f"{what} is not installed. Run: {install}")


class UnsupportedByEngineError(EngineError):
    """This engine cannot do what the query asks; another one may."""

    code = "engine.unsupported"

    def __init__(self, engine: str, what: str) -> None:
        self.engine, self.what = engine, what
        super().__init__(f"The engine {engine} cannot do this: {what}.")


class InternalError(HalfmaskError, AssertionError):
    """A defect of halfmask itself."""

    code = "internal"
    exit_code = 70

    def __init__(self, message: str) -> None:
        super().__init__(f"{message} This is a defect of halfmask; please report it.")


def usable_path(name: str | PathLike[str]) -> Path:
    """The path of that name, whether or not there is a file.

    Raises:
        InputError: no file can be called so: the name holds a zero byte, or is no text of the disk.

    Example:
        >>> usable_path("people.ledger").name
        'people.ledger'
    """
    try:
        held = b"\0" in os.fsencode(name)
    except UnicodeEncodeError:
        held = True
    if held:
        raise InputError(
            "No file can have this name, which holds a zero byte or half a letter: give the path "
            "of a file."
        )
    return Path(name)


def _join(faults: Sequence[str]) -> str:
    return faults[0] if len(faults) == 1 else "\n".join(f"- {fault}" for fault in faults)
