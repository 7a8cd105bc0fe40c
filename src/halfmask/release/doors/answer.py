"""The door for answers: rows of a query leave only if each keeps its level's guarantee.

The check reads the groups that the engine counted and recomputes each published row from them
with arithmetic of its own; it shares no code with the filter that chose the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.duckdb.engine import compute_aside
from halfmask.engines.levels import comparable, generalize_key
from halfmask.errors import InternalError
from halfmask.models.verdict import Verdict
from halfmask.release.release import DOOR, Answer, AnswerLevel, SealedGuarantee

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Key
    from halfmask.release.candidate import AnswerCandidate, Promise

    Counts = NDArray[np.int64]


def seal_answer(candidate: AnswerCandidate) -> Answer:
    """Recompute every row from the counted groups and release those that were asked for.

    Raises:
        InternalError: a row does not keep what its level promises; nothing leaves.
    """
    _check_promises(candidate)
    placed = _placed(candidate)
    found = [_achieved(candidate, placed, promise) for promise in candidate.promises]
    people = _sums(candidate, placed, candidate.promises[0].count)
    _check_levels(candidate, placed)
    _check_keys(candidate, placed)
    _check_conditions(candidate, people)
    _check_looked_up(candidate, _sums(candidate, placed, "rows"))
    _check_shares(candidate)
    _check_second_look(candidate)
    verdicts = _verdicts(candidate, found)
    if any(not v.holds for v in verdicts):
        raise InternalError("A row of the answer breaks its guarantee; nothing was released.")
    return _answer(candidate, people, tuple(verdicts))


def _check_promises(candidate: AnswerCandidate) -> None:
    """What is recounted must be what each level's guarantee says, of people and of values."""
    ks, ls = zip(*candidate.request.guarantees, strict=True)
    asked = {"people": ks, "contributors": ks, "diversity": ls}
    stated = {promise.what for promise in candidate.promises}
    if (
        any(p.thresholds != asked.get(p.what) for p in candidate.promises)
        or not ({"people", "diversity"} if max(ls) > 1 else {"people"}) <= stated
    ):
        raise InternalError("What is promised is not what would be checked; nothing was released.")


def _placed(candidate: AnswerCandidate) -> pa.Table:
    """The groups that would leave, each with its place and the level ``at`` which it is shown."""
    place = candidate.groups["place"].to_numpy()
    if place.max(initial=-1) >= len(candidate.places):
        raise InternalError("Rows of the answer do not match the groups they are made of.")
    placed = candidate.groups.filter(pa.array(place >= 0))
    return placed.append_column("at", pa.array(candidate.places[placed["place"].to_numpy()]))


def _achieved(candidate: AnswerCandidate, placed: pa.Table, promise: Promise) -> Counts:
    """Per place, how many; values that are not all listed count as those of the largest group."""
    if promise.values is None:
        return _sums(candidate, placed, promise.count)
    place, counts = placed["place"].to_numpy(), _whole(placed[promise.count])
    found = np.zeros(len(candidate.places), dtype=np.int64)
    np.maximum.at(found, place, counts)
    listed = placed[promise.values].filter(pa.array(counts < promise.cap))
    few = pa.concat_arrays(listed.chunks) if listed.num_chunks else None
    if few is None or not len(few):
        return found
    rows = pc.list_parent_indices(few).to_numpy()
    known = pc.list_flatten(few)
    some = known.is_valid().to_numpy(zero_copy_only=False)
    codes = comparable(known).dictionary_encode().indices.fill_null(0).to_numpy()
    places = place[counts < promise.cap][rows[some]]
    return np.maximum(found, _different(places, codes[some], len(found)))


def _different(place: Counts, codes: Counts, places: int) -> Counts:
    """Per place, how many different codes stand in it."""
    width = int(codes.max(initial=0)) + 1
    found: Counts = np.bincount(
        np.unique(place.astype(np.int64) * width + codes) // width, minlength=places
    )
    return found


def _sums(candidate: AnswerCandidate, placed: pa.Table, count: str) -> Counts:
    """Per place, a count of its groups; somebody who stands in several groups counts in each."""
    found = np.zeros(len(candidate.places), dtype=np.int64)
    np.add.at(found, placed["place"].to_numpy(), _whole(placed[count]))
    return found


def _whole(column: pa.ChunkedArray) -> Counts:
    found: Counts = column.cast(pa.int64()).to_numpy()
    return found


def _check_levels(candidate: AnswerCandidate, placed: pa.Table) -> None:
    """Hold levels and demands, and what the door itself had counted of them, against each row."""
    watch, states = candidate.watch, candidate.request.states
    level, at = placed["level"].to_numpy(), placed["at"].to_numpy()
    depths = [np.array(key.depths) for key in candidate.request.keys]
    finer = (level < 0) | (level > at)
    for depth in depths:  # in any column: levels need not stand on one chain
        finer |= depth[level] > depth[at]
    if finer.any():
        raise InternalError("A group would leave finer than its people accept.")
    if candidate.request.demands is not None:
        worst = {name: _worst(placed[name], at) for name in ("k", "l")}
        _require_met(candidate, pa.table({"at": list(worst["k"]), **_columns(worst)}))
    if watch is None:
        return
    if any(state not in states for state in watch.states.values()):
        raise InternalError("What the door looks at was not counted.")
    watched = {
        what: _worst(placed[f"s{states.index(state)}"], at, least=what.startswith("t"))
        for what, state in watch.states.items()
    }
    for shown in np.unique(at).tolist():
        k, l = candidate.request.guarantees[shown]
        if not watch.met({what: found[shown] for what, found in watched.items()}, k, l):
            raise InternalError("A contributor's own demand is not met; nothing was released.")


def _worst(column: pa.ChunkedArray, at: Counts, *, least: bool = False) -> dict[int, float | None]:
    """Per level, the largest (or least) of the demands; what is no number counts as unmeetable."""
    sign = -1.0 if least else 1.0
    known = column.is_valid().to_numpy()
    numbers = sign * column.cast(pa.float64(), safe=False).fill_null(0).to_numpy()
    numbers[np.isnan(numbers)] = np.inf
    found: dict[int, float | None] = dict.fromkeys(np.unique(at).tolist())
    for shown in np.unique(at[known]).tolist():
        found[shown] = sign * float(numbers[known & (at == shown)].max())
    return found


def _columns(worst: Mapping[str, Mapping[int, float | None]]) -> dict[str, list[float | None]]:
    return {name: list(found.values()) for name, found in worst.items()}


def _require_met(candidate: AnswerCandidate, worst: pa.Table) -> None:
    for row in worst.to_pylist():
        k, l = candidate.request.guarantees[row["at"]]
        if (row["k"] or 0) > k or (row["l"] or 0) > l:
            raise InternalError("A contributor's own demand is not met; nothing was released.")


def _check_keys(candidate: AnswerCandidate, placed: pa.Table) -> None:
    """Groups that leave as one row must have one key at its level, and no two rows the same."""
    names = [f"g{i}" for i in range(len(candidate.request.keys))]
    groups = placed.select(["place", "at", *names])
    groups = groups.rename_columns(["place", "level", *(f"r{i}" for i in range(len(names)))])
    found = compute_aside("groups", groups, _shown_keys, candidate.request.keys)
    # Each key in one place only, and as many keys as places: so each place has one key.
    lowest, highest = found["lowest"].to_numpy(), found["highest"].to_numpy()
    places = np.arange(len(candidate.places))
    if not np.array_equal(np.sort(lowest), places) or not np.array_equal(lowest, highest):
        raise InternalError("Rows of the answer do not match the groups they are made of.")


def _shown_keys(keys: tuple[Key, ...]) -> exp.Expr:
    """The lowest and the highest place of each key, as it is at the level where it is shown."""
    from sqlglot import exp

    shown = [exp.alias_(generalize_key(key, i), f"x{i}") for i, key in enumerate(keys)]
    groups = exp.select("place", "level", *shown).from_("groups")
    found = exp.select("MIN(place) AS lowest", "MAX(place) AS highest").from_(groups.subquery("s"))
    return found.group_by("level", *(f"x{i}" for i in range(len(keys))))


def _check_conditions(candidate: AnswerCandidate, people: Counts) -> None:
    """Conditional figures must be null where a part of the people behind them is too small."""
    figures, parts = candidate.figures, candidate.parts
    if figures is None or not candidate.conditional or not len(candidate.places):
        return
    if parts is None:
        raise InternalError("Conditional figures came without the parts of their rows.")
    place, met, inside = (_whole(parts[name]) for name in ("place", "met", "people"))
    k, l = np.array(candidate.request.guarantees, dtype=np.int64)[candidate.places[place]].T
    large = inside >= k
    for name in parts.column_names[3:]:
        values = _whole(parts[name])
        large &= (values == 0) | (values >= l)
    sound = np.ones(len(candidate.places), dtype=bool)
    sound[place[~large]] = False
    # A part that is too small anywhere must be there, and large enough, in every row that shows.
    scarce = np.unique(met[~large])
    there = large & np.isin(met, scarce)
    sound &= _different(place[there], met[there], len(sound)) == len(scarce)
    hidden = ~sound[_whole(figures["hm_row"])]
    for name in figures.column_names[1 : candidate.conditional + 1]:
        if (figures[name].is_valid().to_numpy() & hidden).any():
            raise InternalError(
                "A conditional figure is made of too few people; nothing was released."
            )
    if candidate.below is None:
        whole = np.zeros_like(people)
        np.add.at(whole, place, inside)
        if not np.array_equal(whole, people):
            raise InternalError("The parts of a row are not all its people; nothing was released.")


def _check_looked_up(candidate: AnswerCandidate, rows: Counts) -> None:
    """What was looked up in the rows once more must be made of the very rows that were counted."""
    found = [] if candidate.measured is None else [_whole(candidate.measured)]
    if candidate.shares is not None:
        shares = candidate.shares.rows.sort_by("place")
        found += [_whole(shares[f"rows{i}"]) for i in range(len(candidate.shares.figures))]
    if any(not np.array_equal(one, rows) for one in found):
        raise InternalError("Figures are made of other rows than were counted; nothing left.")


def _check_shares(candidate: AnswerCandidate) -> None:
    """Sums that few people make up must be null."""
    shares = candidate.shares
    if shares is None or candidate.figures is None:
        return
    for row in shares.rows.to_pylist():
        for i, name in enumerate(shares.figures):
            if candidate.figures[name][row["place"]].as_py() is None or not row[f"t{i}"]:
                continue
            largest = [float(row[f"x{i}_{j + 1}"] or 0) for j in range(shares.most)]
            total = float(row[f"t{i}"])
            for rule in shares.rules:
                p, n, k = (rule.get(x, 0) for x in "pnk")
                rest = total - sum(largest[:2])
                if (p and rest < p / 100 * largest[0]) or (
                    n and sum(largest[: int(n)]) > k / 100 * total
                ):
                    raise InternalError("A sum is made up by few people; nothing was released.")


def _check_second_look(candidate: AnswerCandidate) -> None:
    if candidate.counted is None:
        return
    rows = candidate.counted.sort_by("place")
    if rows.num_rows != len(candidate.places):
        raise InternalError("A second look at the rows finds other groups.")
    for i, promise in enumerate(candidate.promises):
        needed = np.array(promise.thresholds, dtype=np.int64)[candidate.places]
        if (rows[f"m{i}"].to_numpy().astype(np.int64) < needed).any():
            raise InternalError("A second look at the rows finds a row below its guarantee.")
    if candidate.request.demands is not None:
        n = len(candidate.promises)
        worst = pa.table({"at": candidate.places, "k": rows[f"m{n}"], "l": rows[f"m{n + 1}"]})
        _require_met(candidate, worst)


def _verdicts(candidate: AnswerCandidate, found: list[Counts]) -> list[Verdict]:
    verdicts = []
    for level, (at, step) in enumerate(
        zip(candidate.request.guarantees, candidate.steps, strict=True)
    ):
        inside = np.flatnonzero(candidate.places == level)
        if not len(inside):
            continue
        for promise, reached in zip(candidate.promises, found, strict=True):
            required = promise.thresholds[level]
            failing = int(np.count_nonzero(reached[inside] < required))
            verdicts.append(
                Verdict(
                    model={"diversity": "l-diversity"}.get(promise.what, "k-anonymity"),
                    holds=not failing,
                    required=required,
                    # How far a row is above its guarantee is not the asker's to know.
                    achieved=min(required, int(reached[inside].min())),
                    failing_classes=failing,
                    failing_rows=failing,
                    classes=len(inside),
                    rows=len(inside),
                    column=promise.column if promise.what != "people" else None,
                    note=f"level {level + candidate.first} ({step}), k={at[0]} l={at[1]}",
                )
            )
    return verdicts


# Said wherever people state demands, whoever is left out.
PART = (
    "The figures are of a part of the people: of those whose own demands the guarantee of the row "
    "meets. Whoever asks for more is in none of them."
)


def _answer(candidate: AnswerCandidate, people: Counts, verdicts: tuple[Verdict, ...]) -> Answer:
    shown = candidate.rows["hm_row"].to_numpy().astype(np.int64)
    if len(np.unique(shown)) != len(shown) or (
        len(shown) and not 0 <= shown.min() <= shown.max() < len(candidate.places)
    ):
        raise InternalError("The answer has rows that were not checked.")
    at = candidate.places[shown]
    if not np.array_equal(candidate.rows["level"].to_numpy(), at + candidate.first):
        raise InternalError("The answer states other levels than were checked.")
    guarantees = candidate.request.guarantees
    rows = candidate.rows.drop_columns(["hm_row"])
    words = pa.array([f"k>={k}, l>={l}" for k, l in guarantees], pa.string())
    rows = rows.append_column("guarantee", words.take(pa.array(at)))
    top = len(guarantees) - 1
    levels = tuple(
        AnswerLevel(
            i + candidate.first,
            candidate.steps[i],
            *guarantees[i],
            rows=int((at == i).sum()),
        )
        for i in range(top + 1)
    )
    depth = int(((top - candidate.places) * people).sum())
    total = int(people.sum())
    return Answer(
        guarantee=SealedGuarantee(verdicts),
        method="query",
        chain=levels,
        people=total,
        depth=depth,
        withheld=_withheld(candidate, total, total - int(people[shown].sum())),
        semantics=candidate.semantics,
        gap=candidate.gap,
        engine=candidate.engine,
        notes=(*((PART,) if candidate.request.demands is not None else ()), *candidate.notes),
        sql=candidate.sql,
        _arrow=rows,
        door=DOOR,
    )


def _withheld(candidate: AnswerCandidate, published: int, unseen: int) -> dict[str, int | None]:
    """Totals of people left out, each said only where it hides them well enough by itself."""
    first = candidate.promises[0]
    below = candidate.below
    if below is None:
        below = int(np.sum(candidate.groups[first.count].to_numpy())) - published
    k = candidate.request.guarantees[-1][0]
    reasons = {
        "no level satisfies their demands": (candidate.refused[0], max(k, candidate.refused[1])),
        "no policy": (candidate.without_policy, k),
        "below the guarantee": (below, k),
    }
    said = {reason: n if n >= needed else None for reason, (n, needed) in reasons.items()}
    if unseen:
        said["filtered by HAVING or LIMIT"] = unseen
    return said
