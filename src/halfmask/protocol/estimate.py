"""What a query takes on given devices: time per phase, and how long one cell must stay.

Definition: a phase lasts as long as the slowest task of each of its steps, one step after the
other; where there are more tasks than cells at hand, a step takes several rounds. A task costs
what it moves over the link, what it encrypts and merges, and what it swaps to flash.
Source: Michel 2019, section 4.6 (Figures 4.12 to 4.15).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from halfmask.errors import ParameterError
from halfmask.protocol.terms import MERGES, Merge


@dataclass(frozen=True, slots=True)
class Device:
    """A cell's hardware; the defaults are the thesis' board and our estimates where it is silent.

    Attributes:
        ram: bytes of memory.
        link: bytes a second.
        flash_read: bytes a second.
        flash_write: bytes a second.
        crypto: bytes encrypted or decrypted a second.
        merge: seconds to compare and combine two groups.
        tuple: bytes of a group.
        match: seconds to match a policy with one level.
        read_policy: seconds to read the policy from flash.
        own: seconds for a contribution without any policy, the link aside.
    """

    ram: int = 196 << 10
    link: float = 7.9e6 / 8
    flash_read: float = 1.6e6
    flash_write: float = 0.6e6
    crypto: float = 4e6
    merge: float = 4e-6
    tuple: int = 200
    match: float = 1.1e-5
    read_policy: float = 2.9e-4
    own: float = 4e-3

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not value > 0:
                raise ParameterError(name, value, "more than 0")
        if self.frame < 2:
            raise ParameterError("ram", self.ram, f"at least {8 * self.tuple}")

    @property
    def frame(self) -> int:
        """Groups in a frame: half the memory, less a buffer of an eighth for the output."""
        return int((self.ram / 2 - self.ram / 8) / self.tuple)


@dataclass(frozen=True, slots=True)
class Point:
    """What a query with so many groups takes.

    Attributes:
        aggregation_s: seconds; None where it cannot be done.
        availability_s: the longest that one cell must stay.
        fits: whether the devices can do it at all.
        swaps: whether flash is needed.
    """

    merge: Merge
    cells: int
    groups: int
    collection_s: float
    privacy_s: float
    aggregation_s: float | None
    availability_s: float | None
    filtering_s: float
    fits: bool
    swaps: bool
    tasks: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


def curves(
    device: Device,
    *,
    cells: int = 10**6,
    present: float = 0.01,
    levels: int = 10,
    groups: tuple[int, ...] | None = None,
) -> list[Point]:
    """Estimates for every way to merge, from ten groups up to as many as there are cells."""
    if cells < 1:
        raise ParameterError("cells", cells, "at least 1")
    if not 0 < present <= 1:
        raise ParameterError("present", present, "a share above 0, at most 1")
    if groups is None:
        groups = tuple(
            sorted({round(10 ** (e / 4)) for e in range(4, 41) if 10 ** (e / 4) <= cells})
        )
    return [
        estimate(device, m, cells, g, present=present, levels=levels)
        for m in MERGES
        for g in groups
    ]


def estimate(
    device: Device,
    merge: Merge,
    cells: int,
    groups: int,
    *,
    present: float = 0.01,
    levels: int = 10,
) -> Point:
    """What one query takes."""
    workers = max(1, int(cells * present))
    partition = 2 * device.frame
    width = max(1, ceil(cells / partition))
    held = min(partition, groups)
    first = _moved(device, partition + held) + partition * device.merge
    total = ceil(width / workers) * first
    longest, tasks, fits, swaps = first, width, True, False
    while width > 1:
        pairs = width // 2
        merged = min(2 * held, groups)
        if merge == "network":
            frames = ceil(held / device.frame)
            one = _moved(device, 4 * device.frame) + 2 * device.frame * device.merge
            total += sum(
                ceil(pairs * (frames - j) / workers) * one for j in range(min(frames, 10**6))
            )
            count = pairs * frames * (frames + 1) // 2
            if 2 * frames > ceil(merged / device.frame):
                # Husks are dropped by Batcher's network over all frames.
                depth = (2 * frames - 1).bit_length()
                steps = depth * (depth + 1) // 2
                total += steps * ceil(pairs * frames / workers) * one
                count += steps * pairs * frames
        else:
            one = _moved(device, 2 * held + merged) + 2 * held * device.merge
            count = pairs
            if 2 * held * device.tuple > device.ram:
                swaps = True
                fits = fits and merge == "swap"
                one += _swapped(device, 2 * held)
            total += ceil(pairs / workers) * one
        longest = max(longest, one)
        tasks += count
        held, width = merged, ceil(width / 2)
    privacy = device.read_policy + levels * device.match
    collection = device.own + device.tuple / device.link + privacy
    filtering = _moved(device, groups) + levels * groups * device.merge
    if groups * device.tuple > device.ram:
        filtering += _swapped(device, groups)
    return Point(
        merge,
        cells,
        groups,
        collection,
        privacy,
        total if fits else None,
        longest if fits else None,
        filtering,
        fits,
        swaps and merge == "swap",
        tasks,
    )


def _moved(device: Device, tuples: int) -> float:
    """Seconds to move tuples over the link, and through encryption."""
    return tuples * device.tuple * (1 / device.link + 1 / device.crypto)


def _swapped(device: Device, tuples: int) -> float:
    """Seconds to write tuples to flash and read them again."""
    return tuples * device.tuple * (1 / device.flash_write + 1 / device.flash_read)
