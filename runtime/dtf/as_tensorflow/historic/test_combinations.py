"""tensorflow.python.framework.combinations: tests that run once for each combination of arguments.

A combination whose mode is "eager" is skipped: there are only graphs.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any

from absl.testing import parameterized

from dtf.build.graph import Graph

__all__ = [
    "NamedObject", "OptionalParameter", "ParameterModifier", "TestCombination", "combine", "generate",
    "in_main_process", "keyword", "times",
]  # fmt: skip


class TestCombination:
    """A base class for those that choose among combinations; none is asked here."""

    __test__ = False


class ParameterModifier:
    """A base class for those that change arguments; none is asked here."""

    def __init__(self, parameter_name: str | None = None) -> None:
        self._parameter_name = parameter_name


class OptionalParameter(ParameterModifier):
    """An argument that a test need not take."""


class NamedObject:
    """An object with a name for tests' names."""

    def __init__(self, name: str, obj: Any) -> None:
        self._name, self._obj = name, obj

    def __getattr__(self, name: str) -> Any:
        return getattr(self._obj, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._obj(*args, **kwargs)

    def __iter__(self) -> Any:
        return iter(self._obj)

    def __repr__(self) -> str:
        return self._name


def combine(**kwargs: Any) -> list[dict[str, Any]]:
    """All combinations of the arguments' values; an argument is a list of values or one value.

    >>> combine(a=[1, 2], b="x")
    [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    names = sorted(kwargs)
    columns = [each if isinstance(each, list) else [each] for each in (kwargs[name] for name in names)]
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*columns)]


def times(*combined: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All pairs of combinations.

    Raises:
      ValueError: two of them have an argument in common.
    """
    result: list[dict[str, Any]] = [{}]
    for several in combined:
        joined = []
        for first, second in itertools.product(result, several):
            if set(first) & set(second):
                raise ValueError(f"combinations have arguments in common: {sorted(set(first) & set(second))}")
            joined.append({**first, **second})
        result = joined
    return result


def keyword(name: str, value: Any) -> dict[str, Any]:
    """One argument."""
    return {name: value}


def in_main_process() -> bool:
    """True."""
    return True


def generate(combinations: list[dict[str, Any]], test_combinations: Any = ()) -> Callable[[Any], Any]:
    """A decorator: the test, or each test of the class, runs once for each combination."""

    def decorate(decorated: Any) -> Any:
        if inspect.isclass(decorated):
            for name, value in list(vars(decorated).items()):
                if name.startswith("test") and callable(value):
                    setattr(decorated, name, decorate(value))
            return parameterized_class(decorated)
        cases = [{"testcase_name": _name(each, number), **each} for number, each in enumerate(combinations)]
        return parameterized.named_parameters(*cases)(_in_graph(decorated))

    return decorate


def parameterized_class(cls: type) -> type:
    """The class, whose parameterized tests are found."""
    return type(cls)(cls.__name__, (cls,), {"__module__": cls.__module__})


def _name(combination: dict[str, Any], number: int) -> str:
    parts = [f"{name}_{combination[name]}" for name in sorted(combination)]
    text = "".join(letter if letter.isalnum() else "_" for letter in "_".join(parts))
    return f"_test_{number}_{text[:60]}"


def _in_graph(test: Callable[..., None]) -> Callable[..., None]:
    wanted = set(inspect.signature(test).parameters)

    @functools.wraps(test)
    def run(self: Any, **arguments: Any) -> None:
        if arguments.get("mode") == "eager" or arguments.get("tf_api_version") == 2:
            self.skipTest("dtf has only graphs")
        with Graph().as_default():
            test(self, **{name: value for name, value in arguments.items() if name in wanted})

    return run
