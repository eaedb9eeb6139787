"""tensorflow.python.ops.functional_ops: branches and loops of functions of the graph's library.

Owns If, While, For and the calls of single functions; `build.ops.functional` has map_fn, scan and folds. Functions are
`function.Defun`s; tensors that they capture become further inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import device, get_default_graph, name_scope
from dtf.build.defun import ImportedFunction
from dtf.build.gradients import gradients
from dtf.build.graph import Operation
from dtf.build.ops.control_flow import while_loop
from dtf.wire.pb import attr_value_pb2

__all__ = ["For", "Gradient", "If", "While", "partitioned_call", "remote_call", "symbolic_gradient"]


def _traced(function: Any, inputs: Sequence[Any]) -> Any:
    return function._in_graph([each.dtype.base_dtype for each in inputs])


def _reference(traced: Any) -> Any:
    return attr_value_pb2.NameAttrList(name=traced.name)


def _listed(outputs: Any) -> list[Any]:
    if isinstance(outputs, Operation):
        return []
    return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def If(cond: Any, inputs: Sequence[Any], then_branch: Any, else_branch: Any, name: str | None = None) -> list[Any]:  # noqa: N802
    """The results of one of two functions of the inputs.

    Args:
      cond: a scalar; a number is true unless 0, a string unless empty.
      inputs: a list of tensors, the arguments of both functions.
      then_branch, else_branch: functions with results of the same dtypes.
      name: the name of the operation.

    Raises:
      ValueError: the functions capture different tensors.
    """
    given = [convert_to_tensor(each) for each in inputs]
    first, second = _traced(then_branch, given), _traced(else_branch, given)
    if list(first.captured) != list(second.captured):
        raise ValueError("the branches of If capture different tensors: pass these as inputs")
    return _listed(
        apply_op(
            "If", name, cond=cond, input=[*given, *first.captured], then_branch=_reference(first),
            else_branch=_reference(second), Tout=[each.dtype.base_dtype for each in first.results],
        )
    )  # fmt: skip


def While(input_: Sequence[Any], cond: Any, body: Any, name: str | None = None, hostmem: Any = None) -> list[Any]:  # noqa: N802
    """The values of a loop: `body` of them is repeated as long as `cond` of them holds.

    Args:
      input_: a list of tensors, the first values.
      cond: a function of the values with one scalar result.
      body: a function of the values with values of the same dtypes.
      name: the name of the operation.
      hostmem: accepted; values are in host memory.

    Raises:
      ValueError: a function captures tensors.
    """
    given = [convert_to_tensor(each) for each in input_]
    condition, step = _traced(cond, given), _traced(body, given)
    if condition.captured or step.captured:
        raise ValueError("the functions of While capture tensors: pass these as inputs")
    return _listed(apply_op("While", name, input=given, cond=_reference(condition), body=_reference(step)))


def For(  # noqa: N802
    start: Any, limit: Any, delta: Any, inputs: Sequence[Any], body: Any, name: str | None = None,
    hostmem: Any = None, rewrite_with_while: Any = None,
) -> list[Any]:  # fmt: skip
    """The values of a loop over start, start + delta ... below limit: `body(i, *values)` gives the next ones.

    Args:
      start, limit, delta: int32 scalars; delta is not 0.
      inputs: a list of tensors, the first values.
      body: a function of the counter and the values.
      name: the name scope of the loop.
      hostmem, rewrite_with_while: accepted; the loop is a `tf.while_loop`.
    """
    first, last, step = (convert_to_tensor(each) for each in (start, limit, delta))
    given = [convert_to_tensor(each) for each in inputs]

    def next_values(i: Any, *values: Any) -> list[Any]:
        made = _listed(body(i, *values))
        for value, result in zip(values, made, strict=True):
            result.set_shape(value.shape)
        return [i + step, *made]

    found = while_loop(lambda i, *_: (last - i) * step > 0, next_values, [first, *given], name=name)
    return list(found[1:])


def remote_call(args: Sequence[Any], Tout: Sequence[Any], f: Any, target: str, name: str | None = None) -> list[Any]:  # noqa: N803
    """The results of a function that runs on a device.

    Args:
      args: its arguments.
      Tout: the dtypes of its results.
      f: the function.
      target: the device.
      name: the name of the operation.
    """
    with device(target):
        return partitioned_call(args, f, list(Tout), name=name)


def partitioned_call(args: Sequence[Any], f: Any, tout: Any = None, name: str | None = None, **_: Any) -> list[Any]:
    """The results of a function of the arguments."""
    given = [convert_to_tensor(each) for each in args]
    return _traced(f, given).call(given, name)


def Gradient(inputs: Sequence[Any], f: Any, name: str | None = None) -> list[Any]:  # noqa: N802
    """The gradients of the function `f` with respect to its arguments.

    Args:
      inputs: the arguments of `f`, then a gradient for each of its results.
      f: a `function.Defun`.
      name: the name of the operations' scope.
    """
    types = [each.type for each in f.definition.signature.input_arg]
    return symbolic_gradient(input=inputs, Tout=types, f=f, name=name)


def symbolic_gradient(input: Sequence[Any], Tout: Sequence[Any], f: Any, name: str | None = None) -> list[Any]:  # noqa: A002, N803
    """The gradients of a function of the library: of its results, summed with weights, by each of its arguments.

    Args:
      input: the function's arguments, then a weight for each result.
      Tout: the dtypes of the arguments.
      f: a `function.Defun`, or the name of a function in the library.
      name: a scope for the nodes.

    Raises:
      ValueError: the library lacks the function.
    """
    arguments = [convert_to_tensor(each) for each in input]
    given, weights = arguments[: len(Tout)], arguments[len(Tout) :]
    function = f.name if hasattr(f, "name") else f
    with name_scope(name, "SymbolicGradient", arguments):
        if hasattr(f, "_in_graph"):
            results = _traced(f, given).call(given)
        else:
            library = get_default_graph()._library.function
            found = next((each for each in library if each.signature.name == function), None)
            if found is None:
                raise ValueError(f"the library of the graph has no function named {function!r}")
            results = ImportedFunction(found)._in_graph([]).call(given)
        grads = gradients(results, given, grad_ys=weights)
        found_grads = [
            apply_op("ZerosLike", None, x=each) if grad is None else convert_to_tensor(grad)
            for grad, each in zip(grads, given, strict=True)
        ]
        for grad, each in zip(found_grads, given, strict=True):
            grad.set_shape(each.shape)
    return found_grads
