"""What ``benchmarks/predict.py`` compares with: ways to predict that people use."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# from features and values of known rows and features of others to the values of those; the first
# column of the features is what the value is most likely to follow
Method = Callable[[Floats, Floats, Floats], Floats]
TREES = 50


def constant(_: Floats, values: Floats, features: Floats) -> Floats:
    """The median value for all."""
    return np.full(len(features), np.median(values))


def line(known: Floats, values: Floats, features: Floats) -> Floats:
    """The straight line over the first column with the least squares."""
    slope, start = np.polyfit(known[:, 0], values, 1)
    return start + slope * features[:, 0]


def forest(known: Floats, values: Floats, features: Floats) -> Floats:
    """A random forest on all columns."""
    from sklearn.ensemble import RandomForestRegressor

    both = [np.nan_to_num(part, nan=-1.0) for part in (known, features)]
    model = RandomForestRegressor(TREES, random_state=0).fit(both[0], values)
    predicted: Floats = model.predict(both[1])
    return predicted


def forest_is_installed() -> bool:
    """Whether scikit-learn is there."""
    return importlib.util.find_spec("sklearn") is not None


def methods() -> dict[str, Method]:
    """Those that can run here, by their name."""
    found: dict[str, Method] = {"constant ratio": constant, "log-linear": line}
    if forest_is_installed():
        found["random forest"] = forest
    return found
