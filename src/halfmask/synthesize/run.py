"""``synthesize``: from a table to a sealed synthetic table, by one of the methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from halfmask.errors import ParameterError
from halfmask.table.table import Table, require_table

if TYPE_CHECKING:
    from halfmask.dp.budget import Number
    from halfmask.release.release import PrivateRelease, SyntheticRelease

MEASURED = ("cocluster",)  # methods without a formal guarantee


def synthesize(
    table: Table,
    method: str = "auto",
    *,
    epsilon: Number | Literal["personal"] | None = None,
    **options: Any,
) -> PrivateRelease | SyntheticRelease:
    """A synthetic table, under differential privacy or with measured risk.

    Args:
        table: the rows, wherever they are. Where an engine counts them they stay there under
            differential privacy, unless people have several rows or state an own epsilon; for
            ``"cocluster"`` the columns that leave come over, as distinct tuples.
        method: under differential privacy ``"marginals"``, ``"adaptive"``, ``"histogram"``,
            ``"privbayes"``, ``"dp-cocluster"``, ``"dpcocgen"`` or ``"auto"`` (a public rule picks);
            ``"cocluster"`` draws from groups of at least ``k`` people and has no formal guarantee.
        epsilon: the privacy budget to spend, or ``"personal"`` (each person's own, from the
            schema's policy); needed by all methods but ``"cocluster"``.
        options: ``delta``, ``domains``, ``bounds`` (a share of epsilon that buys those that nobody
            declared), ``rows``, ``rows_per_person``, ``accountant`` and what the method itself
            takes; see ``docs/dp.md`` and ``docs/coclustering.md``.

    Raises:
        SchemaError: a column has no public domain.
        BudgetExceededError: the accountant has less than ``epsilon`` left.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"sex": ["f", "m"] * 50, "ill": ["no"] * 90 + ["yes"] * 10})
        >>> made = hm.synthesize(people, epsilon=1,
        ...     domains={"sex": ["f", "m"], "ill": ["no", "yes"]})
        >>> made.to_arrow().column_names
        ['sex', 'ill']
    """
    from halfmask.synthesize import cocluster  # loads when it is asked for
    from halfmask.synthesize.private import (
        NOISE_OPTIONS,
        PRIVATE,
        NoiseSettings,
        synthesize_privately,
    )

    if not isinstance(table, Table):
        table = require_table(table)
    if method in MEASURED:
        if epsilon is not None:
            raise ParameterError("epsilon", epsilon, f"nothing: {method} has no formal guarantee")
        unknown = [name for name in options if name not in cocluster.OPTIONS]
        if unknown and unknown[0] in NOISE_OPTIONS:
            raise ParameterError(
                "epsilon", None, f"a number above 0 (--epsilon): {unknown[0]} belongs to noise"
            )
        if unknown:
            known = ", ".join(cocluster.OPTIONS)
            raise ParameterError("option", unknown[0], f"one of {known} with {method}")
        return cocluster.synthesize_groups(table, cocluster.DrawSettings(**options))
    if method not in ("auto", *PRIVATE):
        raise ParameterError("method", method, f"one of auto, {', '.join([*PRIVATE, *MEASURED])}")
    if epsilon is None:
        raise ParameterError(
            "epsilon", None, "a number above 0, or method='cocluster', which promises nothing"
        )
    noise = {name: options.pop(name) for name in NOISE_OPTIONS if name in options}
    return synthesize_privately(table, method, NoiseSettings(epsilon, **noise), options)
