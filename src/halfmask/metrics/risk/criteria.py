"""The three criteria of the data protection authorities, tried on a release.

Every verb that judges rows beside their original asks here, so that a criterion has one attacker
and one figure: the door of synthetic rows, and ``compare``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.metrics.estimate import exact_estimate
from halfmask.metrics.risk.attack import LIMIT, doubts, judge_attack
from halfmask.metrics.risk.differencing import singling_out_together
from halfmask.metrics.risk.inference import inference
from halfmask.metrics.risk.linkability import linkability, linkability_by_names
from halfmask.metrics.risk.reidentification import CLASSES
from halfmask.metrics.risk.singling_out import same_people, singling_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.metrics.risk.attack import AttackOutcome, Doubts, Targets
    from halfmask.metrics.risk.differencing import Differencing
    from halfmask.metrics.risk.disclosure import Disclosure
    from halfmask.metrics.risk.linkage import Linkage
    from halfmask.metrics.sides import ReleasedRows, Sides
    from halfmask.table.classes import Classes
    from halfmask.table.tuples import Tuples


def doubts_about(
    paired: Sides, original: Tuples, release: ReleasedRows | Tuples, attacked: Targets
) -> Doubts:
    """What attacks on a release could not see, the control's people among it.

    Args:
        paired: the columns that were read or counted, on common ground.
        original: the whole of the original.
        release: the whole of the release.
        attacked: whom attacks are tried on.
    """
    seen = doubts(paired, original, release)
    return replace(seen, unseen=(*seen.unseen, *same_people(attacked)))


def try_criteria(
    attacked: Targets,
    seen: Doubts,
    linked: Linkage,
    together: Differencing | None = None,
    *,
    limit: float = LIMIT,
) -> tuple[AttackOutcome, ...]:
    """Try singling out, linkability and inference by what others may know of people.

    Args:
        attacked: whom attacks are tried on.
        seen: what they cannot see.
        linked: the linkage by names.
        together: what an earlier release tells beside this one.
        limit: the highest acceptable risk.
    """
    paired, controlled = attacked.sides, len(attacked.control) > 0
    # Without a sensitive column, one that others may know is guessed from the rest of them.
    secrets = paired.sensitive or paired.quasi[1:][-1:]
    return seen.judge(
        (
            singling_out(attacked, limit=limit),
            singling_out(attacked, known=False, limit=limit),
            *singling_out_together(together, controlled=controlled, limit=limit),
            linkability(attacked, limit=limit),
            *linkability_by_names(linked, attacked, limit=limit),
            *(inference(attacked, column.name, limit=limit) for column in secrets),
        )
    )


def class_criteria(
    classes: Classes,
    marketer: float,
    disclosures: Sequence[Disclosure],
    *,
    limit: float = LIMIT,
    controlled: bool = False,
) -> tuple[AttackOutcome, ...]:
    """The same three by the classes of the rows as they stand, counted on all of them.

    Definition: singling out is the share of rows that are alone in their class; linkability the
    mean chance to hit a person's row among those that fit (marketer); inference how often the
    likeliest value among the rows that fit is the right one, beside the likeliest of all.
    Source: as for re-identification and disclosure.

    Args:
        classes: rows with the same quasi-identifiers.
        marketer: the mean risk in them.
        disclosures: what they give away, per sensitive column.
        limit: the highest acceptable risk.
        controlled: whether other people are guessed too: what their classes would tell of them is
            not counted here, so that inference is left to the attack that tries it.
    """
    rows, people = int(classes.rows.sum()), int(classes.people.sum())
    alone = int(classes.rows[classes.people == 1].sum())
    nothing = exact_estimate(0.0, rows)
    out = [
        judge_attack(
            f"singling out, {CLASSES}",
            "The attacker looks for a combination of quasi-identifiers that fits one person only.",
            exact_estimate(alone / rows, rows),
            None,
            nothing,
            limit=limit,
        ),
        judge_attack(
            f"linkability, {CLASSES}",
            "The attacker has a file with names and the same quasi-identifiers, and joins each "
            "person to a row that fits.",
            exact_estimate(marketer, people),
            None,
            exact_estimate(1 / people, people),
            limit=limit,
        ),
    ]
    if controlled:  # nobody else has a row
        return tuple(replace(one, notes=()) for one in out)
    out += [
        judge_attack(
            f"inference, {CLASSES}",
            f"The attacker knows the quasi-identifiers of a person and guesses {one.column} "
            "as the likeliest value among the rows that fit.",
            exact_estimate(one.best_guess, rows),
            None,
            exact_estimate(one.prior_guess, rows),
            limit=limit,
            column=one.column,
        )
        for one in disclosures
    ]
    return tuple(out)


def try_wide_criteria(attacked: Targets, names: Sequence[str]) -> tuple[AttackOutcome, ...]:
    """Try the same on ``names``, each of which an attacker may know, and may guess from the others.

    Definition: as the criterion without "wide", whatever the roles of columns: a condition may name
    all columns, two files share all of them between them, and each is guessed from all others.
    Source: as the criterion; an attacker who knows more than the schema says.

    Args:
        attacked: whom attacks are tried on; all columns are quasi-identifiers.
        names: the columns.
    """
    out = [singling_out(attacked)]
    if len(names) > 1:
        out.append(linkability(attacked))
        out += [inference(attacked, name, [n for n in names if n != name]) for name in names]
    return tuple(replace(one, name=f"wide {one.name}") for one in out)
