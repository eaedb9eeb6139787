"""Pooling by windows of differing sizes: the rows and columns are cut at random places.

Source: Graham, "Fractional max-pooling" (2014). The places are outputs, which the gradients take as inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import dimensions, invalid, room
from dtf.run.value_types import Array
from dtf.wire import errors


class _Cuts:
    """Draws the places where rows and columns are cut, from the seeds of the node."""

    def __init__(self, node: KernelNode) -> None:
        ratios = list(node.attr("pooling_ratio"))
        if len(ratios) != 4:
            raise invalid("pooling_ratio field must specify 4 dimensions")
        if not all(np.isfinite(each) and each >= 1 for each in ratios):
            raise invalid(f"pooling_ratio cannot be smaller than 1, got: {min(ratios)}")
        if ratios[0] != 1 or ratios[3] != 1:
            raise errors.UnimplementedError.of(
                "Fractional pooling is not yet supported on the batch nor channel dimension."
            )
        self._ratios = ratios[1:3]
        self._pseudo_random = node.attr("pseudo_random")
        self._seeds: tuple[int, ...] = (int(node.attr("seed")), int(node.attr("seed2")))
        if not node.attr("deterministic") and any(self._seeds):
            raise invalid("Both seed and seed2 should be 0 if deterministic is false.")
        if node.attr("deterministic") and not any(self._seeds):
            self._seeds = tuple(int(each) for each in np.random.SeedSequence().generate_state(2))

    def draw(self, shape: tuple[int, ...]) -> list[np.ndarray]:
        """The places of rows and of columns, from 0 to the size."""
        if len(shape) != 4:
            raise invalid("tensor_in must be 4-dimensional")
        seeds = self._seeds if any(self._seeds) else np.random.SeedSequence().generate_state(2).tolist()
        random = np.random.Generator(np.random.Philox(key=[int(each) & (1 << 64) - 1 for each in seeds]))
        found = []
        for size, ratio in zip(shape[1:3], self._ratios, strict=True):
            count = int(np.floor(size / np.float32(ratio)))
            if count < 1:
                raise invalid(f"pooling_ratio {ratio} leaves nothing of a dimension of size {size}")
            room((count + 1,), np.int64)
            found.append(self._places(size, count, random))
        return found

    def _places(self, size: int, count: int, random: np.random.Generator) -> np.ndarray:
        least, more = divmod(size, count)
        if not more:
            return np.arange(count + 1, dtype=np.int64) * least
        if not self._pseudo_random:
            steps = np.full(count, least, np.int64)
            steps[:more] += 1
            return np.concatenate([[0], np.cumsum(random.permutation(steps))]).astype(np.int64)
        ratio = size / count
        start = random.random() * min((least + 2) / ratio - 1, (size + 1 - least) / ratio - (count - 1))
        inner = np.ceil(ratio * (np.arange(1, count) + start)).astype(np.int64) - 1
        return np.concatenate([[0], inner, [size]]).astype(np.int64)


def _spans(places: np.ndarray, size: int, overlapping: bool) -> Iterator[tuple[int, int]]:
    """The half-open range of each window; overlapping ones share the entry at their border."""
    for first, last in zip(places[:-1].tolist(), places[1:].tolist(), strict=True):
        yield first, min(last + overlapping, size)


def _checked_places(places: Array, windows: int, size: int, what: str) -> np.ndarray:
    places = np.asarray(places)
    if places.ndim != 1 or places.size != windows + 1:
        raise invalid(f"{what} must be a vector of {windows + 1} entries, got shape {list(places.shape)}")
    if places[0] < 0 or places[-1] > size or np.any(places[1:] <= places[:-1]):
        raise invalid(f"{what} must increase from 0 to at most {size}")
    return places


@kernel("FractionalMaxPool", "FractionalAvgPool")
def _(node: KernelNode) -> Function:
    cuts, overlapping = _Cuts(node), bool(node.attr("overlapping"))
    average = node.op == "FractionalAvgPool"

    def run(values: np.ndarray) -> tuple[Array, ...]:
        places = cuts.draw(values.shape)
        if not values.size:
            shape = (values.shape[0], len(places[0]) - 1, len(places[1]) - 1, values.shape[3])
            return np.zeros(shape, values.dtype), places[0], places[1]
        pooled, count = values, np.ones((), np.int64)
        for axis, along in enumerate(places, 1):
            spans = list(_spans(along, values.shape[axis], overlapping))
            parts = [pooled[(slice(None),) * axis + (slice(*span),)] for span in spans]
            # sums of whole numbers wrap as TensorFlow's do
            joined = [part.sum(axis, dtype=part.dtype) if average else part.max(axis) for part in parts]
            pooled = np.stack(joined, axis)
            sizes = np.array([last - first for first, last in spans])
            count = count[..., None] * sizes if axis == 2 else sizes
        if average:
            area = count[None, :, :, None].astype(values.dtype)
            if values.dtype.kind == "f":
                pooled = pooled / area
            else:
                pooled = (np.sign(pooled) * (np.abs(pooled) // area)).astype(values.dtype)
        return pooled, places[0], places[1]

    return run


@kernel("FractionalAvgPoolGrad")
def _(node: KernelNode) -> Function:
    overlapping = bool(node.attr("overlapping"))

    def run(shape: np.ndarray, grads: np.ndarray, rows: Array, columns: Array) -> np.ndarray:
        sizes = dimensions(np.asarray(shape))
        if len(sizes) != 4 or grads.ndim != 4:
            raise invalid("original input shape and out_backprop must be 4-dimensional")
        if (grads.shape[0], grads.shape[3]) != (sizes[0], sizes[3]):
            raise invalid(f"out_backprop of shape {list(grads.shape)} does not fit an input of shape {list(sizes)}")
        rows = _checked_places(rows, grads.shape[1], sizes[1], "row_pooling_sequence")
        columns = _checked_places(columns, grads.shape[2], sizes[2], "col_pooling_sequence")
        room(sizes, np.float64)
        result = np.zeros(sizes, np.float64)
        if not result.size:
            return result.astype(grads.dtype)
        for i, (top, bottom) in enumerate(_spans(rows, sizes[1], overlapping)):
            for j, (left, right) in enumerate(_spans(columns, sizes[2], overlapping)):
                area = (bottom - top) * (right - left)
                result[:, top:bottom, left:right] += (grads[:, i, j] / area)[:, None, None]
        return result.astype(grads.dtype)

    return run


@kernel("FractionalMaxPoolGrad")
def _(node: KernelNode) -> Function:
    overlapping = bool(node.attr("overlapping"))

    def run(inputs: np.ndarray, outputs: np.ndarray, grads: np.ndarray, rows: Array, columns: Array) -> np.ndarray:
        if inputs.ndim != 4 or outputs.ndim != 4:
            raise invalid("orig_input and orig_output must be 4-dimensional")
        if outputs.shape != grads.shape or (inputs.shape[0], inputs.shape[3]) != (grads.shape[0], grads.shape[3]):
            raise invalid(f"out_backprop of shape {list(grads.shape)} does not fit the other arguments")
        rows = _checked_places(rows, grads.shape[1], inputs.shape[1], "row_pooling_sequence")
        columns = _checked_places(columns, grads.shape[2], inputs.shape[2], "col_pooling_sequence")
        result = np.zeros_like(inputs)
        if not result.size:
            return result
        batch, channel = np.ix_(np.arange(inputs.shape[0]), np.arange(inputs.shape[3]))
        for i, (top, bottom) in enumerate(_spans(rows, inputs.shape[1], overlapping)):
            for j, (left, right) in enumerate(_spans(columns, inputs.shape[2], overlapping)):
                window = inputs[:, top:bottom, left:right].reshape(len(inputs), -1, inputs.shape[3])
                at = window.argmax(1)
                if not np.array_equal(np.take_along_axis(window, at[:, None], 1)[:, 0], outputs[:, i, j]):
                    raise invalid("tensor_out_dup is not the same as tensor_out")
                down, across = np.divmod(at, right - left)
                result[batch, top + down, left + across, channel] += grads[:, i, j]
        return result

    return run
