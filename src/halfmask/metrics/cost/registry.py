"""The metrics by the names that ``metric=`` takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.errors import ParameterError
from halfmask.metrics.cost.ambiguity import Ambiguity
from halfmask.metrics.cost.average_class_size import AverageClassSize
from halfmask.metrics.cost.discernibility import Discernibility
from halfmask.metrics.cost.entropy import NonUniformEntropy
from halfmask.metrics.cost.height import Height
from halfmask.metrics.cost.kl import KullbackLeibler
from halfmask.metrics.cost.loss import Loss
from halfmask.metrics.cost.precision import Precision

if TYPE_CHECKING:
    from halfmask.metrics.cost.metric import Metric

METRICS: dict[str, Metric] = {
    "loss": Loss(),
    "mean-loss": Loss("arithmetic"),
    "precision": Precision(),
    "height": Height(),
    "entropy": NonUniformEntropy(),
    "discernibility": Discernibility(),
    "average-class-size": AverageClassSize(),
    "ambiguity": Ambiguity(),
    "kl": KullbackLeibler(),
}


def metric_named(name: str) -> Metric:
    """Return the metric called ``name``."""
    if name not in METRICS:
        raise ParameterError("metric", name, "one of " + ", ".join(METRICS))
    return METRICS[name]
