"""Minimizers outside of the graph, which ask a session for the loss and its gradient.

    tf.contrib.opt.ScipyOptimizerInterface(loss, options={"maxiter": 100}).minimize(session)

Owns the way between variables and one vector. scipy is imported when a minimization starts.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/opt/ScipyOptimizerInterface
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import dtf as tf

__all__ = ["ExternalOptimizerInterface", "ScipyOptimizerInterface"]


class ExternalOptimizerInterface:
    """The base of minimizers outside of the graph; a subclass defines `_minimize`.

    Args:
      loss: a scalar tensor.
      var_list: the variables; all trainable ones by default.
      equalities: tensors that have to become zero.
      inequalities: tensors that have to be zero or more.
      var_to_bounds: {variable: (least, greatest)}, numbers or arrays that broadcast to the variable.
      **optimizer_kwargs: what `_minimize` gets.
    """

    def __init__(
        self, loss: Any, var_list: Sequence[Any] | None = None, equalities: Sequence[Any] | None = None,
        inequalities: Sequence[Any] | None = None, var_to_bounds: Mapping[Any, Any] | None = None,
        **optimizer_kwargs: Any,
    ) -> None:  # fmt: skip
        self._loss = loss
        self._equalities, self._inequalities = list(equalities or ()), list(inequalities or ())
        self._vars = list(tf.trainable_variables() if var_list is None else var_list)
        self.optimizer_kwargs = optimizer_kwargs
        self._loss_grads = self._packed_gradients(loss)
        self._equality_grads = [self._packed_gradients(each) for each in self._equalities]
        self._inequality_grads = [self._packed_gradients(each) for each in self._inequalities]
        self._placeholders = [tf.placeholder(each.dtype.base_dtype, each.shape) for each in self._vars]
        self._assign = tf.group(*[each.assign(new) for each, new in zip(self._vars, self._placeholders, strict=True)])
        self._packed = tf.concat([tf.reshape(each, [-1]) for each in self._vars], 0)
        self._bounds = self._packed_bounds(var_to_bounds) if var_to_bounds is not None else None

    def minimize(
        self, session: Any = None, feed_dict: Any = None, fetches: Sequence[Any] | None = None,
        step_callback: Callable[..., Any] | None = None, loss_callback: Callable[..., Any] | None = None,
        **run_kwargs: Any,
    ) -> None:  # fmt: skip
        """Moves the variables to a minimum of the loss.

        Args:
          session: the default one if None.
          fetches: tensors whose values `loss_callback` gets, at each value of the loss.
          step_callback: called with the vector of variables after each step.
        """
        session = session or tf.get_default_session()
        fetches = list(fetches or ())
        notify = loss_callback or (lambda *_: None)

        def run(tensors: list[Any], x: Any) -> list[Any]:
            parts = dict(zip(self._placeholders, self._unpacked(x), strict=True))
            session.run(self._assign, parts)
            return session.run(tensors, feed_dict, **run_kwargs)

        def loss_and_gradient(x: Any) -> tuple[Any, Any]:
            loss, gradient, *values = run([self._loss, self._loss_grads, *fetches], x)
            notify(*values)
            return loss, np.asarray(gradient, np.float64)

        def function_of(tensor: Any) -> Callable[[Any], Any]:
            return lambda x: np.asarray(run([tensor], x)[0], np.float64)

        start = np.asarray(session.run(self._packed, feed_dict), np.float64)
        result = self._minimize(
            initial_val=start,
            loss_grad_func=loss_and_gradient,
            equality_funcs=[function_of(each) for each in self._equalities],
            equality_grad_funcs=[function_of(each) for each in self._equality_grads],
            inequality_funcs=[function_of(each) for each in self._inequalities],
            inequality_grad_funcs=[function_of(each) for each in self._inequality_grads],
            packed_bounds=self._bounds,
            step_callback=step_callback,
            optimizer_kwargs=self.optimizer_kwargs,
        )
        session.run(self._assign, dict(zip(self._placeholders, self._unpacked(result), strict=True)))

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equality_funcs: Any, equality_grad_funcs: Any,
        inequality_funcs: Any, inequality_grad_funcs: Any, packed_bounds: Any, step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:  # fmt: skip
        """The vector of a minimum."""
        raise NotImplementedError("To use ExternalOptimizerInterface, subclass from it and implement _minimize().")

    def _packed_gradients(self, of: Any) -> Any:
        gradients = tf.gradients(of, self._vars)
        flat = [
            tf.reshape(tf.zeros_like(var) if gradient is None else tf.convert_to_tensor(gradient), [-1])
            for gradient, var in zip(gradients, self._vars, strict=True)
        ]
        return tf.concat(flat, 0)

    def _packed_bounds(self, bounds: Mapping[Any, Any]) -> list[tuple[float, float]]:
        packed: list[tuple[float, float]] = []
        for var in self._vars:
            shape = var.get_shape().as_list()
            low, high = bounds.get(var, (-np.inf, np.inf))
            packed += zip(np.broadcast_to(low, shape).flat, np.broadcast_to(high, shape).flat, strict=True)
        return packed

    def _unpacked(self, x: Any) -> list[Any]:
        sizes = [int(np.prod(each.get_shape().as_list(), dtype=int)) for each in self._vars]
        parts = np.split(np.asarray(x), np.cumsum(sizes)[:-1])
        return [
            part.reshape(each.get_shape().as_list()).astype(each.dtype.base_dtype.as_numpy_dtype)
            for part, each in zip(parts, self._vars, strict=True)
        ]


class ScipyOptimizerInterface(ExternalOptimizerInterface):
    """`scipy.optimize.minimize`: its method (L-BFGS-B; SLSQP with constraints), options and tol are arguments."""

    _DEFAULT_METHOD = "L-BFGS-B"

    def _minimize(
        self, initial_val: Any, loss_grad_func: Any, equality_funcs: Any, equality_grad_funcs: Any,
        inequality_funcs: Any, inequality_grad_funcs: Any, packed_bounds: Any, step_callback: Any,
        optimizer_kwargs: Any,
    ) -> Any:  # fmt: skip
        try:
            optimize = importlib.import_module("scipy.optimize")
        except ImportError as error:
            raise ImportError("ScipyOptimizerInterface needs scipy: pip install scipy") from error
        constraints = [
            {"type": kind, "fun": function, "jac": gradient}
            for kind, functions, gradients in (
                ("eq", equality_funcs, equality_grad_funcs),
                ("ineq", inequality_funcs, inequality_grad_funcs),
            )
            for function, gradient in zip(functions, gradients, strict=True)
        ]
        given = dict(optimizer_kwargs)
        method = given.pop("method", "SLSQP" if constraints else self._DEFAULT_METHOD)
        taken = {"bounds": packed_bounds, "constraints": constraints, "callback": step_callback, **given}
        result = optimize.minimize(
            loss_grad_func, initial_val, method=method, jac=True,
            **{name: value for name, value in taken.items() if value not in (None, [])},
        )  # fmt: skip
        tf.logging.info(
            "Optimization terminated with:\n  Message: %s\n  Objective function value: %f\n  Number of functions "
            "evaluations: %d", result.message, result.fun, result.nfev,
        )  # fmt: skip
        return result.x
