"""The masks by their names: ``hm.masks.TopCode`` and the others."""

from __future__ import annotations

from typing import Any

from halfmask.masking.anatomy import Anatomy, Bucketize, estimate_count
from halfmask.masking.cloaking import Cloak, geojson
from halfmask.masking.coding import BottomCode, Round, TopCode
from halfmask.masking.guarding import Guard
from halfmask.masking.mask import MaskStep, known_masks, read_step
from halfmask.masking.microaggregation import Microaggregate
from halfmask.masking.noise import DateShift, Noise
from halfmask.masking.pram import Pram
from halfmask.masking.pseudonyms import Pseudonym
from halfmask.masking.response import Randomize
from halfmask.masking.sampling import Massc, Sample
from halfmask.masking.suppression import LocalSuppression, Suppress
from halfmask.masking.swapping import RankSwap, RecordSwap, Shuffle
from halfmask.masking.synthetic import (
    CombinedEstimate,
    Hybrid,
    PartlySynthetic,
    combine_estimates,
    draw_tables,
)

__all__ = [
    "Anatomy",
    "BottomCode",
    "Bucketize",
    "Cloak",
    "CombinedEstimate",
    "DateShift",
    "Guard",
    "Hybrid",
    "LocalSuppression",
    "MaskStep",
    "Massc",
    "Microaggregate",
    "Noise",
    "PartlySynthetic",
    "Pram",
    "Pseudonym",
    "Randomize",
    "RankSwap",
    "RecordSwap",
    "Round",
    "Sample",
    "Shuffle",
    "Suppress",
    "TopCode",
    "combine_estimates",
    "draw_tables",
    "estimate_count",
    "geojson",
    "read_step",
]


def __getattr__(name: str) -> Any:
    for mask in known_masks():  # those of other packages
        if mask.__name__ == name:
            return mask
    raise AttributeError(f"halfmask.masks has no {name!r}; it has {', '.join(__all__)}.")
