"""``import halfmask.polars`` gives every Polars frame ``frame.halfmask.anonymize(...)``."""

from __future__ import annotations

from polars.api import register_dataframe_namespace

from halfmask.accessor import FrameVerbs

register_dataframe_namespace("halfmask")(FrameVerbs)
