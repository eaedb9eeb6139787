"""The state of Keras's optimizers as their files have it: the number of steps, then the slots, optimizer by optimizer.

Owns the order of the arrays of `optimizer_weights`, and the variables that follow from the number of steps, such as
powers of beta. Optimizers of tf.train have no form in these files.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/models/save_model
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.variables import Variable
from dtf.keras import optimizers

__all__ = ["follows", "kept"]

# By optimizer: pairs (the slot here, its name in files), and whether the file goes variable by variable.
_SLOTS: dict[str, tuple[list[tuple[str, str]], bool]] = {
    "SGD": ([("momentum", "momentum")], False),
    "Adam": ([("m", "m"), ("v", "v")], False),
    "Adamax": ([("m", "m"), ("v", "v")], False),
    "Nadam": ([("m", "m"), ("v", "v")], False),
    "RMSprop": ([("rms", "rms"), ("momentum", "momentum"), ("mg", "mg")], False),
    "Adagrad": ([("accumulator", "accumulator")], False),
    "Adadelta": ([("accum", "accum_grad"), ("accum_update", "accum_var")], False),
    "Ftrl": ([("accum", "accumulator"), ("linear", "linear")], True),
}


def kept(optimizer: Any, variables: Sequence[Any]) -> list[tuple[str, Variable]]:
    """Names and variables of an optimizer's state, in the order of Keras's files, in the default graph.

    Args:
      variables: those that it trains, in the order of the model.

    Returns:
      An empty list for an optimizer of tf.train, or of a program's own class.
    """
    kind = next((each.__name__ for each in type(optimizer).__mro__ if _is_own(each)), None)
    if kind is None:
        return []
    _, counter, inner = optimizer._here()
    name = f"training/{optimizer._name}"
    found = [(f"{name}/iter", counter)]
    if kind == "Nadam":
        found.append((f"{name}/momentum_cache", inner._product))
    slots, by_variable = _SLOTS[kind]
    places = [(var, slot) for var in variables for slot in slots] if by_variable else [
        (var, slot) for slot in slots for var in variables
    ]  # fmt: skip
    for var, (slot, title) in places:
        variable = inner.get_slot(var, slot)
        if variable is not None:
            found.append((f"{name}/{var.op.name}/{title}", variable))
    return found


def follows(optimizer: Any, steps: int) -> list[tuple[Variable, float]]:
    """Variables that files do not have, with their values after a number of steps."""
    _, _, inner = optimizer._here()
    if isinstance(optimizer, optimizers.Adam):
        first, second = inner._get_beta_accumulators()
        return [(first, optimizer.beta_1 ** (steps + 1)), (second, optimizer.beta_2 ** (steps + 1))]
    if isinstance(optimizer, optimizers.Adamax | optimizers.Nadam):
        return [(inner._count, float(steps))]
    return []


def _is_own(kind: type) -> bool:
    return kind.__name__ in _SLOTS and kind.__module__ == optimizers.__name__
