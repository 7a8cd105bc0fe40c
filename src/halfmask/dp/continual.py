"""Counts over time: one budget for the whole horizon, and error that grows with its logarithm.

Definition: time is cut into periods, the leaves of a tree; every node of the tree counts the rows
of its periods once, with noise of the budget divided by the number of levels. What came up to a
period is the sum of the few nodes that cover it.
Source: Dwork, Naor, Pitassi, Rothblum, "Differential privacy under continual observation", 2010;
Chan, Shi, Song, "Private and continual release of statistics", 2011.

A row has one period, so it stands in one node of every level. The nodes of one level together are
one table of counts that a person with r rows changes by at most r; levels add up. A node is counted
once, and its noisy counts stay in the ledger of the budget. Where people are known, so do keyed
hashes of those whom it counted: nobody is counted in more than r rows of a level, whatever periods
these move to.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import LedgerError, ParameterError
from halfmask.ledger import CONTINUAL, LedgerFile, decode_numbers, encode_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Accountant, Allowance, SpendingScope
    from halfmask.dp.budget import Budget
    from halfmask.ledger import LedgerRecord

    Node = tuple[int, int]
    Counts = NDArray[np.int64]
    PersonHashes = NDArray[np.uint64]

_WIDEST = 64  # branchings up to this are compared, and one level for all periods


@dataclass(frozen=True, slots=True)
class ContinualCount:
    """A tree over the periods of a horizon.

    Attributes:
        horizon: how many periods there will be.
        branching: how many nodes of one level make one of the next.

    Example:
        >>> ContinualCount(8, 2).nodes(7)
        [(2, 0), (1, 2), (0, 6)]
    """

    horizon: int
    branching: int

    def __post_init__(self) -> None:
        if self.horizon < 1 or self.branching < 2:
            raise ParameterError("horizon", self.horizon, "at least 1 period, 2 branches")

    @classmethod
    def of(cls, horizon: int, *, concentrated: bool) -> ContinualCount:
        """The tree whose counts carry the least noise on average over the periods.

        Noise of pure epsilon grows with the number of levels, that of rho with its root: short
        horizons are best served by one level.
        """
        tried = [*range(2, min(horizon, _WIDEST) + 1), max(horizon, 2)]
        trees = [cls(horizon, branching) for branching in dict.fromkeys(tried)]
        return min(trees, key=lambda tree: tree.relative_variance(concentrated=concentrated))

    @property
    def levels(self) -> int:
        """How many levels there are; the highest has one node per branch at most."""
        found = 1
        while self.branching**found < self.horizon:
            found += 1
        return found

    def nodes(self, through: int) -> list[Node]:
        """The (level, place) of the nodes that cover the first ``through`` periods, each once."""
        found, start = [], 0
        for level in range(self.levels - 1, -1, -1):
            width = self.branching**level
            while start + width <= through:
                found.append((level, start // width))
                start += width
        return found

    def span(self, node: Node) -> tuple[int, int]:
        """The first period of a node, and the one behind its last."""
        width = self.branching ** node[0]
        return node[1] * width, (node[1] + 1) * width

    def relative_variance(self, *, concentrated: bool) -> float:
        """The mean variance over all periods, in units of that of one count for all the budget."""
        summed = 0
        for level in range(self.levels):
            place = np.arange(1, self.horizon + 1) // self.branching**level
            # Nodes of the highest level have none above that would take their place.
            top = level == self.levels - 1
            summed += int((place if top else place % self.branching).sum())
        share = self.levels if concentrated else self.levels**2
        return summed / self.horizon * share


@dataclass(frozen=True, slots=True)
class CountSeries:
    """The nodes of one tree that were counted, in the ledger of the budget.

    Attributes:
        accountant: whose ledger it is.
        terms: what makes it this series: columns, public values, the budget, the tree.
    """

    accountant: Accountant
    terms: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.accountant.ledger is None:
            raise ParameterError(
                "accountant", "(in memory)", "one with a ledger, which keeps the counts so far"
            )

    @property
    def _file(self) -> LedgerFile:
        ledger = self.accountant.ledger
        assert ledger is not None  # noqa: S101 - required above
        return LedgerFile(ledger.path, ledger.key)

    def allow(
        self, promise: Budget, *, rows_per_person: int, scope: SpendingScope
    ) -> tuple[Allowance, bool]:
        """The allowance of the whole horizon, and whether it was spent just now."""
        serial = self._serial(self._file.records())
        if serial is not None:
            resumed = self.accountant.resume(
                promise, CONTINUAL, serial, rows_per_person=rows_per_person, scope=scope
            )
            return resumed, False
        allowance = self.accountant.allow(
            promise, CONTINUAL, rows_per_person=rows_per_person, scope=scope
        )
        with self._file.change() as change:
            body = {"terms": dict(self.terms), "serial": allowance.serial}
            change.append(CONTINUAL, {**body, "salt": secrets.token_hex(16)})
        return allowance, True

    def hashes(self, people: Iterable[str]) -> PersonHashes:
        """What people are known by in this series, once it is allowed."""
        salt = next(
            record.body["salt"]
            for record in self._file.records()
            if record.kind == CONTINUAL and record.body.get("terms") == self.terms
        )
        return self._file.hashes(bytes.fromhex(salt), people)

    def counts(
        self,
        nodes: Sequence[Node],
        shape: tuple[int, ...],
        count: Callable[
            [Sequence[Node], Mapping[int, PersonHashes]], Mapping[Node, tuple[Counts, PersonHashes]]
        ],
    ) -> list[Counts]:
        """The noisy counts of some nodes: those of the ledger, and the others counted now.

        ``count`` gets the nodes and, per level, whom the nodes of the ledger hold.
        """
        with self._file.change() as change:
            serial = self._serial(change.records)
            # Counted with the ledger held: two runs would give one node two noises for one price.
            known, people = self._read_nodes(change.records, serial, shape)
            missing = [node for node in nodes if node not in known]
            fresh = count(missing, people)
            if missing:
                listed = [
                    [*node, held.ravel().tolist(), encode_numbers(np.sort(who), "<u8")]
                    for node, (held, who) in fresh.items()
                ]
                change.append(CONTINUAL, {"serial": serial, "nodes": listed})
                known.update({node: held for node, (held, _) in fresh.items()})
        return [known[node] for node in nodes]

    def _serial(self, records: Sequence[LedgerRecord]) -> int | None:
        for record in records:
            if record.kind == CONTINUAL and record.body.get("terms") == self.terms:
                return int(record.body["serial"])
        return None

    def _read_nodes(
        self, records: Sequence[LedgerRecord], serial: int | None, shape: tuple[int, ...]
    ) -> tuple[dict[Node, Counts], dict[int, PersonHashes]]:
        found: dict[Node, Counts] = {}
        people: dict[int, list[PersonHashes]] = {}
        for record in records:
            body = record.body if record.kind == CONTINUAL else {}
            if body.get("serial") != serial:
                continue
            for level, place, counts, who in body.get("nodes", ()):
                held = np.array(counts, dtype=np.int64)
                if held.size != int(np.prod(shape)) or (level, place) in found:
                    raise LedgerError(
                        f"The ledger {self._file.path.name!r} is damaged: counts of a period do "
                        "not fit the table. Nothing was computed."
                    )
                found[level, place] = held.reshape(shape)
                people.setdefault(level, []).append(decode_numbers(who, "<u8").astype(np.uint64))
        return found, {level: np.concatenate(held) for level, held in people.items()}
