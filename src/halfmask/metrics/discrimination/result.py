"""What is told of a discrimination rate: the figure, its class, and the same of each value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import NotObservedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.metrics.discrimination.grouping import Kind, Measured
    from halfmask.metrics.discrimination.inflation import Inflation


@dataclass(frozen=True, slots=True, repr=False)
class ValueRate:
    """One value (or tuple of values) of the keys.

    Attributes:
        value: the value; a tuple where there are several keys.
        rate: 1 - p(y) H(X | y) / H(X); mostly driven by how rare the value is.
        count: how many rows hold it; ``share`` is p(y).
        unweighted: 1 - H(X | y) / H(X), what the value says, however rare; may be negative.
        top: the largest share of one outcome among these rows.
    """

    value: object
    rate: float
    count: int
    share: float
    unweighted: float
    top: float

    def __repr__(self) -> str:
        return f"ValueRate(rate={self.rate:.4f}, count={self.count}, top={self.top:.4f})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Discrimination(Mapping[object, float]):
    """How far ``keys`` discriminate ``target``: a mapping from value to rate, with all around it.

    Attributes:
        rate: the rate of the keys together; not a number where the target never varies.
        kind: identifier, partial, sketchy or zero; undefined where the target never varies.
        rows: how many rows it rests on; ``left_out`` those with suppressed cells that were dropped.
        entropy: H(X) in bits; ``residual`` is H(X | Y).
        identifying: how many values leave one outcome only; ``identified_rows`` their rows.
        details: one entry per value.
        notes: what a reader should know.
        inflation: what chance alone gives groups of these sizes, where that was asked for.
    """

    target: str
    keys_: tuple[str, ...]
    rate: float
    kind: Kind
    rows: int
    left_out: int
    entropy: float
    residual: float
    identifying: int
    identified_rows: int
    details: tuple[ValueRate, ...] = ()
    notes: tuple[str, ...] = ()
    inflation: Inflation | None = None
    _places: dict[object, int] = field(default_factory=dict)

    @property
    def degenerate(self) -> bool:
        """Whether the target never varies, so that there is nothing to discriminate."""
        return self.kind == "undefined"

    def __repr__(self) -> str:
        return f"Discrimination({self.rate:.4f}, {self.kind}, {len(self.details)} values)"

    def __getitem__(self, value: object) -> float:
        return self.of(value).rate

    def __iter__(self) -> Iterator[object]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def of(self, value: object) -> ValueRate:
        """The entry of one value; raises ``NotObservedError`` where no row holds it."""
        if value not in self._places:
            raise NotObservedError(self.keys_)
        return self.details[self._places[value]]

    def to_dict(self, *, values: bool = False) -> dict[str, Any]:
        """Return plain figures; with ``values`` also the values of the table."""
        out: dict[str, Any] = {
            "target": self.target,
            "keys": list(self.keys_),
            "rate": None if np.isnan(self.rate) else self.rate,
            "kind": self.kind,
            "rows": self.rows,
            "left_out": self.left_out,
            "entropy": self.entropy,
            "residual": self.residual,
            "identifying_values": self.identifying,
            "identified_rows": self.identified_rows,
            "inflation": None if self.inflation is None else self.inflation.to_dict(),
            "notes": list(self.notes),
        }
        if values:
            out["values"] = [_plain(one) for one in self.details]
        return out


def told(
    target: str,
    names: tuple[str, ...],
    found: Measured,
    labels: Sequence[object] = (),
    *,
    left_out: int = 0,
    notes: tuple[str, ...] = (),
    inflation: Inflation | None = None,
) -> Discrimination:
    """Put what was measured into words; ``labels`` name the groups where values are wanted."""
    details = tuple(_details(found, labels))
    return Discrimination(
        target, names, found.rate, found.kind, int(found.sizes.sum()), left_out, found.entropy,
        found.residual, int(found.pure.sum()), found.pure_rows, details, notes, inflation,
        {entry.value: i for i, entry in enumerate(details)},
    )  # fmt: skip


def _details(found: Measured, labels: Sequence[object]) -> Iterator[ValueRate]:
    total = int(found.sizes.sum())
    for i, label in enumerate(labels):
        count, inside = int(found.sizes[i]), float(found.inside[i])
        share = count / total
        if found.entropy == 0.0:
            rate = alone = found.rate
        else:
            rate = 1.0 - share * inside / found.entropy
            alone = 1.0 - inside / found.entropy
        yield ValueRate(label, rate, count, share, alone, int(found.top[i]) / count)


def _plain(one: ValueRate) -> dict[str, Any]:
    """A value's figures; a rate that is not a number becomes None."""
    plain = asdict(one)
    for name in ("rate", "unweighted"):
        plain[name] = None if np.isnan(plain[name]) else plain[name]
    return plain
