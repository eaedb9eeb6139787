"""tf.contrib.estimator: early stopping, added metrics and hooks of Estimators under their first names."""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf import late

_PLACES = (tf.estimator, tf.estimator.experimental)


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [each for each in __dir__() if late.is_public(each, __getattr__(each))]
    for place in _PLACES:
        if not name.startswith("_") and hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"module 'dtf.contrib.estimator' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({name for place in _PLACES for name in dir(place) if not name.startswith("_")})
