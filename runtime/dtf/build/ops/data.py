"""Datasets: the class `Dataset` of tf.data, whose methods make the nodes of a pipeline.

Owns the methods. `data_structure` defines the structure of elements, `data_iterators` the iterators, `data_files`
datasets of files; `run.datasets` runs the nodes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/Dataset
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.function_graph import TracedFunction, trace
from dtf.build.ops import data_structure as structure
from dtf.build.ops.data_generator import generator_functions, generator_spec
from dtf.build.ops.data_iterators import make_initializable_iterator, make_one_shot_iterator
from dtf.build.ops.data_methods import Maker, Transformation
from dtf.build.ops.data_options import Options
from dtf.build.ops.data_paddings import fits, like, padded_shape, padding, shape_tensor, sizes
from dtf.build.ops.file_patterns import files_found
from dtf.build.ops.math import maximum
from dtf.build.ops.random import get_seed
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import TensorSpec
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = ["AUTOTUNE", "Dataset"]

AUTOTUNE = -1
"""As a number of parallel calls or a buffer's size: the runtime chooses."""


@structure.dataset_class
class Dataset:
    """A sequence of elements of one structure, as a node of the graph.

    Transformations make further datasets; an iterator (`make_one_shot_iterator`, `make_initializable_iterator`)
    gives the elements as tensors. Functions given to transformations are traced once into functions of the graph.

    Args:
      variant_tensor: the node's output.
      element_spec: the structure of an element (see `tf.TensorSpec`).

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/Dataset
    """

    def __init__(self, variant_tensor: Tensor, element_spec: Any, options: Options | None = None) -> None:
        self._variant_tensor = variant_tensor
        self._element_spec = element_spec
        self._options = options or Options()

    def __repr__(self) -> str:
        return f"<Dataset element_spec={self._element_spec}>"

    @property
    def element_spec(self) -> Any:
        """The structure of an element, of TensorSpecs and SparseTensorSpecs."""
        return self._element_spec

    @property
    def output_types(self) -> Any:
        """The dtypes in the structure of an element."""
        return structure.legacy(self._element_spec)[0]

    @property
    def output_shapes(self) -> Any:
        """The static shapes in the structure of an element."""
        return structure.legacy(self._element_spec)[1]

    @property
    def output_classes(self) -> Any:
        """Tensor or SparseTensor in the structure of an element."""
        return structure.legacy(self._element_spec)[2]

    # Sources

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """One element: `tensors`, a structure."""
        value = structure.converted(tensors)
        return _made("TensorDataset", structure.spec_of(value), name, components=structure.flat_tensors(value))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """An element for each row of the structure's tensors.

        Raises:
          ValueError: there are scalars, or the numbers of rows differ.
        """
        value = structure.converted(tensors)
        spec = structure.unbatched(structure.spec_of(value))
        rows = TensorShape([None])
        for leaf in structure.flatten(structure.spec_of(value)):
            rows = rows.merge_with(leaf.shape.with_rank_at_least(1)[:1])
        return _made("TensorSliceDataset", spec, name, components=structure.flat_slices(value))

    @staticmethod
    def range(*args: Any, output_type: DTypeLike = dtypes.int64, name: str | None = None) -> Dataset:
        """The numbers of range(*args), as int64 scalars or `output_type`.

        Raises:
          ValueError: no argument, or more than three.
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        start, stop, step = (convert_to_tensor(each, dtypes.int64) for each in (start, stop, step))
        return _made("RangeDataset", TensorSpec([], output_type), name, start=start, stop=stop, step=step)

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements of `generator(*args)`, an iterable made anew for each pass; it runs in this process.

        Raises:
          TypeError: `generator` cannot be called, or there is neither a signature nor types.
        """
        spec = generator_spec(generator, output_types, output_shapes, output_signature)
        functions_of = generator_functions(generator, spec, args)

        def elements_of(number: Tensor) -> Dataset:
            return _made("GeneratorDataset", spec, None, **functions_of(number))

        return Dataset.from_tensors(np.int64(0)).flat_map(elements_of)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Dataset:
        """The names of the files that match a pattern, or any of several; in random order unless `shuffle` is False.

        Raises (when it is iterated):
          InvalidArgumentError: no file matches.
        """
        with name_scope(name, "list_files"):
            found, count = files_found(file_pattern)
            dataset = Dataset.from_tensor_slices(found)
            return dataset if shuffle is False else dataset.shuffle(maximum(count, 1), seed=seed)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Elements of several datasets side by side, in the structure of `datasets` (a tuple or dictionary), until one
        ends; several arguments are a tuple.

        Raises:
          TypeError: something is no dataset, or nothing is given.
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        flat = structure.flatten(given)
        options = Options()
        for each in flat:
            if not isinstance(each, Dataset):
                raise TypeError(f"Each of `datasets` must be a Dataset, got {each!r}; a list is none: give a tuple")
            options = options.merge(each._options)
        spec = structure.map_structure(lambda each: each.element_spec, given)
        return _made("ZipDataset", spec, name, options, input_datasets=[each._variant_tensor for each in flat])

    # Parts and repetitions

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """This dataset's elements, then those of another dataset of the same structure and dtypes.

        Raises:
          TypeError: they differ.
        """
        spec = structure.merged(self._element_spec, dataset.element_spec)
        both = self._options.merge(dataset._options)
        return _made(
            "ConcatenateDataset", spec, name, both, input_dataset=self._variant_tensor,
            another_dataset=dataset._variant_tensor,
        )  # fmt: skip

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """The elements `count` times; without end if None or -1."""
        return self._with("RepeatDataset", name=name, count=_int64(-1 if count is None else count))

    def take(self, count: Any, name: str | None = None) -> Dataset:
        """The first `count` elements; all for -1."""
        return self._with("TakeDataset", name=name, count=_int64(count))

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """All but the first `count` elements; none for -1."""
        return self._with("SkipDataset", name=name, count=_int64(count))

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Every `num_shards`-th element from number `index` on, as each of several workers takes its part.

        Raises (when it is made, or when it is iterated if they are tensors):
          InvalidArgumentError: the index is not within [0, num_shards).
        """
        return self._with("ShardDataset", name=name, num_shards=_int64(num_shards), index=_int64(index))

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """The same elements; after the first whole pass they are read from memory, or from a file of that name."""
        return self._with("CacheDataset", name=name, filename=convert_to_tensor(filename, dtypes.string))

    def prefetch(self, buffer_size: Any = AUTOTUNE, name: str | None = None) -> Dataset:
        """The same elements; a thread makes up to `buffer_size` of them in advance."""
        size = AUTOTUNE if buffer_size is None else buffer_size
        return self._with("PrefetchDataset", name=name, buffer_size=_int64(size))

    def shuffle(
        self, buffer_size: Any, seed: int | None = None, reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Random order: each element is drawn from the next `buffer_size` ones.

        Args:
          reshuffle_each_iteration: whether another pass over it has another order; True if None.
        """
        first, second = (seed or 0 for seed in get_seed(seed))
        return self._with(
            "ShuffleDataset",
            name=name,
            buffer_size=_int64(buffer_size),
            seed=_int64(first),
            seed2=_int64(second),
            reshuffle_each_iteration=True if reshuffle_each_iteration is None else reshuffle_each_iteration,
        )

    def enumerate(self, start: TensorLike = 0, name: str | None = None) -> Dataset:
        """Pairs of a number, from `start` on, and an element."""
        return Dataset.zip((Dataset.range(start, np.iinfo(np.int64).max), self), name=name)

    # Batches

    def batch(
        self, batch_size: Any, drop_remainder: Any = False, num_parallel_calls: Any = None,
        deterministic: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """Consecutive elements joined along a new first dimension.

        Args:
          drop_remainder: leave out a last batch that is smaller.
          num_parallel_calls, deterministic: for TensorFlow's sake; batches are made one after the other.

        Raises (when it is iterated):
          InvalidArgumentError: shapes differ within a batch, or the size is not positive.
        """
        size = _static(batch_size) if _static(drop_remainder) else None
        return self._with(
            "BatchDatasetV2",
            structure.batched(self._element_spec, size),
            name,
            batch_size=_int64(batch_size),
            drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool),
        )

    def padded_batch(
        self, batch_size: Any, padded_shapes: Any = None, padding_values: Any = None, drop_remainder: Any = False,
        name: str | None = None,
    ) -> Dataset:
        """Batches of elements of several shapes, filled up at their ends.

        Args:
          padded_shapes: a shape in the place of each component, whose unknown sizes are the largest in the batch; the
            components' static shapes if None.
          padding_values: a scalar in the place of each component; zeros and empty strings if None.

        Raises:
          TypeError: an element has SparseTensors.
          ValueError: a shape has another rank than its component, or is not known.
        """
        spec = self._element_spec
        if structure.has_composite(spec):
            raise TypeError("Batching of padded sparse tensors is not currently supported, nor of ragged ones")
        leaves = structure.flatten(spec)
        shapes = [leaf.shape for leaf in leaves]
        if padded_shapes is not None:
            shapes = [padded_shape(each) for each in like(spec, padded_shapes)]
        for shape, leaf in zip(shapes, leaves, strict=True):
            if isinstance(shape, TensorShape) and shape.ndims is None:
                raise ValueError("You must provide `padded_shapes` because the rank of a component is not known")
            if not fits(shape, leaf.shape):
                raise ValueError(
                    f"The padded shape {shape} is not compatible with the shape {leaf.shape} of the corresponding "
                    "input component."
                )
        paddings = [None] * len(leaves) if padding_values is None else like(spec, padding_values)
        size = _static(batch_size) if _static(drop_remainder) else None
        made = [
            TensorSpec(TensorShape([size]).concatenate(sizes(shape)), leaf.dtype)
            for shape, leaf in zip(shapes, leaves, strict=True)
        ]
        return _made(
            "PaddedBatchDatasetV2",
            structure.pack(spec, made),
            name,
            self._options,
            input_dataset=self._variant_tensor,
            batch_size=_int64(batch_size),
            padded_shapes=[shape_tensor(shape) for shape in shapes],
            padding_values=[padding(value, leaf) for value, leaf in zip(paddings, leaves, strict=True)],
            drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool),
        )

    def unbatch(self, name: str | None = None) -> Dataset:
        """The rows of each element."""
        spec, source = self._element_spec, self
        if structure.has_composite(spec):
            # Values that lie in variants become the vectors of the variants of their rows first.
            source = self.map(lambda *parts: tuple(structure.flat_slices(parts if type(spec) is tuple else parts[0])))
        rows = structure.unbatched(spec)
        return _made("UnbatchDataset", rows, name, self._options, input_dataset=source._variant_tensor)

    def window(
        self, size: Any, shift: TensorLike | None = None, stride: Any = 1, drop_remainder: Any = False,
        name: str | None = None,
    ) -> Dataset:
        """Datasets of `size` elements each, `stride` apart; a new one begins every `shift` elements (`size` if None).

        Each component of an element becomes a dataset of its own.
        """
        return self._with(
            "WindowDataset",
            structure.map_structure(structure.DatasetSpec, self._element_spec),
            name,
            size=_int64(size),
            shift=_int64(size if shift is None else shift),
            stride=_int64(stride),
            drop_remainder=convert_to_tensor(drop_remainder, dtypes.bool),
        )

    # Functions

    def map(
        self, map_func: Callable[..., Any], num_parallel_calls: Any = None, deterministic: bool | None = None,
        synchronous: bool | None = None, use_unbounded_threadpool: bool | None = None, name: str | None = None,
    ) -> Dataset:  # fmt: skip
        """The results of `map_func`, a function from an element (a tuple: from its parts) to a structure.

        Args:
          num_parallel_calls: how many calls run in parallel threads; AUTOTUNE: one for each processor.
          deterministic: False: results come as they are ready. None: as the options of the dataset say.
        """
        function, spec = self._traced(map_func, "Dataset_map")
        if num_parallel_calls is None:
            return self._calling("MapDataset", function, spec, name=name, preserve_cardinality=True)
        return self._calling(
            "ParallelMapDatasetV2",
            function,
            spec,
            name=name,
            num_parallel_calls=_int64(num_parallel_calls),
            deterministic=self._order(deterministic),
            preserve_cardinality=True,
        )

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements for which `predicate` returns true.

        Raises:
          ValueError: it does not give a bool scalar.
        """
        function = self._predicate(predicate, "Dataset_filter")
        return self._calling("FilterDataset", function, attr="predicate", name=name)

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements before the first for which `predicate` returns false."""
        function = self._predicate(predicate, "Dataset_take_while")
        return self._calling("TakeWhileDataset", function, attr="predicate", name=name)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements of the datasets that `map_func` makes of each element, one dataset after the other.

        Raises:
          TypeError: it does not make a dataset.
        """
        function, spec = self._traced_dataset(map_func, "Dataset_flat_map")
        return self._calling("FlatMapDataset", function, spec, name=name)

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = AUTOTUNE,
        block_length: Any = 1,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """`block_length` elements of each of `cycle_length` datasets in turns.

        Args:
          num_parallel_calls: not None: the datasets' elements are made in advance, by a thread for each.

        Raises:
          TypeError: `map_func` does not make a dataset.
        """
        function, spec = self._traced_dataset(map_func, "Dataset_interleave")
        lengths: dict[str, Any] = {
            "cycle_length": _int64(AUTOTUNE if cycle_length is None else cycle_length),
            "block_length": _int64(block_length),
        }
        if num_parallel_calls is None:
            return self._calling("InterleaveDataset", function, spec, name=name, **lengths)
        return self._calling(
            "ParallelInterleaveDatasetV4",
            function,
            spec,
            name=name,
            **lengths,
            buffer_output_elements=_int64(AUTOTUNE),
            prefetch_input_elements=_int64(AUTOTUNE),
            num_parallel_calls=_int64(num_parallel_calls),
            deterministic=self._order(deterministic),
        )

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """The last state of `reduce_func(state, element)` over one pass, in the structure of `initial_state`."""
        state = structure.converted(initial_state)
        function, spec = _traced(reduce_func, (structure.spec_of(state), self._element_spec), "reduce")
        tensors = structure.flat_tensors(state)
        results = apply_op(
            "ReduceDataset",
            name,
            input_dataset=self._variant_tensor,
            initial_state=tensors,
            other_arguments=list(function.captured),
            f=function.reference,
            output_types=structure.flat_types(spec),
            output_shapes=structure.flat_shapes(spec),
        )
        return structure.packed(spec, results if isinstance(results, list) else [results])

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """transformation_func(self).

        Raises:
          TypeError: it is not a dataset.
        """
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"`transformation_func` must return a Dataset. Got {dataset}.")
        return dataset

    # Older names, and methods that later releases have

    map_with_legacy_function = map
    filter_with_legacy_function = filter
    from_sparse_tensor_slices = Maker("dtf.data.sources")
    random = Maker("dtf.data.sources", "RandomDataset")
    counter = Maker("dtf.data.grouping", "Counter")
    choose_from_datasets = Maker("dtf.data.grouping")
    sample_from_datasets = Maker("dtf.data.grouping")
    cardinality = Maker("dtf.data.grouping", takes_dataset=True)
    get_single_element = Maker("dtf.data.grouping", takes_dataset=True)
    bucket_by_sequence_length = Transformation("dtf.data.grouping")
    group_by_window = Transformation("dtf.data.grouping")
    scan = Transformation("dtf.data.grouping")
    unique = Transformation("dtf.data.grouping")
    rejection_resample = Transformation("dtf.data.resampling")
    sparse_batch = Transformation("dtf.data.resampling", "dense_to_sparse_batch")
    ragged_batch = Transformation("dtf.data.resampling", "dense_to_ragged_batch")
    ignore_errors = Transformation("dtf.data.experimental")
    snapshot = Transformation("dtf.data.sources")

    # Options and iterators

    def options(self) -> Options:
        """The options that were given here and before."""
        return self._options

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """The same elements, made with `options`."""
        dataset = self._with("OptionsDataset", name=name, serialized_options=options._serialized())
        dataset._options = self._options.merge(options)
        return dataset

    def make_one_shot_iterator(self) -> Any:
        """An iterator for one pass, which begins at first use; see `tf.data.make_one_shot_iterator`."""
        return make_one_shot_iterator(self)

    def make_initializable_iterator(self, shared_name: str | None = None) -> Any:
        """An iterator whose `initializer` begins a pass; see `tf.data.make_initializable_iterator`."""
        return make_initializable_iterator(self, shared_name)

    # Nodes

    def _with(self, op_type: str, spec: Any = None, name: str | None = None, **arguments: Any) -> Dataset:
        """The dataset of a node whose first input is this one."""
        spec = self._element_spec if spec is None else spec
        return _made(op_type, spec, name, self._options, input_dataset=self._variant_tensor, **arguments)

    def _calling(
        self, op_type: str, function: TracedFunction, spec: Any = None, attr: str = "f", **arguments: Any
    ) -> Dataset:
        given: dict[str, Any] = {attr: function.reference, **arguments}
        return self._with(op_type, spec, other_arguments=list(function.captured), **given)

    def _traced(self, function: Callable[..., Any], name: str) -> tuple[TracedFunction, Any]:
        return _traced(function, self._element_spec, name)

    def _traced_dataset(self, function: Callable[..., Any], name: str) -> tuple[TracedFunction, Any]:
        traced, spec = self._traced(function, name)
        if not isinstance(spec, structure.DatasetSpec):
            raise TypeError(f"The `map_func` argument must return a `Dataset` object. Got {spec}.")
        return traced, spec.element_spec

    def _predicate(self, function: Callable[..., Any], name: str) -> TracedFunction:
        traced, spec = self._traced(function, name)
        if not isinstance(spec, TensorSpec) or not spec.is_compatible_with(TensorSpec([], dtypes.bool)):
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
                f"{spec}."
            )
        return traced

    def _order(self, deterministic: bool | None) -> str:
        chosen = self._options.deterministic if deterministic is None else deterministic
        return "default" if chosen is None else str(chosen).lower()


def _traced(function: Callable[..., Any], spec: Any, name: str) -> tuple[TracedFunction, Any]:
    """A function from elements of `spec`, and the spec of its results."""
    if not callable(function):
        raise ValueError(f"Argument `func` must be a callable. Received func={function!r} (of type {type(function)})")
    made: list[Any] = []

    def body(*tensors: Tensor) -> Any:
        element = structure.packed(spec, tensors)
        returned = function(*element) if type(spec) is tuple else function(element)  # a namedtuple is one value
        try:
            return structure.converted(tuple(returned) if isinstance(returned, list) else returned)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"Unsupported return value from function passed to {name.replace('_', '.')}(): {returned}. {error}"
            ) from error

    def results_of(value: Any) -> list[Tensor]:
        made.append(structure.spec_of(value))
        return structure.flat_tensors(value)

    kind = getattr(function, "__name__", type(function).__name__).replace("<lambda>", "lambda")
    arguments = list(zip(structure.flat_types(spec), structure.flat_shapes(spec), strict=True))
    traced = trace(body, arguments, f"{name}_{kind}", results_of)
    return traced, made[0]


def _made(op_type: str, spec: Any, name: str | None, options: Options | None = None, /, **arguments: Any) -> Dataset:
    """The dataset of a new node."""
    from dtf.wire import opdef

    attrs = opdef.get(op_type).attr_by_name
    # Contracts say it in one of two ways.
    types = {"output_types": structure.flat_types(spec)} if "output_types" in attrs else {}
    shapes = {"output_shapes": structure.flat_shapes(spec)} if "output_shapes" in attrs else {}
    return Dataset(apply_op(op_type, name, **arguments, **types, **shapes), spec, options)


def _int64(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.int64)


def _static(value: Any) -> Any:
    """A statically known size or bool, or None."""
    return None if isinstance(value, Tensor) else value
