"""What an exception means to whoever asked: a code, a sentence and facts, never a cell value.

The command line and the service show the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from halfmask.errors import (
    ElsewhereError,
    EngineError,
    HalfmaskError,
    InputError,
    InternalError,
    mask_passwords,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_FACTS = ("faults", "verdicts", "levels", "suppressed", "advice", "install")
_BUDGETS = ("requested", "remaining", "missing")


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in plain values; ``details`` holds what the error carries."""

    code: str
    message: str
    exit_code: int
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The one shape of an error, everywhere."""
        document: dict[str, Any] = {"ok": False, "code": self.code, "message": self.message}
        return {**document, "details": dict(self.details)} if self.details else document


def failure(error: BaseException) -> Failure:
    """What ``error`` means; of an exception that is not ours only its kind and place are told."""
    if isinstance(error, ElsewhereError):
        told: Failure = error.told
        return told
    if isinstance(error, HalfmaskError):
        return Failure(error.code, str(error), error.exit_code, _details(error))
    if isinstance(error, OSError):
        where = f": '{error.filename}'" if error.filename else ""
        return Failure(
            "input.file", mask_passwords(f"{error.strerror}{where}."), InputError.exit_code
        )
    if isinstance(error, MemoryError):
        message = "There is not enough memory for this table: use fewer columns or rows."
        return Failure("engine.memory", message, EngineError.exit_code)
    what = f"{type(error).__name__}{_place(error)}. This is a defect of halfmask; please report it."
    return Failure(InternalError.code, what, InternalError.exit_code)


def _details(error: HalfmaskError) -> dict[str, Any]:
    """The facts an error carries, as plain values."""
    facts = {name: getattr(error, name) for name in _FACTS if getattr(error, name, None)}
    if "faults" in facts:
        facts["faults"] = [mask_passwords(fault) for fault in facts["faults"]]
    if "verdicts" in facts:
        facts["verdicts"] = [verdict.to_dict() for verdict in facts["verdicts"]]
    budgets = {name: getattr(error, name).to_dict() for name in _BUDGETS if hasattr(error, name)}
    return facts | budgets


def _place(error: BaseException) -> str:
    """Where it happened; what happened may quote a cell."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return ""
    return f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
