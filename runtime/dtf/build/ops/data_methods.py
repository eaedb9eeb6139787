"""Methods of `Dataset` that later releases of TensorFlow have, made of transformations of `tf.data.experimental`.

Owns how a method finds its function: by the name of a module, imported when the method is first used, since those
modules are made of datasets themselves.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

__all__ = ["Maker", "Transformation"]


class Transformation:
    """A method `dataset.name(*args)` that is `dataset.apply(function(*args))`."""

    def __init__(self, module: str, function: str = "") -> None:
        self._module, self._function = module, function

    def __set_name__(self, owner: type, name: str) -> None:
        self._function = self._function or name

    def __get__(self, dataset: Any, owner: type) -> Any:
        function = getattr(importlib.import_module(self._module), self._function)

        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("name", None)
            of, given = (args[0], args[1:]) if dataset is None else (dataset, args)
            return of.apply(function(*given, **kwargs))

        return method


class Maker(Transformation):
    """A function `Dataset.name(*args)`, or of a dataset: `dataset.name()` is `function(dataset)`.

    Args:
      module: where the function is.
      function: its name there; the name of the method by default.
      takes_dataset: whether the dataset is the function's first argument.
    """

    def __init__(self, module: str, function: str = "", takes_dataset: bool = False) -> None:
        super().__init__(module, function)
        self._takes_dataset = takes_dataset

    def __get__(self, dataset: Any, owner: type) -> Any:
        function = getattr(importlib.import_module(self._module), self._function)

        @functools.wraps(function)
        def method(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("name", None)
            own = (dataset,) if self._takes_dataset and dataset is not None else ()
            return function(*own, *args, **kwargs)

        return method
