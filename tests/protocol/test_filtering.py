"""Local recoding and noise at filtering: against plain Python, and against who would undo them."""

from __future__ import annotations

import math
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH
from memory_cell import MemoryCellStore
from noise import repeatable
from tests.protocol.town import COMMONS, NOW, Town, row

from halfmask.errors import InternalError, MessageError, UnsupportedQueryError
from halfmask.protocol import contribution as contributing
from halfmask.protocol.answering import answer_cells
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import Policy, Terms, commons_from
from halfmask.protocol.contribution import contribution
from halfmask.protocol.filtering import add_noise, keyed_sampler
from halfmask.protocol.messages import Deliver, Late, encode_message, read_request
from halfmask.protocol.records.layout import combine_records
from halfmask.protocol.simulate import contributions
from halfmask.protocol.transport import drive

LOCAL = Terms(partition=4, frame=4, room=64, local=True)

# -- local recoding


CHAIN = [("", (0, 0)), ("THEN a -> 2", (1, 0)), ("THEN b -> del", (1, 1)), ("THEN a -> 4", (2, 1))]
GUARANTEES = [(3, 1), (3, 2), (4, 2), (6, 3)]
Person = dict[str, Any]


def text(columns: str = "a, b") -> str:
    chain = " ".join(
        f"{step} GUARANTEE k = {k}, l = {m} OF s"
        for (step, _), (k, m) in zip(CHAIN, GUARANTEES, strict=True)
    )
    return f"SELECT {columns}, COUNT(*) AS n FROM people GROUP BY {columns} {chain}"  # noqa: S608


def label(person: Person, depths: tuple[int, int]) -> tuple[str, str]:
    """What is shown of a person whose columns are generalized so often."""
    a, width = person["a"], (1, 2, 4)[depths[0]]
    low = None if a is None else a // width * width
    shown = a if depths[0] == 0 or low is None else f"[{low}, {low + width})"
    return str(shown), "*" if depths[1] else str(person["b"])


def meets(people: list[Person], level: int) -> bool:
    k, values = GUARANTEES[level]
    return len(people) >= k and len({p["s"] for p in people}) >= values


def parted(people: list[Person], depths: tuple[int, int]) -> list[list[Person]]:
    found: dict[tuple[str, str], list[Person]] = {}
    for person in people:
        found.setdefault(label(person, depths), []).append(person)
    return list(found.values())


def selective(people: list[Person]) -> list[tuple[int, list[Person]]]:
    """The rows that one chain publishes."""
    rows, rising = [], []
    for level, (_, depths) in enumerate(CHAIN):
        rising += [p for p in people if p["level"] == level]
        groups = parted(rising, depths)
        rows += [(level, g) for g in groups if meets(g, level)]
        rising = [p for g in groups if not meets(g, level) for p in g]
    return rows


def split(level: int, people: list[Person], depths: tuple[int, int]) -> list[Any]:
    """The rule of local recoding, person by person."""
    best: tuple[int, Any] = (0, None)
    for column in (0, 1):
        if not depths[column]:
            continue
        finer = tuple(d - (i == column) for i, d in enumerate(depths))
        free = [p for p in people if CHAIN[p["level"]][1][column] <= finer[column]]
        parts = [part for part in parted(free, finer) if meets(part, level)]
        parts.sort(key=lambda part: (len(part), label(part[0], finer)[column]))
        while parts:
            inside = {p["id"] for part in parts for p in part}
            rest = [p for p in people if p["id"] not in inside]
            if not rest or meets(rest, level):
                break
            parts = parts[1:]
        moved = sum(map(len, parts))
        if moved > best[0]:
            best = moved, (parts, rest, finer)
    if best[1] is None:
        return [(*label(people[0], depths), len(people), level)]
    parts, rest, finer = best[1]
    rows = [found for part in parts for found in split(level, part, finer)]
    return rows + (split(level, rest, depths) if rest else [])


def expected(people: list[Person]) -> list[Any]:
    for i, person in enumerate(people):
        person["id"] = i
        levels = [j for j, (k, m) in enumerate(GUARANTEES) if person["k"] <= k and person["l"] <= m]
        person["level"] = levels[0] if levels else -1
    return [r for level, group in selective(people) for r in split(level, group, CHAIN[level][1])]


def shown(rows: list[dict[str, Any]]) -> list[Any]:
    words = [f"k>={k}, l>={m}" for k, m in GUARANTEES]
    return sorted((str(r["a"]), str(r["b"]), r["n"], words.index(r["guarantee"])) for r in rows)


def drawn(random: np.random.Generator, count: int) -> list[Person]:
    return [
        {
            "a": None if random.random() < 0.05 else int(random.integers(-1, 9)),
            "b": "xyz"[int(random.integers(0, 3))],
            "s": int(random.integers(0, 4)),
            "k": int(random.choice([1, 2, 3, 3, 3, 3, 3, 4, 6, 7])),
            "l": int(random.random() < 0.1) + 1,
        }
        for _ in range(count)
    ]


def test_a_row_keeps_the_column_that_it_can_keep() -> None:
    places = [(0, "x"), (1, "x"), (2, "x"), (0, "y"), (1, "y"), (3, "y"), (2, "z")]
    people = [{"a": a, "b": b, "s": i, "k": 1} for i, (a, b) in enumerate(places)]
    asked = (
        "SELECT a, b, COUNT(*) AS n FROM people GROUP BY a, b GUARANTEE k = 3 "
        "THEN b -> del GUARANTEE k = 3 THEN a -> 4 GUARANTEE k = 3"
    )
    whole = Town(people, terms=replace_terms(LOCAL, local=False)).ask(asked)
    assert whole is not None
    assert [(r["a"], r["b"], r["n"]) for r in whole[0].rows.to_pylist()] == [("[0, 4)", "*", 7)]
    found = Town(people, terms=LOCAL).ask(asked)
    assert found is not None
    # Three x and three y keep b; z alone does not, so the smaller or first of the two stays too.
    rows = sorted((r["a"], r["b"], r["n"]) for r in found[0].rows.to_pylist())
    assert rows == [("[0, 4)", "*", 4), ("[0, 4)", "y", 3)]
    steps = [level["step"] for level in found[0].document["levels"]]
    assert "a -> 4, b finer" in steps


def replace_terms(terms: Terms, **changes: Any) -> Terms:
    import msgspec

    return msgspec.structs.replace(terms, **changes)


def test_local_recoding_is_the_rule_that_plain_python_follows() -> None:
    """Several hundred towns at once: the number of the town is never generalized."""
    random = np.random.default_rng(18)
    commons = commons_from({"tables": {"people": {"columns": {
        "town": {"type": "integer", "role": "quasi"},
        "a": {"type": "integer", "role": "quasi"},
        "b": {"type": "text", "role": "quasi", "values": ["x", "y", "z"]},
        "s": {"type": "integer", "role": "sensitive"},
    }}}})  # fmt: skip
    towns = [drawn(random, int(random.integers(1, 70))) for _ in range(300)]
    rows = [{**person, "town": i} for i, town in enumerate(towns) for person in town]
    table = pa.Table.from_pylist(rows)
    made = plan_for_cells(commons, text("town, a, b"), LOCAL)
    (records,) = contributions(made, table, "people")
    done = answer_cells(made, combine_records(made.layout, records))
    answer, told = done.to_arrow().to_pylist(), done.to_dict()
    chained = plan_for_cells(commons, text("town, a, b"))
    plain = answer_cells(chained, combine_records(chained.layout, records)).to_arrow().to_pylist()
    assert sum(r["n"] for r in answer) == sum(r["n"] for r in plain)
    levels = {level["level"]: level["step"] for level in told["levels"]}
    assert sum("finer" in levels[r["level"]] for r in answer) > 40
    by_town: dict[int, list[dict[str, Any]]] = {}
    for one in answer:
        by_town.setdefault(int(one["town"]), []).append(one)
    for i, town in enumerate(towns):
        assert shown(by_town.get(i, [])) == sorted(expected(town)), i


@pytest.mark.parametrize("merge", ["tree", "network"])
def test_cells_recode_locally_what_plain_python_does(merge: Any) -> None:
    people = drawn(np.random.default_rng(5), 30)
    found = Town(people, terms=Terms(merge, 4, 4, 64, local=True)).ask(text())
    assert found is not None
    assert shown(found[0].rows.to_pylist()) == sorted(expected(people))
    assert found[0].rows.num_rows > 1


def test_groups_of_cells_recode_by_themselves_and_are_added_up_by_what_they_show() -> None:
    people = drawn(np.random.default_rng(6), 50)
    town = Town(people, terms=LOCAL, groups=2)
    found = town.ask(text())
    assert found is not None
    assert len(found) == 2
    whole, reason = town.asker.join_answers(text(), found)
    assert reason == ""
    assert whole is not None
    counted: dict[Any, int] = {}
    for half in (people[::2], people[1::2]):  # everybody's group of cells follows from the number
        for a, b, n, level in expected(half):
            counted[a, b, level] = counted.get((a, b, level), 0) + n
    assert shown(whole.to_pylist()) == sorted((a, b, n, j) for (a, b, j), n in counted.items())
    assert "level" not in whole.column_names  # each group of cells numbers its own


def test_the_door_does_not_let_a_group_leave_finer_in_any_column(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(door, "seal", lambda candidate: seen.append(candidate) or real(candidate))
    table = pa.Table.from_pylist(drawn(np.random.default_rng(3), 60))
    made = plan_for_cells(COMMONS, text(), LOCAL)
    (records,) = contributions(made, table, "people")
    answer_cells(made, combine_records(made.layout, records))
    (candidate,) = seen
    first, second = candidate.request.keys
    # One level shows the first column as it is, though people in it generalized it themselves.
    place, level = candidate.groups["place"].to_numpy(), candidate.groups["level"].to_numpy()
    coarse = np.array(first.depths)[level] > 0
    shown_at = np.where(place < 0, -1, candidate.places[np.maximum(place, 0)])
    at = int(shown_at[coarse & (shown_at > level)][0])
    depths = tuple(0 if i == at else depth for i, depth in enumerate(first.depths))
    broken = replace(candidate.request, keys=(replace(first, depths=depths), second))
    with pytest.raises(InternalError, match="finer"):
        real(replace(candidate, request=broken))


door = import_module("halfmask.release.seal")
real = door.seal

# -- noise


LISTED = commons_from({"tables": {"people": {"columns": {
    "b": {"role": "quasi", "values": ["x", "y", "z"]},
    "s": {"type": "integer", "role": "sensitive"},
}}}})  # fmt: skip
COUNT = "SELECT b, COUNT(*) AS n FROM people GROUP BY b GUARANTEE k = 5"
NOISY = Terms(partition=64, frame=64, room=64, epsilon=1.0)
MADE = plan_for_cells(LISTED, COUNT, NOISY)


def noisy_town(epsilons: list[float | None], terms: Terms = NOISY, budget: float = 100.0) -> Town:
    people = [{"b": "x", "s": i, "k": 1} for i in range(len(epsilons))]
    town = Town(people, LISTED, terms)
    for cell, epsilon in zip(town.cells, epsilons, strict=True):
        assert isinstance(cell.home, MemoryCellStore)
        cell.home.demands = Policy(1, epsilon=epsilon, budget=budget)
    return town


def counted(counts: list[int]) -> Any:
    """Groups of so many people without a value, and with x, y, z."""
    found = np.zeros(4, MADE.layout.dtype)
    found["key"] = [bytes([1, 0, 1]), *(bytes([1, 0, 0, i]) for i in range(3))]
    found["rows"] = MADE.layout.people(found)[:] = counts
    return found[found["rows"] > 0]


def test_every_possible_group_gets_the_stated_noise() -> None:
    sampler, times = repeatable(7), 2000 if THOROUGH else 700
    # Arrays of bytes leave zeros at the end away.
    true = {bytes([1, 0, 1]): 40, bytes([1]): 50, bytes([1, 0, 0, 2]): 0}
    told: dict[bytes, list[int]] = {key: [] for key in true}
    for _ in range(times):
        found = add_noise(MADE.layout, counted([40, 50, 0, 0]), 1.0, sampler)
        seen = dict(zip(found["key"].tolist(), found["rows"].tolist(), strict=True))
        assert (found["rows"] == MADE.layout.people(found)).all()
        for key in true:
            told[key].append(seen.get(key, 0))
    variance = 2 * math.exp(-1) / (1 - math.exp(-1)) ** 2
    for key in list(true)[:2]:
        mean, spread = np.mean(told[key]), np.var(told[key])
        assert abs(mean - true[key]) < 5 * math.sqrt(variance / times)
        assert 0.8 * variance < spread < 1.25 * variance
    # Whoever sees a group cannot tell that anybody stands in it: P(noise > 0) = a / (1 + a).
    share = np.mean(np.array(told[bytes([1, 0, 0, 2])]) > 0)
    assert abs(share - math.exp(-1) / (1 + math.exp(-1))) < 5 * math.sqrt(0.2 / times)


def test_a_group_that_there_cannot_be_is_not_counted() -> None:
    found = counted([0, 50, 0, 0])
    odd = found.copy()
    odd["key"] = bytes([1, 0, 0, 9])
    noisy = add_noise(MADE.layout, np.concatenate((found, odd)), 20.0, repeatable(1))
    assert noisy["key"].tolist() == [bytes([1])]


def test_whose_epsilon_is_less_takes_part_by_chance_and_pays_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    person = {"people": row(LISTED, {"b": "x", "s": 1})}
    sampler = repeatable(11)
    monkeypatch.setattr(contributing, "Sampler", lambda: sampler)
    given = [contribution(MADE, person, Policy(1, epsilon=0.4)) for _ in range(400)]
    chance = (math.exp(0.4) - 1) / (math.exp(1) - 1)
    kept = sum(one.level is not None for one in given)
    assert abs(kept / 400 - chance) < 5 * math.sqrt(chance * (1 - chance) / 400)
    assert {one.epsilon for one in given} == {0.4}
    assert {one.reason for one in given} == {"contributed", "left out by chance"}
    assert len({len(one.record) for one in given}) == 1
    free = contribution(MADE, person, Policy(1, epsilon=3.0))
    assert (free.level, free.epsilon) == (0, 1.0)
    silent = contribution(MADE, person, Policy(1))
    assert (silent.level, silent.reason, silent.epsilon) == (None, "no epsilon", 0.0)


def test_cells_count_under_noise_and_keep_to_their_budgets() -> None:
    town = noisy_town([2.0] * 60, budget=2.0)
    answers = []
    for _ in range(3):
        found = town.ask(COUNT)
        assert found is not None
        answers.append({r["b"]: r["n"] for r in found[0].rows.to_pylist()})
        notes = " ".join(found[0].document["notes"])
        # P(|noise| > 3) = 2 a^4 / (1 + a) = 0.027 and P(|noise| > 2) = 0.073, where a = 1 / e.
        assert "discrete Laplace noise of epsilon = 1 (scale 1), at most 3 up or down" in notes
        assert "noisy count: fewer people may be in it, or nobody" in notes
        # Nothing beside the rows tells how many there really were.
        assert found[0].document["people"] == sum(answers[-1].values())
    assert all(abs(one["x"] - 60) < 25 for one in answers[:2])
    assert answers[2].get("x", 0) < 25  # everybody has spent twice 1
    home = town.cells[0].home
    assert home is not None
    assert [(e.outcome, e.epsilon) for e in home.log()] == [
        ("contributed", 1.0), ("contributed", 1.0), ("the budget is spent", 0.0),
    ]  # fmt: skip


def test_noise_cannot_be_averaged_away_by_doing_the_last_task_again() -> None:
    """A relay in league with the asker has the answer made by one cell after the other."""
    terms = replace_terms(NOISY, epsilon=0.05)
    town = noisy_town([1.0] * 40, terms)
    tries: list[list[bytes]] = []

    def greedy(data: bytes) -> bytes:
        request = read_request(data)
        if isinstance(request, Deliver) and len(request.frames[0]) > 1 << 16 and len(tries) < 4:
            tries.append(request.frames)
            return encode_message(Late())
        return town.raw(data)

    town.send = greedy
    question = town.question(COUNT)
    town.gather(question)
    for _ in range(5):
        town.work()
        town.clock += 31
        town.cells = town.cells[1:] + town.cells[:1]
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    assert len(tries) == 4
    every = [town.asker._read(question, 0, b"".join(frames)) for frames in tries] + [found[0]]
    assert len({str(sorted(map(str, one.rows.to_pylist()))) for one in every}) == 1


def test_another_question_and_another_closing_draw_other_noise() -> None:
    one, same, other = (keyed_sampler(bytes([i]) * 32).words(4).tolist() for i in (1, 1, 2))
    assert one == same != other
    sampler = keyed_sampler(bytes(32))
    assert sampler.words(4).tolist() != sampler.words(4).tolist()
    assert not sampler.secure


def test_who_meets_a_condition_is_hidden_by_noise_too() -> None:
    people = {"people": row(LISTED, {"b": "x", "s": 1})}
    asked = COUNT.replace("GROUP", "WHERE s > 3 GROUP")
    made = plan_for_cells(LISTED, asked, NOISY)
    outside = contribution(made, people, Policy(1, epsilon=1.0))
    inside = contribution(made, {"people": row(LISTED, {"b": "x", "s": 4})}, Policy(1, epsilon=1.0))
    assert (outside.level, inside.level) == (None, 0)
    assert len(outside.record) == len(inside.record)


@pytest.mark.parametrize(("asked", "terms"), [
    ("SELECT b, SUM(s) AS t FROM people GROUP BY b GUARANTEE k = 5", NOISY),
    ("SELECT s, COUNT(*) AS n FROM people GROUP BY s GUARANTEE k = 5", NOISY),
    ("SELECT b, COUNT(*) AS n FROM people GROUP BY b GUARANTEE k = 5 "
     "THEN b -> del GUARANTEE k = 6", NOISY),
    (COUNT, replace_terms(NOISY, room=3)),
])  # fmt: skip
def test_questions_that_noise_at_filtering_does_not_suit(asked: str, terms: Terms) -> None:
    with pytest.raises(UnsupportedQueryError):
        plan_for_cells(LISTED, asked, terms)


@pytest.mark.parametrize("changes", [
    {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": math.inf}, {"epsilon": 20.5},
    {"epsilon": 1e-9}, {"noise": True}, {"local": True}, {"release": "mondrian"},
    {"epsilon": 0.0, "release": "k-member"}, {"epsilon": 0.0, "local": True, "release": "mdav"},
])  # fmt: skip
def test_terms_that_exclude_each_other_or_are_out_of_range(changes: dict[str, Any]) -> None:
    with pytest.raises(MessageError):
        replace_terms(NOISY, **changes).check()
    town = noisy_town([1.0])
    town.asker = replace(town.asker, terms=replace_terms(NOISY, **changes))
    with pytest.raises(MessageError):
        town.asker.question(COUNT, NOW, cells=1)
