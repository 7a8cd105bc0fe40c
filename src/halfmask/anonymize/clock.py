"""What is left of a time limit, on a machine that others may use too.

Searches stop at any time; what comes after them (labels, and the door, which counts again) does
not. What that will take is kept back: in seconds of the processor, times how much slower the clock
has run than the processor so far.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

_SHARE = 0.08  # of a limit, for labels and the door
_CELL = 2e-6  # or so many seconds of the processor for a row's cell, if that is more
_MOST = 0.5  # of a limit, whatever the table is like
_KNOWN = 0.05  # seconds of the processor from which a pace is believed


@dataclass(frozen=True, slots=True)
class Clock:
    """A time limit that counts from ``began``.

    Attributes:
        limit: seconds for everything.
        cells: rows times quasi-identifiers, which the door labels and counts again.
        began: when it started, as ``time.monotonic`` counts.
        worked: seconds of the processor that the process had used then.
    """

    limit: float
    cells: int
    began: float
    worked: float

    @property
    def pace(self) -> float:
        """Seconds by the clock for one of the processor; 1 where that is not known yet."""
        worked = time.process_time() - self.worked
        if worked < _KNOWN:
            return 1.0
        return max((time.monotonic() - self.began) / worked, 1.0)

    @property
    def left(self) -> float:
        """The seconds that searches still have; a little where there are none."""
        kept = max(_SHARE * self.limit, _CELL * self.cells) * self.pace
        kept = min(kept, _MOST * self.limit)
        return max(self.limit - kept - (time.monotonic() - self.began), 0.01)
