"""Who changes places with whom: within a window of ranks, or with a household of another area."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.kernels.compilation.compiler import constants, count_up, kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@kernel
def rank_partners(size: int, window: int, draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """Per rank, the rank that it changes places with, at most ``window`` away; pairs only.

    From the lowest rank up, each that is still alone takes one of those above it in the window that
    are alone too; one is left over where none is.
    """
    partner, free = count_up(size), constants(size, 1)
    for i in range(size):
        if not free[i]:
            continue
        free[i] = 0
        last = min(size - 1, i + window)
        count = 0
        for j in range(i + 1, last + 1):
            count += free[j]
        if count == 0:
            continue
        wanted = int(draws[i] * count)
        for j in range(i + 1, last + 1):
            if free[j]:
                if wanted == 0:
                    partner[i], partner[j] = j, i
                    free[j] = 0
                    break
                wanted -= 1
    return partner


@kernel
def rank_partners_sampled(size: int, window: int, draws: NDArray[np.float64]) -> NDArray[np.int64]:
    """As ``rank_partners`` for wide windows: a few draws find somebody who is alone, or nobody."""
    tries = draws.shape[1]
    partner, free = count_up(size), constants(size, 1)
    for i in range(size):
        if not free[i]:
            continue
        free[i] = 0
        last = min(size - 1, i + window)
        found = -1
        for t in range(tries):
            j = i + 1 + int(draws[i, t] * (last - i))
            if j <= last and free[j]:
                found = j
                break
        if found < 0:  # few are left: the nearest that is
            for j in range(i + 1, last + 1):
                if free[j]:
                    found = j
                    break
        if found >= 0:
            partner[i], partner[found] = found, i
            free[found] = 0
    return partner


@kernel
def area_partners(
    starts: NDArray[np.int64],
    members: NDArray[np.int64],
    wanted: NDArray[np.int8],
    areas: NDArray[np.int64],
    level: NDArray[np.int8],
) -> NDArray[np.int64]:
    """Per household the one that it changes places with; itself where it stays.

    Args:
        starts: where the members of each group of alike households begin; one more at the end.
        members: households, group by group, in random order.
        wanted: per household, 2 where it must move, 1 where it shall, 0 where it may.
        areas: (levels, households) the area at each level, coarse to fine.
        level: per household, the level at which its new area must differ.
    """
    households = len(wanted)
    partner, free = count_up(households), constants(households, 1)
    for g in range(len(starts) - 1):
        low, high = starts[g], starts[g + 1]
        for must in range(2, 0, -1):
            # Others who want to move come first as partners, then those who may.
            for p in range(low, high):
                h = members[p]
                if not free[h] or wanted[h] != must:
                    continue
                found, looked = -1, 0
                best = -1
                q = p + 1 if p + 1 < high else low
                while q != p and looked < 200:
                    o = members[q]
                    if free[o]:
                        looked += 1
                        deep = max(level[h], 0)
                        if wanted[o] > 0 and level[o] < deep:
                            deep = level[o]
                        if areas[deep, o] != areas[deep, h]:
                            if wanted[o] > 0:
                                found = o
                                break
                            if best < 0:
                                best = o
                                looked += 20
                    q = q + 1 if q + 1 < high else low
                if found < 0:
                    found = best
                if found >= 0:
                    partner[h], partner[found] = found, h
                    free[h] = 0
                    free[found] = 0
    return partner
