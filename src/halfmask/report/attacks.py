"""The known attacks on a release, one line each: who attacks, and how much is learned."""

from __future__ import annotations

from typing import Any

from halfmask.report.figures import percent

Line = dict[str, str]
_KNOWS = "knows the quasi-identifiers of a person"
_CLASSES = (
    ("homogeneity", "homogeneity", f"{_KNOWS}; all rows that fit hold one value",
     "rows whose value is certain"),
    ("background knowledge", "background",
     f"{_KNOWS}, and can rule out one value of the rows that fit",
     "rows whose value is then certain"),
    ("skewness", "skewness", f"{_KNOWS}; a value is likelier among the rows that fit",
     "largest gain of a value"),
    ("similarity", "similarity", f"{_KNOWS}; the values that fit differ but mean the same",
     "rows whose values mean the same"),
)  # fmt: skip
_LINKS = (
    ("distance", "by the nearest row"),
    ("assignment", "in the best matching of all"),
    ("probabilistic", "by where rows agree (Fellegi and Sunter)"),
)


def lines(document: dict[str, Any], write: Any) -> list[Line]:
    """Every attack with its attacker and its figure; ``write`` writes an estimate."""
    return [*_of_classes(document), *_of_links(document, write), *_of_making(document, write)]


def _of_classes(document: dict[str, Any]) -> list[Line]:
    out = []
    for one in document["disclosures"]:
        for name, key, attacker, meaning in _CLASSES:
            before, after = one["before"][key], one["after"][key]
            figure = "not known: nothing says which values are alike"
            if before is not None:
                hidden = after is None or document["made_up"]
                said = "not known" if hidden else percent(after)
                figure = f"{percent(before)} → {said}"
            out.append(_line(f"{name}: {one['before']['column']}", attacker, meaning, figure))
    return out


def _of_links(document: dict[str, Any], write: Any) -> list[Line]:
    found = document["linkage"]
    attacker = "has a file with names and the original quasi-identifiers, and matches it by row"
    if found["distance"]["value"] is None:
        return [_line("record linkage", attacker, "rows matched rightly", write(found["distance"]))]
    out = [
        _line(
            f"record linkage, {how}",
            attacker,
            f"rows matched rightly{_of(found[key])}. {found[key]['reason']}".strip(),
            write(found[key]),
        )
        for key, how in _LINKS
    ]
    if found["interval"]["value"] is not None:
        words = "takes each released number as the true one, give or take a tenth of the spread"
        right = f"numbers that are right{_of(found['interval'])}"
        out.append(_line("interval disclosure", words, right, write(found["interval"])))
    bands = found["bands"]
    said = (
        f"{bands['links']:,} links, {bands['correct_links']:,} of them right; "
        f"{bands['possible']:,} possible, {bands['correct_possible']:,} of them right"
    )
    out.append(_line("record linkage, with a person who decides", attacker, "pairs of rows", said))
    return out


def _of_making(document: dict[str, Any], write: Any) -> list[Line]:
    present, shared = document["membership"], document["membership"]["attribution"]
    out = [
        _line("membership", "knows a whole row and asks whether its person was in the original",
              f"right answers (50 % is guessing){_of(present['area'])}", write(present["area"])),
        _line("copies", "looks for rows of real people", "released rows that equal an original one",
              percent(shared["copies"])),
        _line("attribution", "knows everybody's row but one",
              "released rows that are left for this one", percent(shared["ratio"])),
        _line("minimality", "knows that the method loses as little as it can",
              "rows generalized more than their class size needs", write(document["minimality"])),
    ]  # fmt: skip
    both = document["differencing"]
    if both is None:
        said = "not measured: give the earlier release (--earlier), if there is one"
        return [*out, _line("differencing", "has an earlier release of the same people", "", said)]
    attacker = "has both releases, and keeps what fits a person in both"
    out.append(_line("differencing", attacker, "people left alone", write(both["alone"])))
    out.append(
        _line("differencing", attacker, "people in smaller classes than in either release",
              write(both["smaller"]))
    )  # fmt: skip
    return out + [
        _line(f"differencing: {one['column']}", attacker, "people whose value becomes certain",
              write(one["share"]))
        for one in both["disclosed"]
    ]  # fmt: skip


def _of(one: dict[str, Any]) -> str:
    """How many a figure rests on, where it was tried on some only."""
    return "" if one["value"] is None or one["low"] == one["high"] else f", n = {one['n']:,}"


def _line(attack: str, attacker: str, meaning: str, figure: str) -> Line:
    return {"attack": attack, "attacker": attacker, "meaning": meaning, "figure": figure}
