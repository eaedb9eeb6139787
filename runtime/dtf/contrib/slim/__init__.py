"""tf.contrib.slim: layers with scoped arguments, losses, training and evaluation loops, and some networks.

Only re-exports names; each part is imported at first use.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/slim (its README)
"""

from __future__ import annotations

import importlib
from typing import Any

from dtf import late

_PARTS = {
    "evaluation": "dtf.contrib.slim.evaluation",
    "layers": "dtf.contrib.layers",
    "learning": "dtf.contrib.slim.learning",
    "losses": "dtf.contrib.losses",
    "metrics": "dtf.contrib.metrics",
    "model_analyzer": "dtf.contrib.slim.model_analyzer",
    "nets": "dtf.contrib.slim.nets",
    "prefetch_queue": "dtf.contrib.slim.prefetch_queue",
    "queues": "dtf.contrib.slim.queues",
    "regularizers": "dtf.contrib.layers",
    "initializers": "dtf.contrib.layers",
    "summaries": "dtf.contrib.slim.summaries",
    "utils": "dtf.contrib.collecting",
    "variables": "dtf.contrib.framework",
    "dataset": "dtf.contrib.slim.dataset",
    "dataset_data_provider": "dtf.contrib.slim.dataset",
    "tfexample_decoder": "dtf.contrib.slim.tfexample_decoder",
}
_FIRST = ("layers", "variables", "utils")
"""Their names are slim's own too."""

_find, _own_names = late.names(globals(), {}, _PARTS)


def __dir__() -> list[str]:
    parts = [importlib.import_module(_PARTS[part]) for part in _FIRST]
    return sorted({*_own_names()}.union(*(late.public_names(part) for part in parts)))


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [each for each in __dir__() if late.is_public(each, __getattr__(each))]
    try:
        return _find(name)
    except AttributeError:
        for part in _FIRST:
            found = getattr(importlib.import_module(_PARTS[part]), name, None)
            if found is not None and not name.startswith("_"):
                globals()[name] = found
                return found
        raise
