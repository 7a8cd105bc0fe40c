"""A scikit-learn transformer that generalizes quasi-identifiers as a release does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import EngineUnavailableError, InputError, ParameterError

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError:
    raise EngineUnavailableError("scikit-learn", "pip install 'halfmask[measures]'") from None

from halfmask.anonymize.run import anonymize
from halfmask.engines.read import read
from halfmask.models.verdict import Model
from halfmask.release.seal import published_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from halfmask.table.table import Table

_NEW_ROWS = ("check", "recode")


class Anonymizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Learn one level per quasi-identifier from some rows, and generalize others alike.

    ``fit`` runs ``anonymize(method="optimal")`` without leaving rows out; ``transform`` keeps the
    order of the rows, generalizes the quasi-identifiers, drops what does not leave (identifiers,
    the person, policies) and gives back the kind of frame that came in. Of pandas, only an index
    that counts rows (``RangeIndex``) comes back: any other may hold who they are.

    Args:
        models: the promises, one or several, as ``KAnonymity(5)``; none: people's own demands.
        schema: as for ``halfmask.read``.
        metric: what to minimize, as for ``anonymize``.
        time_limit: seconds for the search.
        demands: ``"ignore"`` sets people's own demands aside.
        new_rows: ``"check"``: promises and demands must hold on the rows given to ``transform``
            themselves, as with ``recode``, else it refuses; ``"recode"``: they are generalized and
            nothing is promised of them, for rows that do not leave (a model's test rows).

    Attributes:
        recoding_: how rows are generalized; ``recoding_.save`` keeps it for ``halfmask recode``.
        feature_names_in_: the columns that ``fit`` saw.
    """

    def __init__(
        self,
        models: Model | Sequence[Model] = (),
        schema: Any = None,
        *,
        metric: Any = None,
        time_limit: float | None = None,
        demands: str = "keep",
        new_rows: str = "check",
    ) -> None:
        self.models, self.schema, self.metric = models, schema, metric
        self.time_limit, self.demands, self.new_rows = time_limit, demands, new_rows

    def fit(self, X: Any, y: object = None) -> Anonymizer:  # noqa: ARG002, N803 - as scikit-learn
        """Find the levels that lose least."""
        if self.new_rows not in _NEW_ROWS:
            raise ParameterError("new_rows", self.new_rows, f"one of {', '.join(_NEW_ROWS)}")
        table = read(X, self.schema)
        settings: dict[str, Any] = {"metric": self.metric, "time_limit": self.time_limit}
        settings |= {"demands": self.demands}
        release = anonymize(table, *self._promises, method="optimal", **settings)
        self.recoding_: Any = release.recoding
        self.feature_names_in_ = np.array(table.column_names, dtype=object)
        self.n_features_in_ = len(table.column_names)
        self._out = list(published_columns(table))
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """Generalize rows, in their order."""
        check_is_fitted(self, "recoding_")
        table = read(X, self.schema)
        given, wanted = list(table.column_names), self.feature_names_in_.tolist()
        if given != wanted:
            apart = sorted({*given} ^ {*wanted})
            what = f"not in both: {', '.join(apart)}" if apart else "in another order"
            raise InputError(f"transform needs the columns that fit saw ({what}).")
        if self.new_rows == "check":
            self.recoding_.apply(table, *self._promises, demands=self.demands)
        return _as_given(self._recoded(table), X)

    def get_feature_names_out(self, input_features: object = None) -> Any:  # noqa: ARG002
        """The columns that ``transform`` gives."""
        check_is_fitted(self, "recoding_")
        return np.array(self._out, dtype=object)

    @property
    def _promises(self) -> tuple[Model, ...]:
        return (self.models,) if isinstance(self.models, Model) else tuple(self.models)

    def _recoded(self, table: Table) -> pa.Table:
        labels = self.recoding_.published(table, np.zeros(len(table), dtype=np.int32))
        rows = table.arrow.select(self._out)
        for place, name in enumerate(self._out):
            if name in labels.column_names:
                rows = rows.set_column(place, name, labels[name])
        return rows


def _as_given(rows: pa.Table, frame: Any) -> Any:
    """Rows as the kind of frame that came in."""
    kind = type(frame).__module__.split(".")[0]
    if kind == "pandas":
        import pandas

        found = rows.to_pandas()
        counts = isinstance(frame.index, pandas.RangeIndex)
        return found.set_axis(frame.index.rename(None), axis=0) if counts else found
    if kind == "polars":
        import polars

        return polars.from_arrow(rows)
    return rows
