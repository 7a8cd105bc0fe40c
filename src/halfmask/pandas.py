"""``import halfmask.pandas`` gives every pandas frame ``frame.halfmask.anonymize(...)``."""

from __future__ import annotations

from pandas.api.extensions import register_dataframe_accessor

from halfmask.accessor import FrameVerbs

register_dataframe_accessor("halfmask")(FrameVerbs)
