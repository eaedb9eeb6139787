"""`tf.custom_gradient`: a function whose gradient the program says itself.

Its results leave through an IdentityN that also takes the arguments. The reverse walk thus goes from the results to
the arguments by the given gradient alone, never into the function.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/custom_gradient
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from dtf.build import nest
from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.gradients import custom_gradients_of
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.tensor import Operation, Tensor
from dtf.build.variable_collections import global_variables, local_variables, trainable_variables
from dtf.build.variables import Variable

__all__ = ["custom_gradient"]


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `f`, with another gradient.

        @tf.custom_gradient
        def log1pexp(x):
            e = tf.exp(x)
            return tf.log(1 + e), lambda grad: grad * (1 - 1 / (1 + e))

    Args:
      f: from tensors (and keywords, which are not differentiated) to (results, function of one gradient for each
        result that returns one for each argument). If `f` uses variables the function takes `variables` too, a list
        of them, and returns (gradients for arguments, gradients for variables).

    Raises, when called:
      TypeError: `f` uses variables that are held by handle and its gradient function does not take `variables`.
      ValueError: the gradient function returns more or fewer gradients.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        arguments = [array_ops.identity(convert_to_tensor(each)) for each in nest.flatten(args)]
        results, backward = f(*nest.pack_sequence_as(args, arguments), **kwargs)
        flat = [convert_to_tensor(each) for each in nest.flatten(results)]
        variables = _used(flat, arguments)
        takes_variables = _takes_variables(backward)
        if not takes_variables:
            held = [each.op.name for each in variables if each.handle is not None]
            if held:
                raise TypeError(
                    f"{_name(f)} uses the variables {held}: then the gradient function that it returns must accept "
                    "a keyword argument 'variables', and return gradients for them too."
                )
            variables = []
        inputs = [*flat, *arguments, *(each.value() for each in variables)]

        def gradient(op: Operation, *grads: Any) -> list[Any]:
            given = [
                filling_ops.zeros_like(result) if grad is None else grad
                for result, grad in zip(flat, grads[: len(flat)], strict=True)
            ]
            if takes_variables:
                back, of_variables = backward(*given, variables=variables)
            else:
                back, of_variables = backward(*given), []
            found = [None] * len(flat)
            for what, made, wanted in (("arguments", back, arguments), ("variables", of_variables, variables)):
                made = nest.flatten(made)
                if len(made) != len(wanted):
                    raise ValueError(
                        f"The gradient function of {_name(f)} was expected to return {len(wanted)} gradients of its "
                        f"{what}, but returned {len(made)}."
                    )
                found += made
            return found

        graph = get_default_graph()
        functions = custom_gradients_of(graph.outermost)
        key = f"CustomGradient-{len(functions)}"
        functions[key] = gradient
        with graph.gradient_override_map({"IdentityN": key}):
            outputs = list(apply_op("IdentityN", None, input=inputs))
        return nest.pack_sequence_as(results, outputs[: len(flat)])

    return decorated


def _used(results: Sequence[Tensor], arguments: Sequence[Tensor]) -> list[Variable]:
    """The variables between arguments and results."""
    known = {each.op: each for each in (*global_variables(), *local_variables(), *trainable_variables())}
    stops = {tensor.op for tensor in arguments}
    seen = {tensor.op for tensor in results} - stops
    waiting, found = list(seen), []
    while waiting:
        op = waiting.pop()
        if op in known:
            found.append(known[op])
        before = {tensor.op for tensor in op.inputs} - seen - stops
        seen |= before
        waiting.extend(before)
    return sorted(found, key=lambda each: each.name)


def _takes_variables(function: Any) -> bool:
    parameters = inspect.signature(function).parameters
    return "variables" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _name(function: Any) -> str:
    return getattr(function, "__name__", repr(function))
