"""What the last cell may do with groups before they are published: recode them locally, add noise.

Local recoding. Definition: whoever a chain of levels publishes in a row of level j is published
under the same guarantee (k_j, l_j), in a row that is generalized in no column further than level j
and in no column less than the person's own level. A row is split by taking back one step of one
column: its parts that meet the guarantee leave it, and what stays must meet it too (else the
smallest parts stay as well). The column is taken by which most people gain, again and again.
Source: Michel 2019, chapter 8, names local recoding in place of one chain for all as future work;
the rule is our own. It loses nobody and makes no row coarser.

Noise at filtering. Definition: every possible group, those of nobody too, gets discrete Laplace
noise of the epsilon that was asked for; what then is below k is left out. Whose own epsilon is
below that takes part by chance (``halfmask.dp.personal``), and keeps it by that.
Source: Michel 2019, chapter 8 (epsilon attached to tuples); Jorgensen, Yu, Cormode, 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

from halfmask.dp.mechanisms import DiscreteLaplace
from halfmask.dp.sampling import Sampler
from halfmask.protocol.contribution import categories, round_epsilon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halfmask.protocol.records.layout import RecordLayout, Records
    from halfmask.query.groups import Groups
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.semantics import LevelChoice

    Members = NDArray[np.int64]

Depths = tuple[int, ...]  # per grouping column, how often it is generalized


@dataclass(frozen=True, eq=False)
class LocalRecoding:
    """A choice of rows whose columns are generalized apart from each other.

    Attributes:
        plan: its levels are those of the question and, before each, those between it and the one
            before that rows stand at.
        steps: the levels in words.
        groups: the groups, with the numbers of these levels.
        choice: where each group goes.
        numbers: the level of the question to its number here.
    """

    plan: GuaranteePlan
    steps: tuple[str, ...]
    groups: Groups
    choice: LevelChoice
    numbers: NDArray[np.int64]

    def place_groups(self, rows: pa.Table) -> pa.Table:
        """The decoded groups with the numbers of these levels."""
        return _renumber(rows, self.numbers)


def recode_locally(plan: GuaranteePlan, groups: Groups, choice: LevelChoice) -> LocalRecoding:
    """Split the rows of a choice into finer ones that keep the guarantee of their level."""
    from halfmask.query.semantics import LevelChoice, publish_groups

    published = publish_groups(groups, choice)
    chain = list(zip(*(key.depths for key in groups.keys), strict=True)) or [()] * (groups.top + 1)
    found: list[tuple[int, Depths]] = [(-1, ())] * len(groups)
    order = np.argsort(published.ids, kind="stable")
    ends = np.searchsorted(published.ids[order], np.arange(len(published) + 1))
    for row, level in enumerate(published.level.tolist()):
        members = order[ends[row] : ends[row + 1]]
        for part, depths in _split(groups, chain, level, members, chain[level]):
            for group in part.tolist():
                found[group] = (level, depths)
    used = {*enumerate(chain), *(place for place in found if place[0] >= 0)}
    # A level comes last of those that lead to it: it is the coarsest of them.
    levels = sorted(used, key=lambda place: (place[0], sum(place[1]), place[1]))
    index = {place: i for i, place in enumerate(levels)}
    numbers = np.array([index[place] for place in enumerate(chain)], dtype=np.int64)
    target = np.array([index.get(place, -1) for place in found], dtype=np.int64)
    parents = np.array([level for level, _ in levels], dtype=np.int64)
    local = replace(
        groups,
        level=numbers[groups.level],
        keys=tuple(
            replace(key, depths=tuple(depths[i] for _, depths in levels))
            for i, key in enumerate(groups.keys)
        ),
        thresholds=groups.thresholds[parents],
        states=_renumber(groups.states, numbers),
        separate=False,
    )
    return LocalRecoding(
        _over(plan, levels),
        tuple(_words(plan, level, depths, chain[level]) for level, depths in levels),
        local,
        LevelChoice(target, None),
        numbers,
    )


def _split(
    groups: Groups, chain: list[Depths], level: int, members: Members, depths: Depths
) -> Iterator[tuple[Members, Depths]]:
    """A row in parts, each with how far its columns are generalized."""
    work = [(members, depths)]
    while work:
        members, depths = work.pop()
        best: list[Members] = []
        rest, lower = members, depths
        gain = 0
        for column, depth in enumerate(depths):
            if not depth:
                continue
            trial = (*depths[:column], depth - 1, *depths[column + 1 :])
            parts, left = _parts(groups, chain, level, members, trial, column)
            moved = int(sum(groups.people[part].sum() for part in parts))
            if moved > gain:
                best, rest, lower, gain = parts, left, trial, moved
        if not gain:
            yield members, depths
            continue
        work += [(part, lower) for part in best]
        if len(rest):
            work.append((rest, depths))


def _parts(
    groups: Groups,
    chain: list[Depths],
    level: int,
    members: Members,
    depths: Depths,
    column: int,
) -> tuple[list[Members], Members]:
    """The parts that leave a row when a column takes one step back, and what stays in it."""
    own = np.array([of_level[column] for of_level in chain], dtype=np.int64)
    free = members[own[groups.level[members]] <= depths[column]]
    if not len(free):
        return [], members
    key = groups.keys[column]
    codes, ids = np.unique(key.maps[depths[column]][key.codes[free]], return_inverse=True)
    holds = groups.passes(level, free, ids.astype(np.int64), len(codes))
    labels = key.labels[depths[column]]
    parts = [(free[ids == i], str(labels[codes[i]])) for i in np.flatnonzero(holds)]
    parts.sort(key=lambda part: (int(groups.people[part[0]].sum()), part[1]))
    leaving = [part for part, _ in parts]
    # What stays in the row must keep the guarantee too: the smallest parts go back until it does.
    while leaving:
        rest = np.setdiff1d(members, np.concatenate(leaving))
        if not len(rest) or groups.passes(level, rest, np.zeros(len(rest), np.int64), 1)[0]:
            return leaving, rest
        leaving = leaving[1:]
    return [], members


def _over(plan: GuaranteePlan, levels: list[tuple[int, Depths]]) -> GuaranteePlan:
    """The plan with these levels."""
    request, chain = plan.request, plan.chain
    keys = tuple(
        replace(key, depths=tuple(depths[i] for _, depths in levels))
        for i, key in enumerate(request.keys)
    )
    guarantees = tuple(request.guarantees[level] for level, _ in levels)
    entries = tuple(chain.levels[level] for level, _ in levels)
    statement = replace(plan.statement, promise=replace(chain, levels=entries))
    return replace(
        plan, statement=statement, request=replace(request, keys=keys, guarantees=guarantees)
    )


def _words(plan: GuaranteePlan, level: int, depths: Depths, whole: Depths) -> str:
    step = plan.chain.levels[level].step
    said = "as grouped" if step is None else str(step)
    finer = [
        key.name for key, own, most in zip(plan.keys, depths, whole, strict=True) if own < most
    ]
    return f"{said}, {' and '.join(finer)} finer" if finer else said


def _renumber(rows: pa.Table, numbers: NDArray[np.int64]) -> pa.Table:
    level = numbers[rows["level"].to_numpy()]
    return rows.set_column(rows.column_names.index("level"), "level", pa.array(level))


def keyed_sampler(key: bytes) -> Sampler:
    """Draws that follow from a secret key of 32 bytes: nobody without it can tell or repeat them.

    The last task of a query may be done twice. Noise drawn afresh each time could be averaged away.
    """
    stream = Cipher(AES(key), CTR(bytes(16))).encryptor()
    return Sampler(lambda size: stream.update(bytes(size)))


def add_noise(layout: RecordLayout, found: Records, epsilon: float, sampler: Sampler) -> Records:
    """All groups that there can be, with noise; of those left, at least one person is told."""
    every = _possible(layout)
    found = found[np.isin(found["key"], every["key"])]  # a broken cell may have sent any key
    # Groups of nobody get noise as well: which groups exist would tell of people.
    counts = np.zeros(len(every), np.int64)
    counts[np.searchsorted(every["key"], found["key"])] = layout.people(found)
    noisy = DiscreteLaplace(round_epsilon(epsilon)).apply(counts, sampler)
    kept: Records = every[noisy > 0].copy()
    kept["rows"] = layout.people(kept)[:] = noisy[noisy > 0]
    return kept


def noise_words(epsilon: float) -> str:
    """What a reader must know of noise at filtering."""
    mechanism = DiscreteLaplace(round_epsilon(epsilon))
    return (
        f"Counts carry discrete Laplace noise of epsilon = {float(mechanism.epsilon):g} (scale "
        f"{float(mechanism.scale):g}), at most "
        f"{mechanism.half_width(0.95):,} up or down in 95 of 100 groups; people whose own epsilon "
        "is less are counted by chance, so that counts are of a part of the people. The k of a row "
        "is that of its noisy count: fewer people may be in it, or nobody."
    )


def _possible(layout: RecordLayout) -> Records:
    """A record of nobody for each group that there can be, in the order of their keys."""
    sizes = [1 + len(key.domain) for key in layout.keys if key.domain is not None]
    codes = np.unravel_index(np.arange(categories(layout)), sizes)
    columns: dict[str, pa.Array] = {"level": pa.array(np.zeros(len(codes[0]), np.int64))}
    for i, (key, code) in enumerate(zip(layout.keys, codes, strict=True)):
        assert key.domain is not None  # noqa: S101 - others are refused with noise
        columns[f"g{i}"] = key.domain.take(pa.array(code - 1, mask=code == 0))
    for i in range(len(layout.states)):
        columns[f"a{i}"] = pa.array(np.ones(len(codes[0]), np.int64))
    made = layout.encode(pa.table(columns))
    return made[np.argsort(made["key"], kind="stable")]
