"""The door for answers: rows of a query leave only if each keeps its level's guarantee.

The check reads the groups that the engine counted and recomputes each published row from them
with SQL of its own; it shares no code with the filter that chose the rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.engines.duckdb import DuckDB
from halfmask.engines.levels import generalize_key
from halfmask.errors import InternalError
from halfmask.models.verdict import Verdict
from halfmask.release.release import DOOR, Answer, AnswerLevel, SealedGuarantee

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.release.candidate import AnswerCandidate, Promise

    Counts = NDArray[np.int64]


def seal_answer(candidate: AnswerCandidate) -> Answer:
    """Recompute every row from the counted groups and release those that were asked for.

    Raises:
        InternalError: a row does not keep what its level promises; nothing leaves.
    """
    _check_promises(candidate)
    engine = DuckDB({"groups": candidate.groups, "places": _places(candidate)})
    try:
        found, people = _achieved(engine, candidate)
        _check_levels(engine, candidate)
        _check_keys(engine, candidate)
        _check_conditions(engine, candidate, people)
    finally:
        engine.close()
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


def _places(candidate: AnswerCandidate) -> pa.Table:
    return pa.table(
        {"place": pa.array(np.arange(len(candidate.places))), "at": pa.array(candidate.places)}
    )


def _achieved(engine: DuckDB, candidate: AnswerCandidate) -> tuple[list[Counts], Counts]:
    """Per promise and place, how many; and per place, the people of its groups.

    Somebody who stands in several groups counts in each.
    """
    first, *_ = candidate.promises
    plain = [promise.count for promise in candidate.promises if promise.values is None]
    counts = list(dict.fromkeys([first.count, *plain]))
    sums = ", ".join(f'SUM("{count}") AS n{i}' for i, count in enumerate(counts))
    summed = engine.run_text(
        f"SELECT place, {sums} FROM groups WHERE place >= 0 GROUP BY place"  # noqa: S608
    )
    totals = {c: _per_place(candidate, summed, f"n{i}") for i, c in enumerate(counts)}
    found = [
        totals[p.count] if p.values is None else _distinct(engine, candidate, p)
        for p in candidate.promises
    ]
    return found, totals[first.count]


def _distinct(engine: DuckDB, candidate: AnswerCandidate, promise: Promise) -> Counts:
    """Per place, distinct values; those that are not all listed count as ``cap`` at least."""
    query = (
        f'WITH listed AS (SELECT place, UNNEST("{promise.values}") AS v FROM groups '  # noqa: S608
        f'WHERE place >= 0 AND "{promise.count}" < {promise.cap}), '
        "few AS (SELECT place, COUNT(DISTINCT v) AS n FROM listed GROUP BY place), "
        f'many AS (SELECT place, MAX("{promise.count}") AS n FROM groups '
        "WHERE place >= 0 GROUP BY place) "
        "SELECT many.place, GREATEST(COALESCE(few.n, 0), many.n) AS n FROM many "
        "LEFT JOIN few ON few.place = many.place"
    )
    return _per_place(candidate, engine.run_text(query), "n")


def _per_place(candidate: AnswerCandidate, rows: pa.Table, name: str) -> Counts:
    counts = np.zeros(len(candidate.places), dtype=np.int64)
    counts[rows["place"].to_numpy()] = rows[name].cast(pa.float64()).to_numpy().astype(np.int64)
    return counts


def _check_levels(engine: DuckDB, candidate: AnswerCandidate) -> None:
    """Hold levels and demands, and what the door itself had counted of them, against each row."""
    watch, states = candidate.watch, candidate.request.states
    worst = []
    if candidate.request.demands is not None:
        worst = [f"MAX({name}) AS {name}" for name in ("k", "l")]
    if watch is not None:
        if any(state not in states for state in watch.states.values()):
            raise InternalError("What the door looks at was not counted.")
        worst += [
            f'{"MIN" if what.startswith("t") else "MAX"}(groups."s{states.index(state)}") '
            f'AS "watched {what}"'
            for what, state in watch.states.items()
        ]
    found = engine.run_text(
        "SELECT places.at AS at, "  # noqa: S608
        "COUNT(*) FILTER (WHERE groups.level > places.at OR groups.level < 0) AS finer"
        f"{''.join(f', {one}' for one in worst)} FROM groups "
        "JOIN places USING (place) GROUP BY places.at"
    )
    if any(found["finer"].to_pylist()):
        raise InternalError("A group would leave finer than its people accept.")
    if candidate.request.demands is not None:
        _require_met(candidate, found)
    if watch is None:
        return
    for row in found.to_pylist():
        k, l = candidate.request.guarantees[row["at"]]
        if not watch.met({what: row[f"watched {what}"] for what in watch.states}, k, l):
            raise InternalError("A contributor's own demand is not met; nothing was released.")


def _require_met(candidate: AnswerCandidate, worst: pa.Table) -> None:
    for row in worst.to_pylist():
        k, l = candidate.request.guarantees[row["at"]]
        if (row["k"] or 0) > k or (row["l"] or 0) > l:
            raise InternalError("A contributor's own demand is not met; nothing was released.")


def _check_keys(engine: DuckDB, candidate: AnswerCandidate) -> None:
    """Groups that leave as one row must have one key at its level, and no two rows the same."""
    keys = candidate.request.keys
    raw = "".join(f', groups."g{i}" AS "r{i}"' for i in range(len(keys)))
    shown = "".join(
        f", {generalize_key(key, i).sql(dialect='duckdb', copy=False)} AS x{i}"
        for i, key in enumerate(keys)
    )
    by = "".join(f", x{i}" for i in range(len(keys)))
    # Each key in one place only, and as many keys as places: so each place has one key.
    found = engine.run_text(
        f"WITH placed AS (SELECT groups.place, places.at AS level{raw} FROM groups "  # noqa: S608
        f"JOIN places ON groups.place = places.place), "
        f"keyed AS (SELECT place, level{shown} FROM placed), "
        f"by_key AS (SELECT MIN(place) AS lowest, MAX(place) AS highest FROM keyed "
        f"GROUP BY level{by}) "
        "SELECT COUNT(*) AS keys, COUNT(DISTINCT lowest) AS places, "
        "COUNT(*) FILTER (WHERE lowest <> highest) AS shared FROM by_key"
    )
    n = len(candidate.places)
    if found.to_pylist() != [{"keys": n, "places": n, "shared": 0}]:
        raise InternalError("Rows of the answer do not match the groups they are made of.")


def _check_conditions(engine: DuckDB, candidate: AnswerCandidate, people: Counts) -> None:
    """Conditional figures must be null where a part of the people behind them is too small."""
    if candidate.figures is None or not candidate.conditional or not len(candidate.places):
        return
    if candidate.parts is None:
        raise InternalError("Conditional figures came without the parts of their rows.")
    engine.add("parts", candidate.parts)
    engine.add("figures", candidate.figures)
    levels = range(len(candidate.request.guarantees))
    k, l = zip(*candidate.request.guarantees, strict=True)
    engine.add("promised", pa.table({"at": pa.array(levels, pa.int64()), "k": k, "l": l}))
    few = " OR ".join(
        [
            "people < k",
            *(f"l{i} BETWEEN 1 AND l - 1" for i in range(candidate.parts.num_columns - 3)),
        ]
    )
    names = candidate.figures.column_names[1 : candidate.conditional + 1]
    tests = " OR ".join(f"{name} IS NOT NULL" for name in names)
    found = engine.run_text(
        "WITH small AS (SELECT parts.place, met FROM parts JOIN places USING (place) "  # noqa: S608
        f'JOIN promised USING ("at") WHERE {few}), '
        "scarce AS (SELECT DISTINCT met FROM small), "
        "complete AS (SELECT place FROM parts JOIN scarce USING (met) GROUP BY place "
        "HAVING COUNT(DISTINCT met) = (SELECT COUNT(*) FROM scarce)), "
        "sound AS (SELECT place FROM places WHERE place NOT IN (SELECT place FROM small) AND "
        "(place IN (SELECT place FROM complete) OR NOT EXISTS (SELECT 1 FROM scarce))) "
        f"SELECT COUNT(*) AS n FROM figures WHERE ({tests}) "
        "AND hm_row NOT IN (SELECT place FROM sound)"
    )
    if found["n"][0].as_py():
        raise InternalError("A conditional figure is made of too few people; nothing was released.")
    if candidate.below is None:
        _check_whole(engine, candidate, people)


def _check_whole(engine: DuckDB, candidate: AnswerCandidate, people: Counts) -> None:
    """The parts of a row must hold all its people."""
    parts = engine.run_text("SELECT place, SUM(people) AS n FROM parts GROUP BY place")
    if not np.array_equal(_per_place(candidate, parts, "n"), people):
        raise InternalError("The parts of a row are not all its people; nothing was released.")


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
        notes=candidate.notes,
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
