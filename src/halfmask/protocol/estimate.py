"""What a query takes on given devices: time per phase, and how long one cell must stay.

Definition: a phase lasts as long as the slowest task of each of its steps, one step after the
other; where there are more tasks than cells at hand, a step takes several rounds. A task costs
what it moves over the link, what it encrypts and merges, and what it swaps to flash.
Source: Michel 2019, section 4.6 (Figures 4.12 to 4.15).

The estimate as a page: four plots drawn as SVG, readable without any script.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.errors import InputError, ParameterError
from halfmask.protocol.common_schema import MERGES, Merge
from halfmask.release.files import whole_file
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Sequence


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
class CostPoint(Result):
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


def curves(
    device: Device,
    *,
    cells: int = 10**6,
    present: float = 0.01,
    levels: int = 10,
    groups: tuple[int, ...] | None = None,
) -> list[CostPoint]:
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
) -> CostPoint:
    """What one query takes."""
    workers = max(1, int(cells * present))
    partition = 2 * device.frame
    width = max(1, ceil(cells / partition))
    held = min(partition, groups)
    first = _transfer_seconds(device, partition + held) + partition * device.merge
    total = ceil(width / workers) * first
    longest, tasks, fits, swaps = first, width, True, False
    while width > 1:
        pairs = width // 2
        merged = min(2 * held, groups)
        if merge == "network":
            one, seconds, count = _by_network(device, pairs, workers, held, merged)
            total += seconds
        else:
            one = _transfer_seconds(device, 2 * held + merged) + 2 * held * device.merge
            count = pairs
            if 2 * held * device.tuple > device.ram:
                swaps = True
                fits = fits and merge == "swap"
                one += _flash_seconds(device, 2 * held)
            total += ceil(pairs / workers) * one
        longest = max(longest, one)
        tasks += count
        held, width = merged, ceil(width / 2)
    privacy = device.read_policy + levels * device.match
    collection = device.own + device.tuple / device.link + privacy
    filtering = _transfer_seconds(device, groups) + levels * groups * device.merge
    if groups * device.tuple > device.ram:
        filtering += _flash_seconds(device, groups)
    return CostPoint(
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


def _by_network(
    device: Device, pairs: int, workers: int, held: int, merged: int
) -> tuple[float, float, int]:
    """Seconds of one task, of a whole level of ``pairs`` that merge by network, and its tasks."""
    frames = ceil(held / device.frame)
    one = _transfer_seconds(device, 4 * device.frame) + 2 * device.frame * device.merge
    seconds = sum(ceil(pairs * (frames - j) / workers) * one for j in range(min(frames, 10**6)))
    count = pairs * frames * (frames + 1) // 2
    if 2 * frames > ceil(merged / device.frame):
        # Husks are dropped by Batcher's network over all frames.
        depth = (2 * frames - 1).bit_length()
        steps = depth * (depth + 1) // 2
        seconds += steps * ceil(pairs * frames / workers) * one
        count += steps * pairs * frames
    return one, seconds, count


def _transfer_seconds(device: Device, tuples: int) -> float:
    """Seconds to move tuples over the link, and through encryption."""
    return tuples * device.tuple * (1 / device.link + 1 / device.crypto)


def _flash_seconds(device: Device, tuples: int) -> float:
    """Seconds to write tuples to flash and read them again."""
    return tuples * device.tuple * (1 / device.flash_write + 1 / device.flash_read)


WIDTH, HEIGHT, LEFT, BOTTOM = 560, 320, 64, 44
COLORS = {"tree": "#6b7280", "swap": "#b45309", "network": "#2f7f86"}
NAMES = {"tree": "tree, all in memory", "swap": "swap-merge", "network": "network-merge"}
Line = tuple[str, str, list[tuple[float, float]]]


def write_page(points: Sequence[CostPoint], device: Device, path: str | Path) -> None:
    """Write the plots as one HTML file."""
    if Path(path).suffix.lower() != ".html":
        raise InputError(f"The estimate {Path(path).name!r} is a page: name it .html.")
    with whole_file(path) as temporary:
        temporary.write_text(page(points, device), encoding="utf-8")


def page(points: Sequence[CostPoint], device: Device) -> str:
    """The page."""
    cells = points[0].cells if points else 0
    tree = [p for p in points if p.merge == "tree"]
    plots: list[tuple[str, list[Line], str]] = [
        (
            "Aggregation: seconds by number of groups",
            _by_merge(points, "aggregation_s"),
            "The line of the tree ends where a cell's memory does.",
        ),
        (
            "Seconds one cell must stay, by number of groups",
            _by_merge(points, "availability_s"),
            "Network-merge needs a cell for two frames only, however many groups there are.",
        ),
        (
            "Filtering: seconds by number of groups",
            [("filtering", "#2f7f86", [(p.groups, p.filtering_s) for p in tree])],
            "The step is where flash becomes necessary.",
        ),
        (
            "Collection: seconds of a contribution",
            [
                ("with a policy", "#2f7f86", [(p.groups, p.collection_s) for p in tree]),
                ("without", "#6b7280", [(p.groups, p.collection_s - p.privacy_s) for p in tree]),
            ],
            "A contribution takes the same time whatever the others say.",
        ),
    ]
    figures = "".join(
        f"<figure><figcaption><b>{escape(title)}</b><br>{escape(words)}</figcaption>"
        f"{_plot(lines)}</figure>"
        for title, lines, words in plots
    )
    facts = ", ".join(f"{escape(n)} {v:g}" for n, v in asdict(device).items())
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>What a query takes</title>"
        "<style>body{font:16px system-ui;margin:2rem;max-width:75rem}figure{display:inline-block;"
        "margin:1rem;vertical-align:top}svg text{font:12px system-ui}</style>"
        f"<h1>What a query takes with {cells:,} cells</h1>{figures}<p>Device: {facts}.</p></html>\n"
    )


def _by_merge(points: Sequence[CostPoint], name: str) -> list[Line]:
    return [
        (
            NAMES[merge],
            color,
            [
                (p.groups, getattr(p, name))
                for p in points
                if p.merge == merge and getattr(p, name) is not None
            ],
        )
        for merge, color in COLORS.items()
    ]


def _plot(lines: Sequence[Line]) -> str:
    every = [point for _, _, line in lines for point in line if point[1] > 0]
    if not every:
        return "<p>Nothing fits.</p>"
    x0, x1 = _decades([x for x, _ in every])
    y0, y1 = _decades([y for _, y in every])

    def place(x: float, y: float) -> tuple[float, float]:
        right = (log10(x) - x0) / (x1 - x0) * (WIDTH - LEFT - 150)
        up = (log10(y) - y0) / (y1 - y0) * (HEIGHT - BOTTOM - 16)
        return LEFT + right, HEIGHT - BOTTOM - up

    parts = []
    for decade in range(x0, x1 + 1):
        x, _ = place(10.0**decade, 10.0**y0)
        parts.append(
            f"<line x1='{x:.1f}' x2='{x:.1f}' y1='16' y2='{HEIGHT - BOTTOM}' stroke='#ddd'/>"
            f"<text x='{x:.1f}' y='{HEIGHT - BOTTOM + 18}' text-anchor='middle'>"
            f"{_short(decade)}</text>"
        )
    for decade in range(y0, y1 + 1):
        _, y = place(10.0**x0, 10.0**decade)
        parts.append(
            f"<line x1='{LEFT}' x2='{WIDTH - 150}' y1='{y:.1f}' y2='{y:.1f}' stroke='#ddd'/>"
            f"<text x='{LEFT - 6}' y='{y + 4:.1f}' text-anchor='end'>{_short(decade)}</text>"
        )
    last = max(x for x, _ in every)
    for at, (name, color, line) in enumerate(lines):
        places = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in line if y > 0)
        # The first line is wide, so that it is seen under another one.
        width = 6 if at == 0 and len(lines) > 2 else 2
        parts.append(
            f"<polyline points='{places}' fill='none' stroke='{color}' stroke-width='{width}'/>"
            f"<text x='{WIDTH - 144}' y='{30 + 18 * at}' fill='{color}'>{escape(name)}</text>"
        )
        if line and line[-1][0] < last:
            end, _ = place(*line[-1])
            parts.append(
                f"<line x1='{end:.1f}' x2='{end:.1f}' y1='16' y2='{HEIGHT - BOTTOM}' "
                f"stroke='{color}' stroke-dasharray='4 4'/>"
            )
    parts.append(
        f"<text x='{(LEFT + WIDTH - 150) / 2:.0f}' y='{HEIGHT - BOTTOM + 34}' "
        "text-anchor='middle'>groups</text>"
    )
    return f"<svg width='{WIDTH}' height='{HEIGHT}' role='img'>{''.join(parts)}</svg>"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _short(decade: int) -> str:
    return f"{10.0**decade:g}" if -4 < decade < 5 else f"1e{decade}"
