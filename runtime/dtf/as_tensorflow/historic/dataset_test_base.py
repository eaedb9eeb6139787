"""tensorflow.python.data.kernel_tests.test_base: the class under unit tests of datasets.

Owns how a test reads the elements of a dataset and compares them with expected values or with another dataset.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dtf.as_tensorflow.historic import dataset_nest as nest
from dtf.as_tensorflow.historic import test_combinations as combinations
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops.data import Dataset
from dtf.build.ops.data_iterators import make_initializable_iterator, make_one_shot_iterator
from dtf.build.sparse import SparseTensorValue
from dtf.test.test_case import TestCase
from dtf.wire import dtypes, errors

__all__ = [
    "DatasetTestBase", "default_test_combinations", "eager_only_combinations", "graph_only_combinations",
    "tf1_only_combinations", "v1_only_combinations", "v2_eager_only_combinations", "v2_only_combinations",
]  # fmt: skip


def default_test_combinations() -> list[dict[str, Any]]:
    """One combination: a graph of version 1."""
    return combinations.combine(tf_api_version=1, mode="graph")


graph_only_combinations = v1_only_combinations = tf1_only_combinations = default_test_combinations


def eager_only_combinations() -> list[dict[str, Any]]:
    """Combinations that are skipped: there are only graphs."""
    return combinations.combine(tf_api_version=1, mode="eager")


v2_only_combinations = v2_eager_only_combinations = eager_only_combinations


class DatasetTestBase(TestCase):
    """Tests of datasets."""

    def assert_op_cancelled(self, op: Any) -> None:
        """The op's run raises CancelledError."""
        with self.assertRaises(errors.CancelledError):
            self.evaluate(op)

    def assertValuesEqual(self, expected: Any, actual: Any) -> None:
        """One component of an element has the expected value."""
        if isinstance(expected, SparseTensorValue):
            self.assertSparseValuesEqual(expected, actual)
        else:
            self.assertAllEqual(expected, actual)

    def assertSparseValuesEqual(self, a: Any, b: Any) -> None:
        """Two SparseTensorValues are equal."""
        self.assertAllEqual(a.indices, b.indices)
        self.assertAllEqual(a.values, b.values)
        self.assertAllEqual(a.dense_shape, b.dense_shape)

    def getNext(
        self, dataset: Any, requires_initialization: bool = False, shared_name: str | None = None
    ) -> Callable[[], Any]:
        """A function without arguments that returns the tensors of the next element.

        Args:
          dataset: a dataset.
          requires_initialization: whether its iterator has to be initialized, because the dataset has state.
          shared_name: the name of the iterator's resource.
        """
        if requires_initialization or shared_name:
            iterator = make_initializable_iterator(dataset, shared_name)
            self.evaluate(iterator.initializer)
        else:
            iterator = make_one_shot_iterator(dataset)
        get_next = iterator.get_next()
        return lambda: get_next

    def getIteratorOutput(self, get_next: Callable[[], Any]) -> list[Any]:
        """The values that are left in an iterator."""
        found = []
        while True:
            try:
                found.append(self.evaluate(get_next()))
            except errors.OutOfRangeError:
                return found

    def getDatasetOutput(self, dataset: Any, requires_initialization: bool = False) -> list[Any]:
        """The values of all elements."""
        return self.getIteratorOutput(self.getNext(dataset, requires_initialization))

    def _compareOutputToExpected(
        self, result_values: Iterable[Any], expected_values: Iterable[Any], assert_items_equal: bool
    ) -> None:
        if assert_items_equal:
            parts = ([tuple(np.ravel(each)) for each in part] for part in (expected_values, result_values))
            self.assertCountEqual(*parts)
            return
        for found, expected in zip(result_values, expected_values, strict=False):
            nest.assert_same_structure(found, expected)
            for one, other in zip(nest.flatten(found), nest.flatten(expected), strict=True):
                self.assertValuesEqual(other, one)

    def assertDatasetProduces(
        self, dataset: Any, expected_output: Any = None, expected_shapes: Any = None, expected_error: Any = None,
        requires_initialization: bool = False, num_test_iterations: int = 1, assert_items_equal: bool = False,
        expected_error_iter: int = 1,
    ) -> None:  # fmt: skip
        """The dataset's elements are the expected ones and then end, or an element raises the expected error.

        Args:
          dataset: a dataset.
          expected_output: a list of the elements' values.
          expected_shapes: the static shapes of an element.
          expected_error: (class, pattern of the message).
          requires_initialization: see `getNext`.
          num_test_iterations: how many times the dataset is read.
          assert_items_equal: whether the order does not matter.
          expected_error_iter: the number of the element that raises.

        Raises:
          ValueError: neither an output nor an error is expected, or nothing is to be read.
        """
        if expected_error:
            self.assertTrue(expected_output is None, "Exclusive expected_output and expected_error.")
            with self.assertRaisesWithPredicateMatch(*expected_error):
                get_next = self.getNext(dataset, requires_initialization=requires_initialization)
                for _ in range(expected_error_iter):
                    self.evaluate(get_next())
            return
        if expected_shapes is not None:
            self.assertEqual(expected_shapes, dataset.output_shapes)
        if expected_output is None:
            raise ValueError("assertDatasetProduces: expected_output or expected_error is needed")
        if num_test_iterations < 1:
            raise ValueError(f"num_test_iterations must be at least 1, not {num_test_iterations}")
        for _ in range(num_test_iterations):
            get_next = self.getNext(dataset, requires_initialization=requires_initialization)
            found = [self.evaluate(get_next()) for _ in range(len(expected_output))]
            for _ in range(2):
                with self.assertRaises(errors.OutOfRangeError):
                    self.evaluate(get_next())
            self._compareOutputToExpected(found, expected_output, assert_items_equal)

    def assertDatasetsEqual(self, dataset1: Any, dataset2: Any) -> None:
        """Two datasets have elements of one structure, and the same values."""
        self.assertEqual(dataset1.element_spec, dataset2.element_spec)
        first, second = self.getNext(dataset1), self.getNext(dataset2)
        while True:
            try:
                one = self.evaluate(first())
            except errors.OutOfRangeError:
                with self.assertRaises(errors.OutOfRangeError):
                    self.evaluate(second())
                return
            other = self.evaluate(second())
            for expected, actual in zip(nest.flatten(one), nest.flatten(other), strict=True):
                self.assertValuesEqual(expected, actual)

    def assertDatasetsRaiseSameError(
        self, dataset1: Any, dataset2: Any, exception_class: type[BaseException], replacements: Any = None
    ) -> None:
        """The next elements of both datasets raise one error, whose messages are equal after the replacements."""
        first, second = self.getNext(dataset1), self.getNext(dataset2)
        try:
            self.evaluate(first())
            raise ValueError(f"Expected dataset to raise an error of type {exception_class!r}, but it did not.")
        except exception_class as error:
            message = str(error)
        for old, new in replacements or []:
            message = message.replace(old, new)
        with self.assertRaisesRegex(exception_class, re.escape(message)):
            self.evaluate(second())

    def structuredDataset(self, dataset_structure: Any, shape: Any = None, dtype: Any = dtypes.int64) -> Any:
        """A dataset of one element for each leaf (None) of the structure, in the same structure."""
        if dataset_structure is None:
            return Dataset.from_tensors(self.structuredElement(None, shape, dtype))
        return Dataset.zip(nest.map_structure(lambda _: self.structuredDataset(None, shape, dtype), dataset_structure))

    def structuredElement(self, element_structure: Any, shape: Any = None, dtype: Any = dtypes.int64) -> Any:
        """Zeros in the given structure."""
        if element_structure is not None:
            return nest.map_structure(lambda _: self.structuredElement(None, shape, dtype), element_structure)
        empty = "" if dtype == dtypes.string else 0
        return convert_to_tensor(np.full([] if shape is None else shape, empty, dtypes.as_dtype(dtype).as_numpy_dtype))

    def graphRoundTrip(self, dataset: Any, allow_stateful: bool = False) -> Any:
        """The dataset itself."""
        return dataset
