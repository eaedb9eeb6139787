"""How a table makes many cases of one expression."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator


def forms(template: str, **choices: Iterable[str]) -> Iterator[str]:
    """The template with each `{name}` replaced by each of its choices, all combinations.

        forms("tf.reduce_sum({x}, axis={axis})", x=["T([1, 2])", "P([1, 2])"], axis=["0", "[-1]"])
    """
    for combination in itertools.product(*(list(each) for each in choices.values())):
        yield template.format(**dict(zip(choices, combination, strict=True)))


def each(functions: str, template: str, **choices: Iterable[str]) -> Iterator[str]:
    """`forms` for every function of a list of names, as `{f}`."""
    return forms(template, f=functions.split(), **choices)


def inputs(value: str, dtype: str = "") -> list[str]:
    """One value in all forms of inputs: list, array, constant, and placeholders with and without rank."""
    kind = f", {dtype}" if dtype else ""
    return [value, f"np.array({value}{kind})", f"T({value}{kind})", f"Q({value}{kind})", f"P({value}{kind})"]


def tensors(value: str, dtype: str = "") -> list[str]:
    """One value as a constant, a placeholder of known rank, and one of unknown rank."""
    kind = f", {dtype}" if dtype else ""
    return [f"T({value}{kind})", f"Q({value}{kind})", f"P({value}{kind})"]
