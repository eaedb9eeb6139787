"""Kernels of datasets: they bind `run.datasets` to nodes. Those of iterators are in `data_iterators`.

A dataset's variant tensor is a `Dataset` itself. Numbers and names that a node takes are tensors; functions come with
the tensors that they captured as `other_arguments`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.datasets import (
    batching,
    cache,
    functions,
    grouping,
    interleave,
    prefetch,
    shuffle,
    sources,
    transformations,
)
from dtf.run.datasets.dataset import Dataset, Scope
from dtf.run.datasets.dataset import Function as DatasetFunction
from dtf.run.executor.functions import FunctionBody
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, scalar
from dtf.run.threads import growing_pool
from dtf.run.value_types import Array, Element
from dtf.wire import errors

_AUTOMATIC = -1
_BUFFER_OF_AUTOMATIC = 2


def dataset_of(value: Array) -> Dataset:
    """The dataset of a variant tensor. Raises InvalidArgumentError when it holds something else."""
    value = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(value, Dataset):
        raise invalid(f"Expected a variant tensor that holds a dataset, got {type(value).__name__}")
    return value


# -- sources


@kernel("TensorDataset")
def _(node: KernelNode) -> Function:
    return lambda *components: sources.indexed(node.op, 1, lambda index: components)


@kernel("TensorSliceDataset")
def _(node: KernelNode) -> Function:
    return lambda *components: _slices(components)


def _slices(components: Sequence[Array]) -> Dataset:
    for component in components:
        if np.ndim(component) == 0:
            raise invalid("TensorSliceDataset takes tensors of at least one dimension, but got a scalar")
    counts = {len(component) for component in components}
    if len(counts) != 1:
        raise invalid(f"All components must have one size in the first dimension, got {sorted(counts)}")
    texts = [component.dtype == object and component.ndim == 1 for component in components]

    def element(index: int) -> tuple[Array, ...]:
        return tuple(
            _boxed(component[index]) if is_text else component[index]
            for component, is_text in zip(components, texts, strict=True)
        )

    return sources.indexed("TensorSliceDataset", counts.pop(), element)


def _boxed(value: Array) -> Array:
    boxed = np.empty((), object)
    boxed[()] = value
    return boxed


@kernel("RangeDataset")
def _(node: KernelNode) -> Function:
    dtype = node.attr("output_types")[0].as_numpy_dtype

    def make(start: np.ndarray, stop: np.ndarray, step: np.ndarray) -> Dataset:
        if int(step) == 0:
            raise invalid("step must be a non-zero integer.")
        return sources.number_range(int(start), int(stop), int(step), dtype)

    return make


@kernel("GeneratorDataset")
def _(node: KernelNode) -> Function:
    bodies = [FunctionBody(node.attr(f"{name}_func"), node.library) for name in ("init", "next", "finalize")]
    counts = [len(node.attr(f"T{name}_func_args")) for name in ("init", "next", "finalize")]

    def make(*captured: Array) -> Dataset:
        taken, parts = 0, []
        for body, count in zip(bodies, counts, strict=True):
            parts.append(DatasetFunction(body, captured[taken : taken + count]))
            taken += count
        return sources.generator(*parts)

    return make


def _names(filenames: Array) -> list[str]:
    if np.ndim(filenames) > 1:
        raise invalid("`filenames` must be a scalar or a vector.")
    return [as_text(name) for name in np.atleast_1d(filenames).tolist()]


@kernel("TFRecordDataset")
def _(node: KernelNode) -> Function:
    return lambda files, compression, buffer: sources.tf_records(_names(files), as_text(scalar(compression, "type")))


@kernel("TextLineDataset")
def _(node: KernelNode) -> Function:
    return lambda files, compression, buffer: sources.lines(_names(files), as_text(scalar(compression, "type")))


@kernel("FixedLengthRecordDataset", "FixedLengthRecordDatasetV2")
def _(node: KernelNode) -> Function:
    def make(
        files: np.ndarray,
        header: np.ndarray,
        record: np.ndarray,
        footer: np.ndarray,
        buffer: np.ndarray,
        compression: np.ndarray | bytes = b"",
    ) -> Dataset:
        head, body, foot = int(header), int(record), int(footer)
        if body <= 0 or head < 0 or foot < 0:
            raise invalid(f"`record_bytes` must be positive, the others not negative: {body}, {head}, {foot}")
        text = compression.item() if isinstance(compression, np.ndarray) else compression
        return sources.fixed_length_records(_names(files), head, body, foot, as_text(text))

    return make


# -- transformations


@kernel("TakeDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset, count: transformations.take(dataset_of(dataset), int(count))


@kernel("SkipDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset, count: transformations.skip(dataset_of(dataset), int(count))


@kernel("RepeatDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset, count: transformations.repeat(dataset_of(dataset), int(count))


@kernel("ShardDataset")
def _(node: KernelNode) -> Function:
    def make(dataset: Array, count: np.ndarray, index: np.ndarray) -> Dataset:
        if int(count) < 1:
            raise invalid(f"Number of shards must be greater than zero (currently num_shards = {int(count)}).")
        if not 0 <= int(index) < int(count):
            raise invalid(
                f"Index must be between 0 and {int(count) - 1} (currently index = {int(index)}, "
                f"num_shards = {int(count)})."
            )
        return transformations.shard(dataset_of(dataset), int(count), int(index), node.attr("require_non_empty"))

    return make


@kernel("ConcatenateDataset")
def _(node: KernelNode) -> Function:
    return lambda first, second: transformations.concatenate(dataset_of(first), dataset_of(second))


@kernel("ZipDataset")
def _(node: KernelNode) -> Function:
    return lambda *datasets: transformations.zipped([dataset_of(each) for each in datasets])


@kernel("UnbatchDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset: transformations.unbatch(dataset_of(dataset))


@kernel("WindowDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset, size, shift, stride, drop: transformations.window(
        dataset_of(dataset), int(size), int(shift), int(stride), bool(drop)
    )


@kernel("IgnoreErrorsDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset: transformations.ignore_errors(dataset_of(dataset), node.attr("log_warning"))


@kernel("OptionsDataset", "ModelDataset", "OptimizeDataset", "RewriteDataset", "FinalizeDataset")
def _(node: KernelNode) -> Function:
    """What these say is how TensorFlow's runtime may go about it; the elements are the same."""
    return lambda dataset, *_: dataset_of(dataset)


@kernel("CacheDataset")
def _(node: KernelNode) -> Function:
    return lambda dataset, filename: cache.cached(dataset_of(dataset), as_text(scalar(filename, "filename")))


@kernel("PrefetchDataset")
def _(node: KernelNode) -> Function:
    def make(dataset: Array, size: np.ndarray) -> Dataset:
        wanted = int(size)
        if wanted < _AUTOMATIC:
            raise invalid(f"buffer_size must be >= 0 or -1 for automatic, got {wanted}")
        wanted = _BUFFER_OF_AUTOMATIC if wanted == _AUTOMATIC else wanted
        return prefetch.prefetched(dataset_of(dataset), wanted) if wanted else dataset_of(dataset)

    return make


@kernel("ShuffleDataset")
def _(node: KernelNode) -> Function:
    again = node.attr("reshuffle_each_iteration")
    return lambda dataset, size, seed, seed2: shuffle.shuffled(
        dataset_of(dataset), int(size), (int(seed), int(seed2)), again
    )


@kernel("ShuffleAndRepeatDataset")
def _(node: KernelNode) -> Function:
    again = node.attr("reshuffle_each_iteration")
    return lambda dataset, size, seed, seed2, count: shuffle.shuffled(
        dataset_of(dataset), int(size), (int(seed), int(seed2)), again, int(count)
    )


@kernel("BatchDataset", "BatchDatasetV2")
def _(node: KernelNode) -> Function:
    return lambda dataset, size, drop=False: batching.batched(dataset_of(dataset), int(size), bool(drop))


@kernel("PaddedBatchDataset", "PaddedBatchDatasetV2")
def _(node: KernelNode) -> Function:
    count, drops = node.attr("N"), node.op == "PaddedBatchDatasetV2"

    def make(dataset: Array, size: np.ndarray, *rest: Array) -> Dataset:
        shapes = [shape.tolist() for shape in rest[:count]]
        return batching.padded_batches(
            dataset_of(dataset), int(size), shapes, rest[count : 2 * count], drops and bool(rest[2 * count])
        )

    return make


# -- with functions


def _with_function(
    node: KernelNode, make: Callable[..., Dataset], attr: str = "f"
) -> Callable[..., Dataset]:
    """make(dataset, function, *what follows the captured tensors)."""
    body, count = FunctionBody(node.attr(attr), node.library), len(node.attr("Targuments"))
    return lambda dataset, *rest: make(dataset_of(dataset), DatasetFunction(body, rest[:count]), *rest[count:])


@kernel("MapDataset")
def _(node: KernelNode) -> Function:
    keeps = node.attr("preserve_cardinality")
    return _with_function(node, lambda dataset, function: functions.mapped(dataset, function, keeps))


@kernel("ParallelMapDataset", "ParallelMapDatasetV2")
def _(node: KernelNode) -> Function:
    keeps, ordered = node.attr("preserve_cardinality"), _is_ordered(node)
    return _with_function(
        node,
        lambda dataset, function, calls: functions.mapped_in_parallel(
            dataset, function, _parallel_calls(calls), ordered, keeps
        ),
    )


@kernel("MapAndBatchDataset")
def _(node: KernelNode) -> Function:
    keeps = node.attr("preserve_cardinality")

    def make(
        dataset: Dataset, function: DatasetFunction, size: np.ndarray, calls: np.ndarray, drop: np.ndarray
    ) -> Dataset:
        mapped = functions.mapped_in_parallel(dataset, function, _parallel_calls(calls), True, keeps)
        return batching.batched(mapped, int(size), bool(drop))

    return _with_function(node, make)


@kernel("FilterDataset")
def _(node: KernelNode) -> Function:
    return _with_function(node, functions.filtered, "predicate")


@kernel("TakeWhileDataset")
def _(node: KernelNode) -> Function:
    return _with_function(node, functions.taken_while, "predicate")


@kernel("FlatMapDataset")
def _(node: KernelNode) -> Function:
    return _with_function(node, interleave.flat_mapped)


@kernel("InterleaveDataset")
def _(node: KernelNode) -> Function:
    return _with_function(
        node,
        lambda dataset, function, cycle, block: interleave.interleaved(
            dataset, function, _parallel_calls(cycle, "cycle_length"), int(block)
        ),
    )


@kernel(
    "ParallelInterleaveDataset", "ParallelInterleaveDatasetV2", "ParallelInterleaveDatasetV3",
    "ParallelInterleaveDatasetV4", "LegacyParallelInterleaveDatasetV2",
)  # fmt: skip
def _(node: KernelNode) -> Function:
    return _with_function(
        node,
        lambda dataset, function, cycle, block, *_: interleave.interleaved(
            dataset, function, _parallel_calls(cycle, "cycle_length"), int(block), max(1, int(block))
        ),
    )


@kernel("ScanDataset")
def _(node: KernelNode) -> Function:
    body, count = FunctionBody(node.attr("f"), node.library), len(node.attr("Tstate"))
    return lambda dataset, *rest: functions.scanned(
        dataset_of(dataset), DatasetFunction(body, rest[count:]), rest[:count]
    )


@kernel("GroupByWindowDataset")
def _(node: KernelNode) -> Function:
    names = ("key_func", "reduce_func", "window_size_func")
    bodies = [FunctionBody(node.attr(name), node.library) for name in names]
    counts = [len(node.attr(f"T{name}_other_arguments")) for name in names]

    def make(dataset: Array, *captured: Array) -> Dataset:
        given = iter(captured)
        parts = [
            DatasetFunction(body, tuple(itertools.islice(given, count)))
            for body, count in zip(bodies, counts, strict=True)
        ]
        return grouping.grouped(dataset_of(dataset), *parts)

    return make


@kernel("DirectedInterleaveDataset")
def _(node: KernelNode) -> Function:
    stops = bool(node.attr("stop_on_empty_dataset"))
    return lambda selector, *datasets: grouping.chosen(
        dataset_of(selector), [dataset_of(each) for each in datasets], stops
    )


@kernel("UniqueDataset")
def _(_node: KernelNode) -> Function:
    return lambda dataset: grouping.unique(dataset_of(dataset))


@kernel("DatasetCardinality")
def _(_node: KernelNode) -> Function:
    return lambda dataset: np.int64(dataset_of(dataset).cardinality)


@kernel("DatasetToSingleElement", asynchronous=True)
def _(_node: KernelNode) -> Function:
    return lambda step, done, dataset: in_a_thread(
        step, done, "DatasetToSingleElement", lambda scope: functions.single(dataset_of(dataset), scope)
    )


@kernel("ReduceDataset", asynchronous=True)
def _(node: KernelNode) -> Function:
    body, count = FunctionBody(node.attr("f"), node.library), len(node.attr("Tstate"))

    def reduce(step: StepContext, done: Done[Outputs], dataset: Array, *rest: Array) -> None:
        reducer = DatasetFunction(body, rest[count:])
        in_a_thread(
            step,
            done,
            "ReduceDataset",
            lambda scope: functions.reduced(dataset_of(dataset), reducer, rest[:count], scope),
        )

    return reduce


def in_a_thread(step: StepContext, done: Done[Outputs], op: str, work: Callable[[Scope], Element]) -> None:
    """Passes what work(scope) returns or raises to `done`."""
    scope = Scope.of_step(step)
    token = step.cancellation.register(scope.close)
    if token is None:
        done(error=errors.CancelledError.of(f"{op} was cancelled"))
        return

    def run() -> None:
        outcome: Element | errors.OpError
        try:
            outcome = work(scope)
        except errors.OpError as error:
            outcome = error
        except Exception as error:  # a fault of this runtime must not leave the step waiting
            outcome = errors.InternalError.of(f"{type(error).__name__}: {error}")
        step.cancellation.deregister(token)
        scope.close()
        done(error=outcome) if isinstance(outcome, errors.OpError) else done(outcome)

    growing_pool.submit(run)


def _is_ordered(node: KernelNode) -> bool:
    if node.op == "ParallelMapDataset":
        return not node.attr("sloppy")
    return as_text(node.attr("deterministic")) != "false"


def _parallel_calls(value: Array, name: str = "num_parallel_calls") -> int:
    calls = int(value)
    if calls == _AUTOMATIC:
        return max(2, os.cpu_count() or 1)
    if calls < 1:
        raise invalid(f"{name} must be greater than zero, got {calls}.")
    return calls


