"""Iterators over datasets: `tf.data.Iterator` and the functions that make one.

Owns the class that makes the nodes. `run.datasets.iterator` runs the iterators.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/Iterator
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, get_default_graph
from dtf.build.function_graph import trace
from dtf.build.ops import data_structure as structure
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.ops.data import Dataset

__all__ = [
    "Iterator", "get_output_classes", "get_output_shapes", "get_output_types", "make_initializable_iterator",
    "make_one_shot_iterator",
]  # fmt: skip


class Iterator:
    """Gives a dataset's elements, one each time a step runs what `get_next` returned; OutOfRangeError at the end.

    Args:
      iterator_resource: the handle.
      initializer: the operation that begins a pass, or None.
      output_types, output_shapes, output_classes: the structure of an element.
    """

    def __init__(
        self,
        iterator_resource: Tensor,
        initializer: Operation | None,
        output_types: Any,
        output_shapes: Any = None,
        output_classes: Any = None,
    ) -> None:
        self._iterator_resource = iterator_resource
        self._initializer = initializer
        self._element_spec = structure.spec_of_legacy(output_types, output_shapes, output_classes)
        self._string_handle = apply_op("IteratorToStringHandle", None, resource_handle=iterator_resource)
        get_default_graph().add_to_collection(_ITERATORS, iterator_resource)

    @staticmethod
    def from_structure(
        output_types: Any, output_shapes: Any = None, shared_name: str | None = None, output_classes: Any = None
    ) -> Iterator:
        """An iterator without a dataset; `make_initializer` gives it one.

        Args:
          shared_name: the name by which all sessions of the task find it.
        """
        spec = structure.spec_of_legacy(output_types, output_shapes, output_classes)
        resource = _resource(spec, shared_name)
        return Iterator(resource, None, *structure.legacy(spec))

    @staticmethod
    def from_string_handle(
        string_handle: Any, output_types: Any, output_shapes: Any = None, output_classes: Any = None
    ) -> Iterator:
        """The iterator whose `string_handle` is given, as by a placeholder ("feedable")."""
        spec = structure.spec_of_legacy(output_types, output_shapes, output_classes)
        resource = apply_op(
            "IteratorFromStringHandleV2",
            None,
            string_handle=convert_to_tensor(string_handle, dtypes.string),
            output_types=structure.flat_types(spec),
            output_shapes=structure.flat_shapes(spec),
        )
        return Iterator(resource, None, *structure.legacy(spec))

    @property
    def initializer(self) -> Operation:
        """The operation that begins a pass.

        Raises:
          ValueError: it has none: the iterator is one-shot, or is initialized by `make_initializer`.
        """
        if self._initializer is None:
            raise ValueError(
                "The iterator does not have an initializer. Make it with `make_initializable_iterator`, or get an "
                "initializer from its `make_initializer(dataset)`."
            )
        return self._initializer

    def make_initializer(self, dataset: Dataset, name: str | None = None) -> Operation:
        """The operation that begins a pass over `dataset`.

        Raises:
          TypeError: its elements have another structure, other dtypes, or shapes that do not fit.
        """
        mine, its = self._element_spec, dataset.element_spec
        if not structure.same_structure(mine, its) or structure.flat_types(mine) != structure.flat_types(its):
            raise TypeError(
                f"Expected output types {self.output_types!r} but got dataset with {dataset.output_types!r}."
            )
        for wanted, found in zip(structure.flatten(mine), structure.flatten(its), strict=True):
            if not wanted.shape.is_compatible_with(found.shape):
                raise TypeError(
                    f"Expected output shapes compatible with {self.output_shapes!r} but got dataset with "
                    f"{dataset.output_shapes!r}."
                )
        return _initializer(dataset, self._iterator_resource, name or "make_initializer")

    def get_next(self, name: str | None = None) -> Any:
        """The next element, in its structure. Each call makes a node, and each node takes an element of its own."""
        spec = self._element_spec
        tensors = apply_op(
            "IteratorGetNext",
            name,
            iterator=self._iterator_resource,
            output_types=structure.flat_types(spec),
            output_shapes=structure.flat_shapes(spec),
        )
        return structure.packed(spec, tensors)

    def string_handle(self, name: str | None = None) -> Tensor:
        """A string scalar that identifies this iterator, for `from_string_handle`."""
        if name is None:
            return self._string_handle
        return apply_op("IteratorToStringHandle", name, resource_handle=self._iterator_resource)

    @property
    def element_spec(self) -> Any:
        """The structure of an element."""
        return self._element_spec

    @property
    def output_types(self) -> Any:
        """The dtypes in that structure."""
        return structure.legacy(self._element_spec)[0]

    @property
    def output_shapes(self) -> Any:
        """The static shapes in that structure."""
        return structure.legacy(self._element_spec)[1]

    @property
    def output_classes(self) -> Any:
        """Tensor or SparseTensor in that structure."""
        return structure.legacy(self._element_spec)[2]


def make_initializable_iterator(dataset: Dataset, shared_name: str | None = None) -> Iterator:
    """An iterator whose `initializer` must be run first, and may be run again.

    Args:
      shared_name: the name by which all sessions of the task find it.
    """
    resource = _resource(dataset.element_spec, shared_name)
    initializer = _initializer(dataset, resource, None)
    return Iterator(resource, initializer, *structure.legacy(dataset.element_spec))


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """An iterator for one pass, which needs no initializer.

    Raises:
      ValueError: the dataset uses something with state (a variable, a table) or a placeholder of the graph.
    """
    try:
        factory = trace(lambda: dataset._variant_tensor, [], "_make_dataset", by_value=True)
    except ValueError as error:
        if "Cannot capture" not in str(error):
            raise
        raise ValueError(
            f"{error}: a dataset with a one-shot iterator cannot use a variable, a table or a placeholder of the "
            "graph. Use `make_initializable_iterator()` instead."
        ) from None
    spec = dataset.element_spec
    resource = apply_op(
        "OneShotIterator",
        None,
        dataset_factory=factory.reference,
        output_types=structure.flat_types(spec),
        output_shapes=structure.flat_shapes(spec),
    )
    return Iterator(resource, None, *structure.legacy(spec))


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Its `output_types`."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Its `output_shapes`."""
    return dataset_or_iterator.output_shapes


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Its `output_classes`."""
    return dataset_or_iterator.output_classes


_ITERATORS = "iterators"


def _resource(spec: Any, shared_name: str | None) -> Tensor:
    return apply_op(
        "IteratorV2",
        None,
        container="",
        shared_name=shared_name or "",
        output_types=structure.flat_types(spec),
        output_shapes=structure.flat_shapes(spec),
    )


def _initializer(dataset: Dataset, resource: Tensor, name: str | None) -> Operation:
    with colocate_with(resource):
        return apply_op("MakeIterator", name, dataset=dataset._variant_tensor, iterator=resource)
