"""Kernels of whole recurrent cells, and of LSTM layers over time. The formulas are those of the cited pages.

Sources: Zaremba et al., "Recurrent neural network regularization" (2014), for the LSTM with peepholes and clipping;
Cho et al. (2014) for the GRU. The columns of an LSTM's matrix are the gates in the order input, cell, forget, output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.value_types import Array


class _Parts(NamedTuple):
    """What a step of an LSTM leaves behind, each [batch, cells]."""

    i: Array
    cs: Array
    f: Array
    o: Array
    ci: Array
    co: Array
    h: Array


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _wide(array: Array) -> Array:
    return array.astype(np.float32) if array.dtype.itemsize == 2 else array


def _check(shapes: dict[str, tuple[Array, tuple[int, ...]]]) -> None:
    """Raises InvalidArgumentError for the first array that has not its shape."""
    for name, (array, wanted) in shapes.items():
        if array.shape != wanted:
            raise invalid(f"{name} must have shape {list(wanted)}, but has {list(array.shape)}")


def _check_lstm(
    x: Array, cs_prev: Array, h_prev: Array, w: Array, peepholes: Sequence[Array], b: Array
) -> tuple[int, int]:
    """Checks the arguments of one step of an LSTM; returns (batch, cells)."""
    for name, array in (("x", x), ("cs_prev", cs_prev)):
        if array.ndim != 2 or not array.shape[0]:
            raise invalid(f"{name} must be a matrix that is not empty, got shape {list(array.shape)}")
    (batch, inputs), cells = x.shape, cs_prev.shape[1]
    matrix = (inputs + cells, 4 * cells)
    _check({"cs_prev": (cs_prev, (batch, cells)), "h_prev": (h_prev, (batch, cells)), "w": (w, matrix),
            "b": (b, (4 * cells,))})  # fmt: skip
    for name, array in zip(("wci", "wcf", "wco"), peepholes, strict=True):
        if array.ndim != 1:
            raise invalid(f"{name} must be rank 1 but is rank {array.ndim}")
    return batch, cells


class _Cell:
    def __init__(self, node: KernelNode) -> None:
        # The second version has no bias of its own, and its gates are in the order input, forget, cell, output.
        self._is_second = node.op.endswith("V2")
        self._bias = np.float32(node.attrs.get("forget_bias", 0.0 if self._is_second else 1.0))
        self._clip = np.float32(node.attrs.get("cell_clip", 0.0))
        self._peephole = node.attr("use_peephole")

    def step(self, x: Array, cs_prev: Array, h_prev: Array, w: Array, peepholes: Sequence[Array], b: Array) -> _Parts:
        gates = np.concatenate([x, h_prev], 1) @ w + b
        i, ci, f, o = self._in_order(np.split(gates, 4, 1))
        wci, wcf, wco = peepholes
        if self._peephole:
            i, f = i + cs_prev * wci, f + cs_prev * wcf
        i, f, ci = _sigmoid(i), _sigmoid(f + self._bias), np.tanh(ci)
        cs = ci * i + cs_prev * f
        if self._clip > 0:
            cs = np.clip(cs, -self._clip, self._clip)
        o = _sigmoid(o + cs * wco if self._peephole else o)
        co = np.tanh(cs)
        return _Parts(i, cs, f, o, ci, co, co * o)

    def step_back(
        self, cs_prev: Array, peepholes: Sequence[Array], parts: Sequence[Array], cs_grad: Array, h_grad: Array
    ) -> tuple[Array, Array, list[Array]]:
        """(gradient of cs_prev, of the gates before their functions, of the three peepholes)."""
        i, cs, f, o, ci, co = parts
        wci, wcf, wco = peepholes
        d_o = o * (1 - o) * h_grad * co
        d_cs = (1 - co * co) * h_grad * o + cs_grad
        if self._peephole:
            d_cs = d_cs + d_o * wco
        d_ci = (1 - ci * ci) * d_cs * i
        d_f = f * (1 - f) * d_cs * cs_prev
        d_i = i * (1 - i) * d_cs * ci
        cs_prev_grad = d_cs * f
        by_peephole = [np.zeros_like(each) for each in peepholes]
        if self._peephole:
            cs_prev_grad = cs_prev_grad + d_i * wci + d_f * wcf
            by_peephole = [(d_i * cs_prev).sum(0), (d_f * cs_prev).sum(0), (d_o * cs).sum(0)]
        return cs_prev_grad, np.concatenate(self._in_order([d_i, d_ci, d_f, d_o]), 1), by_peephole

    def _in_order(self, gates: list[Array]) -> list[Array]:
        """The gates input, cell, forget, output from the order of the matrix, or back."""
        first, second, third, last = gates
        return [first, third, second, last] if self._is_second else gates


@kernel("LSTMBlockCell")
def _(node: KernelNode) -> Function:
    cell, dtype = _Cell(node), node.attr("T").as_numpy_dtype

    def step(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        x, cs_prev, h_prev, w, wci, wcf, wco, b = map(_wide, inputs)
        _check_lstm(x, cs_prev, h_prev, w, (wci, wcf, wco), b)
        return tuple(each.astype(dtype) for each in cell.step(x, cs_prev, h_prev, w, (wci, wcf, wco), b))

    return step


@kernel("LSTMBlockCellGrad")
def _(node: KernelNode) -> Function:
    cell, dtype = _Cell(node), node.attr("T").as_numpy_dtype

    def step_back(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        x, cs_prev, h_prev, w, wci, wcf, wco, b, *parts, cs_grad, h_grad = map(_wide, inputs)
        shape = _check_lstm(x, cs_prev, h_prev, w, (wci, wcf, wco), b)
        named = zip(("i", "cs", "f", "o", "ci", "co"), parts, strict=False)
        _check({name: (part, shape) for name, part in [*named, ("cs_grad", cs_grad), ("h_grad", h_grad)]})
        by_cell, by_gates, by_peephole = cell.step_back(cs_prev, (wci, wcf, wco), parts[:6], cs_grad, h_grad)
        return tuple(each.astype(dtype) for each in (by_cell, by_gates, *by_peephole))

    return step_back


@kernel("BlockLSTM", "BlockLSTMV2")
def _(node: KernelNode) -> Function:
    cell, dtype = _Cell(node), node.attr("T").as_numpy_dtype

    def run(steps: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        x, cs, h, w, wci, wcf, wco, b = map(_wide, inputs)
        cells = (cs.shape[-1],)
        _check({"wci": (wci, cells), "wcf": (wcf, cells), "wco": (wco, cells), "b": (b, (4 * cells[0],))})
        outputs = [np.zeros((len(x), *cs.shape), dtype) for _ in _Parts._fields]
        for at in range(min(int(steps), len(x))):
            parts = cell.step(x[at], cs, h, w, (wci, wcf, wco), b)
            cs, h = parts.cs, parts.h
            for output, value in zip(outputs, parts, strict=True):
                output[at] = value
        return tuple(outputs)

    return run


@kernel("BlockLSTMGrad", "BlockLSTMGradV2")
def _(node: KernelNode) -> Function:
    cell, dtype = _Cell(node), node.attr("T").as_numpy_dtype

    def run_back(steps: np.ndarray, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        x, cs_first, h_first, w, wci, wcf, wco, b, *parts, h, cs_grads, h_grads = map(_wide, inputs)
        for name, array, rank in (("cs_prev", cs_first, 2), ("wci", wci, 1), ("wcf", wcf, 1), ("wco", wco, 1)):
            if array.ndim != rank:
                raise invalid(f"{name} must be rank {rank} but is rank {array.ndim}")
        x_grad, w_grad, b_grad = np.zeros_like(x), np.zeros_like(w), np.zeros_like(b)
        by_peephole = [np.zeros_like(each) for each in (wci, wcf, wco)]
        by_cell, by_hidden = np.zeros_like(cs_first), np.zeros_like(h_first)
        for at in reversed(range(min(int(steps), len(x)))):
            cs_prev = parts[1][at - 1] if at else cs_first
            h_prev = h[at - 1] if at else h_first
            by_cell, by_gates, added = cell.step_back(
                cs_prev, (wci, wcf, wco), [part[at] for part in parts], cs_grads[at] + by_cell, h_grads[at] + by_hidden
            )
            by_input = by_gates @ w.T
            x_grad[at], by_hidden = by_input[:, : x.shape[2]], by_input[:, x.shape[2] :]
            w_grad += np.concatenate([x[at], h_prev], 1).T @ by_gates
            b_grad += by_gates.sum(0)
            by_peephole = [total + more for total, more in zip(by_peephole, added, strict=True)]
        return tuple(each.astype(dtype) for each in (x_grad, by_cell, by_hidden, w_grad, *by_peephole, b_grad))

    return run_back


def _check_gru(x: Array, h_prev: Array, w_ru: Array, w_c: Array, b_ru: Array, b_c: Array) -> tuple[int, ...]:
    """Checks the arguments of one step of a GRU; returns the shape of its state."""
    for name, array in (("x", x), ("h_prev", h_prev)):
        if array.ndim != 2:
            raise invalid(f"Rank of {name} must be 2, got {array.ndim}")
    (batch, inputs), cells = x.shape, h_prev.shape[1]
    width = inputs + cells
    _check({"h_prev": (h_prev, (batch, cells)), "w_ru": (w_ru, (width, 2 * cells)), "w_c": (w_c, (width, cells)),
            "b_ru": (b_ru, (2 * cells,)), "b_c": (b_c, (cells,))})  # fmt: skip
    return batch, cells


@kernel("GRUBlockCell")
def _(node: KernelNode) -> Function:
    def step(
        x: np.ndarray, h_prev: np.ndarray, w_ru: np.ndarray, w_c: np.ndarray, b_ru: np.ndarray, b_c: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        _check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
        r, u = np.split(_sigmoid(np.concatenate([x, h_prev], 1) @ w_ru + b_ru), 2, 1)
        c = np.tanh(np.concatenate([x, h_prev * r], 1) @ w_c + b_c)
        return r, u, c, u * h_prev + (1 - u) * c

    return step


@kernel("GRUBlockCellGrad")
def _(node: KernelNode) -> Function:
    def step_back(
        x: np.ndarray,
        h_prev: np.ndarray,
        w_ru: np.ndarray,
        w_c: np.ndarray,
        b_ru: np.ndarray,
        b_c: np.ndarray,
        r: np.ndarray,
        u: np.ndarray,
        c: np.ndarray,
        d_h: np.ndarray,
    ) -> tuple[np.ndarray, ...]:
        shape = _check_gru(x, h_prev, w_ru, w_c, b_ru, b_c)
        _check({"r": (r, shape), "u": (u, shape), "c": (c, shape), "d_h": (d_h, shape)})
        width = x.shape[1]
        d_c_bar = d_h * (1 - u) * (1 - c * c)
        d_u_bar = d_h * (h_prev - c) * u * (1 - u)
        by_candidate = d_c_bar @ w_c.T
        d_hr = by_candidate[:, width:]
        d_gates = np.concatenate([d_hr * h_prev * r * (1 - r), d_u_bar], 1)
        by_gates = d_gates @ w_ru.T
        d_h_prev = by_gates[:, width:] + d_hr * r + d_h * u
        return by_gates[:, :width] + by_candidate[:, :width], d_h_prev, d_c_bar, d_gates

    return step_back
