"""How far distributions are from each other: `kl_divergence`, a table of formulas by two classes.

    @tf.distributions.RegisterKL(Mine, Yours)
    def _(mine, yours, name=None): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dtf.build.default_graph import name_scope
from dtf.build.tensor import Tensor

if TYPE_CHECKING:
    from dtf.distributions.base import Distribution

_Formula = Callable[..., Tensor]
_formulas: dict[tuple[type, type], _Formula] = {}


class RegisterKL:
    """Registers the decorated function as the divergence of two classes.

    Args:
      dist_cls_a: the class of the first distribution.
      dist_cls_b: the class of the second.
    """

    def __init__(self, dist_cls_a: type, dist_cls_b: type) -> None:
        self._key = (dist_cls_a, dist_cls_b)

    def __call__(self, kl_fn: _Formula) -> _Formula:
        """Adds the function to the table.

        Raises:
          TypeError: it cannot be called.
          ValueError: the classes have a formula already.
        """
        if not callable(kl_fn):
            raise TypeError(f"kl_fn must be callable, received: {kl_fn}")
        if self._key in _formulas:
            raise ValueError(f"KL({self._key[0].__name__} || {self._key[1].__name__}) has already been registered")
        _formulas[self._key] = kl_fn
        return kl_fn


def kl_divergence(
    distribution_a: Distribution, distribution_b: Distribution, allow_nan_stats: bool = True, name: str | None = None
) -> Tensor:
    """The divergence of Kullback and Leibler, the mean of log(a / b) under a.

    Args:
      distribution_a, distribution_b: distributions whose classes have a formula.
      allow_nan_stats: accepted; undefined divergences are NaN.
      name: the name scope.

    Returns:
      A Tensor of the batch shape of both.

    Raises:
      NotImplementedError: the classes have no formula.
    """
    del allow_nan_stats
    for first in type(distribution_a).__mro__:
        for second in type(distribution_b).__mro__:
            if (first, second) in _formulas:
                with name_scope("KullbackLeibler"):
                    return _formulas[first, second](distribution_a, distribution_b, name=name)
    raise NotImplementedError(
        f"No KL(distribution_a || distribution_b) registered for {type(distribution_a).__name__} and "
        f"{type(distribution_b).__name__}"
    )
