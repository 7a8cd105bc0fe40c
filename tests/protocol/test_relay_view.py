"""All that the relay ever sees: no value in it, and the same for any two populations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from tests.protocol.town import Town

from halfmask.protocol.common_schema import MERGES, Terms
from halfmask.protocol.crypto import FrameKey
from halfmask.protocol.messages import Contribute, Deliver, read_reply, read_request

if TYPE_CHECKING:
    from collections.abc import Callable

TEXT = (
    "SELECT b, COUNT(*) AS n, SUM(s) AS total FROM people WHERE s >= 0 GROUP BY b GUARANTEE k = 2"
)
SIZE = 9
EQUAL = [{"a": 1, "b": "x", "s": 5, "k": 1} for _ in range(SIZE)]
VARIED = [{"a": i, "b": "xyz"[i % 3], "s": i, "k": 1} for i in range(SIZE)]
REFUSING = [{"a": i, "b": "x", "s": -1, "k": None} for i in range(SIZE)]
Transcript = list[tuple[bytes, bytes]]


def transcript(people: list[dict[str, Any]], terms: Terms) -> Transcript:
    """Every byte into and out of the relay, in order."""
    return Town(people, terms=terms).transcript(TEXT)


def shape(seen: Transcript) -> list[tuple[str, int, str, int]]:
    """What the relay can see without looking into ciphertexts: kinds and lengths, in order."""
    return [
        (type(read_request(q)).__name__, len(q), type(read_reply(a)).__name__, len(a))
        for q, a in seen
    ]


def frames(seen: Transcript) -> list[bytes]:
    found = []
    for data, _ in seen:
        request = read_request(data)
        if isinstance(request, Contribute):
            found.append(request.frame)
        elif isinstance(request, Deliver):
            found += request.frames
    return found


def features(seen: Transcript) -> dict[str, float]:
    """What a curious relay might measure."""
    every = frames(seen)
    whole = b"".join(every)
    counts = [whole.count(bytes([v])) for v in range(256)]
    mean = len(whole) / 256
    blocks = [f[i : i + 16] for f in every for i in range(0, len(f) - 15, 16)]
    return {
        "sizes": float(sum(map(len, every))),
        "kinds of sizes": float(len({len(f) for f in every})),
        "messages": float(len(seen)),
        "bytes": sum((c - mean) ** 2 / mean for c in counts),
        "repeated blocks": float(len(blocks) - len(set(blocks))),
        "repeated frames": float(len(every) - len(set(every))),
    }


def advantage(one: list[float], two: list[float]) -> float:
    """How much better than guessing a threshold does that was chosen on the other half."""
    half = len(one) // 2
    cut = (sum(one[:half]) + sum(two[:half])) / (2 * half)
    above = sum(one[:half]) > sum(two[:half])
    right = sum((v > cut) == above for v in one[half:]) + sum(
        (v > cut) != above for v in two[half:]
    )
    return abs(right / (2 * (len(one) - half)) - 0.5)


def distinguishes(one: list[Transcript], two: list[Transcript]) -> list[str]:
    ones, twos = [features(t) for t in one], [features(t) for t in two]
    tests = 2 * (len(one) - len(one) // 2)
    # Fewer than one in ten thousand for guessing, over all features.
    limit = math.sqrt(math.log(2 * len(ones[0]) * 10_000) / (2 * tests))
    return [
        name
        for name in ones[0]
        if advantage([f[name] for f in ones], [f[name] for f in twos]) > min(limit, 0.499)
    ]


@pytest.mark.parametrize("merge", MERGES)
def test_kinds_lengths_and_order_of_messages_do_not_depend_on_data(merge: Any) -> None:
    terms = Terms(merge, 4, 4, 16)
    shapes = [shape(transcript(p, terms)) for p in (EQUAL, VARIED, REFUSING)]
    assert shapes[0] == shapes[1] == shapes[2]


def test_no_value_is_ever_seen() -> None:
    people = [{"a": 10**12 + i, "b": "z", "s": 777_000_111_222 + i, "k": 1} for i in range(SIZE)]
    people[0]["b"] = "canary-street"  # outside the common values: becomes a dummy
    seen = transcript(people, Terms("tree", 4, 4, 16))
    whole = b"".join(q + a for q, a in seen)
    for person in people:
        for number in (person["a"], person["s"]):
            for size in (5, 6, 8):
                assert number.to_bytes(size, "little") not in whole
                assert number.to_bytes(size, "big") not in whole
            assert str(number).encode() not in whole
    assert b"canary-street" not in whole


def runs(people: list[dict[str, Any]], count: int) -> list[Transcript]:
    return [transcript(people, Terms("tree", 4, 4, 16)) for _ in range(count)]


def test_a_distinguisher_does_no_better_than_guessing() -> None:
    assert distinguishes(runs(EQUAL, 24), runs(REFUSING, 24)) == []


def leak_length(key: FrameKey, where: bytes, plain: bytes, nonce: bytes | None = None) -> bytes:
    sealed = SEAL(key, where, plain, nonce)
    return sealed if plain[0] != 255 else sealed[:-1]


def leak_equality(key: FrameKey, where: bytes, plain: bytes, nonce: bytes | None = None) -> bytes:
    return SEAL(key, b"", plain, bytes(12))


SEAL = FrameKey.seal


@pytest.mark.parametrize("leak", [leak_length, leak_equality], ids=lambda f: f.__name__)
def test_the_distinguisher_succeeds_on_a_leaky_variant(
    leak: Callable[..., bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def collected(people: list[dict[str, Any]]) -> Transcript:
        town = Town(people, terms=Terms("tree", 4, 4, 16))
        seen: Transcript = []

        def tapped(data: bytes) -> bytes:
            answer = town.raw(data)
            seen.append((data, answer))
            return answer

        town.send = tapped
        town.gather(town.question(TEXT))
        return seen

    monkeypatch.setattr(FrameKey, "seal", leak)
    one, two = [collected(EQUAL) for _ in range(24)], [collected(VARIED) for _ in range(24)]
    if leak is leak_length:
        two = [collected(REFUSING) for _ in range(24)]
    assert distinguishes(one, two) != []
