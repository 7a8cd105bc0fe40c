"""The verbs that a frame offers itself, for pandas and for Polars alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfmask.assessment.assess import Assessment
    from halfmask.models import Model, Verdict
    from halfmask.release import Release
    from halfmask.table.table import Table


class FrameVerbs:
    """``frame.halfmask``: what ``halfmask`` does with the frame as a table.

    Every verb takes ``schema=`` as ``halfmask.read`` does, and what the function of its name takes.
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def read(self, schema: Any = None) -> Table:
        """The frame as a table bound to its schema."""
        from halfmask.engines.read import read

        return read(self._frame, schema)

    def anonymize(self, *models: Model, schema: Any = None, **settings: Any) -> Release:
        """``halfmask.anonymize`` of the frame."""
        from halfmask.anonymize.run import anonymize

        return anonymize(self.read(schema), *models, **settings)

    def assess(self, *, schema: Any = None, **settings: Any) -> Assessment:
        """``halfmask.assess`` of the frame."""
        from halfmask.assessment.assess import assess

        return assess(self.read(schema), **settings)

    def check(self, *models: Model, schema: Any = None, **settings: Any) -> tuple[Verdict, ...]:
        """``halfmask.check`` of the frame."""
        from halfmask.models.check import check

        return check(self.read(schema), *models, **settings)
