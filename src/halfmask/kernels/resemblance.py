"""Which classes stay when each must resemble all that stay: the compiled loop of three models.

Classes that fail leave together, which changes the totals, and the others are compared again, until
none fails. Counts are integers; where floats would have to decide a comparison that lies too close
to its threshold, the kernel gives up and Python's integers decide.

Also here: how many rows each class must lose until no value is too frequent or too rare in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import integers, kernel, reals, zeros

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ClassHistogram(NamedTuple):
    """How often values stand in classes.

    Attributes:
        starts: per class, where its values begin; one more for the end.
        values: the values, with their ``counts``.
    """

    starts: NDArray[np.int64]
    values: NDArray[np.int32]
    counts: NDArray[np.int64]


class LikenessBounds(NamedTuple):
    """How like all that stay each class must be.

    Attributes:
        factor: a share q in the class may be at most factor p of the share p of all.
        downward: and at least p / factor.
        complete: and no value may be absent.
        capped: and at most p (1 - ln p).
        num: the factor is num / den where the products fit, else num is 0.
    """

    factor: float
    downward: bool
    complete: bool
    capped: bool
    num: int
    den: int


CLOSE = 2.0**-45  # floats decide what differs by more than this; their error is far below
STEPS = 8  # towards the bound below, from below: any of them is a bound
TINY = 1e-12
SLACK = 1e-9  # far above what rounding adds up to: a bound of lost rows is never too high
WORTH = 0.05  # by what share a turn must have raised the bound for another one


class Frequencies(NamedTuple):
    """How frequent a value may be in a class: at most ``factor`` times its share p of all rows.

    Attributes:
        factor: what the share may be multiplied by.
        capped: and at most p (1 - ln p).
    """

    factor: float
    capped: bool


@kernel
def stay_close(
    found: Any,
    maps: NDArray[np.int32],
    totals: NDArray[np.int64],
    kept: NDArray[np.bool_],
    ordered: bool,  # noqa: FBT001 - numba takes no keyword-only parameters
    num: int,
    den: int,
) -> None:
    """Take out of ``kept`` what is farther than num / den from all that is kept (t-closeness).

    ``maps`` gives the label of each value on each level, ``totals`` how often each occurs among the
    kept; of ordered values there is one level. A class without counted rows is 1 apart.
    """
    starts, values, counts = found.starts, found.values, found.counts
    levels, width = maps.shape[0], totals.shape[1]
    inside, leaving = zeros(width), integers(len(kept))
    gone = 1
    while gone:
        gone = size = known = 0
        for label in range(width):
            size += totals[0, label]
            known += 1 if totals[0, label] > 0 else 0
        for i in range(len(kept)):
            if not kept[i]:
                continue
            n = moved = 0
            for e in range(starts[i], starts[i + 1]):
                n += counts[e]
            for level in range(levels):
                for e in range(starts[i], starts[i + 1]):
                    inside[maps[level, values[e]]] += counts[e]
                if ordered:
                    here = everywhere = 0
                    for label in range(width):
                        if totals[0, label]:
                            here += inside[label]
                            everywhere += totals[0, label]
                            moved += abs(here * size - everywhere * n)
                else:
                    missing = size
                    for e in range(starts[i], starts[i + 1]):
                        label = maps[level, values[e]]
                        if inside[label]:
                            moved += abs(inside[label] * size - totals[level, label] * n)
                            missing -= totals[level, label]
                            inside[label] = 0
                    moved += missing * n
                for e in range(starts[i], starts[i + 1]):
                    inside[maps[level, values[e]]] = 0
            # Everything was multiplied by size * n, and compared to num / den crosswise: integers.
            full = size * n * (max(known - 1, 1) if ordered else 2 * levels)
            if n == 0:
                moved = full = 1
            if moved * den > full * num:
                leaving[gone] = i
                gone += 1
        for j in range(gone):
            i = leaving[j]
            kept[i] = False
            for level in range(levels):
                for e in range(starts[i], starts[i + 1]):
                    totals[level, maps[level, values[e]]] -= counts[e]


@kernel
def stay_likely(found: Any, totals: NDArray[np.int64], kept: NDArray[np.bool_], asked: Any) -> bool:
    """Take out of ``kept`` where a value is too frequent, or too rare, against all that is kept.

    ``asked`` is a likeness. False: a comparison was too close.
    """
    starts, values, counts = found.starts, found.values, found.counts
    factor, num, den, capped = asked.factor, asked.num, asked.den, asked.capped
    leaving = integers(len(kept))
    caps = reals(len(totals), 0.0)
    gone = 1
    while gone:
        gone = size = known = 0
        for v in range(len(totals)):
            size += totals[v]
            known += 1 if totals[v] > 0 else 0
        for v in range(len(totals)):
            if capped and totals[v]:
                share = totals[v] / size
                caps[v] = share * (1.0 - np.log(share))
        for i in range(len(kept)):
            if not kept[i]:
                continue
            n = 0
            for e in range(starts[i], starts[i + 1]):
                n += counts[e]
            fails = asked.complete and starts[i + 1] - starts[i] < known
            # shares crosswise: c / n against factor * C / size
            e = starts[i]
            while not fails and e < starts[i + 1]:
                here, everywhere = counts[e] * size, totals[values[e]] * n
                most = everywhere * factor
                if abs(here - most) > CLOSE * most:
                    fails = here > most
                elif num:
                    fails = here * den > everywhere * num
                else:
                    return False
                if asked.downward:
                    most = here * factor
                    if abs(everywhere - most) <= CLOSE * most:
                        return False
                    fails = fails or everywhere > most
                if capped:
                    most = caps[values[e]] * n
                    if abs(counts[e] - most) <= CLOSE * most:
                        return False
                    fails = fails or counts[e] > most
                e += 1
            if fails:
                leaving[gone] = i
                gone += 1
        for j in range(gone):
            i = leaving[j]
            kept[i] = False
            for e in range(starts[i], starts[i + 1]):
                totals[values[e]] -= counts[e]
    return True


@kernel
def surplus(
    found: Any,
    totals: NDArray[np.int64],
    least: NDArray[np.float64],
    remaining: int,
    asked: Any,
    turns: int,
) -> Any:
    """Per class, how many rows must go until each value keeps to its shares.

    ``asked`` are frequencies. A lower bound, if parts of the class are looked at each; see
    ``halfmask.models.likeness``. What must go of a value makes its share of what remains smaller,
    and so more must go: that is looked at in so many ``turns``, while they are worth it.
    """
    starts, values, counts = found.starts, found.values, found.counts
    needed = everything = all_lost = 0
    for v in range(len(least)):
        needed += 1 if least[v] > 0 else 0
        everything += totals[v]
    out, rows = zeros(len(starts) - 1), zeros(len(starts) - 1)
    for i in range(len(out)):
        held = 0
        for e in range(starts[i], starts[i + 1]):
            rows[i] += counts[e]
            held += 1 if least[values[e]] > 0 else 0
        out[i] = rows[i] if held < needed else 0
    gone, most = reals(len(totals), 0.0), reals(len(totals), 0.0)
    for _ in range(turns):
        for v in range(len(totals)):
            share = min((totals[v] - gone[v] * (1.0 - SLACK)) / remaining, 1.0)
            most[v] = share * asked.factor
            if asked.capped and share > 0:
                most[v] = min(most[v], share * (1.0 - np.log(share)))
            most[v] = min(most[v] * (1.0 + SLACK), 1.0)
            gone[v] = 0.0
        before = all_lost
        all_lost = 0
        for i in range(len(out)):
            first, end, n = starts[i], starts[i + 1], rows[i]
            lost = float(out[i])
            if needed:
                for e in range(first, end):
                    low = least[values[e]]
                    if low > 0:  # x rows of other values go: c / (n - x) >= low
                        lost = max(lost, n - counts[e] / low)
            # What all values are too many adds up; with so many gone it is more. Newton's steps
            # from below never pass the least number of rows that is enough: the sum is convex.
            for _ in range(STEPS):
                left, total, slope = n - lost, 0.0, 0.0
                for e in range(first, end):
                    excess = counts[e] - most[values[e]] * left
                    if excess > 0:
                        total += excess
                        slope += most[values[e]]
                if lost + TINY >= total:
                    break
                lost = min(lost + (total - lost) / (1 - slope), float(n)) if slope < 1 else float(n)
            out[i] = max(out[i], min(np.int64(np.ceil(lost - TINY * n)), n))
            all_lost += out[i]
            if out[i]:
                for e in range(first, end):
                    v = values[e]
                    gone[v] += max(counts[e] - most[v] * (n - out[i]), 0.0)
        if all_lost > everything - remaining or all_lost - before < WORTH * all_lost:
            break
    return out
