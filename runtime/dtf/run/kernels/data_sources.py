"""Kernels of further datasets: random numbers, rows of databases, rows of sparse tensors, counts; and files of records.

They bind `run.datasets` to nodes, as `kernels.data` does for the others.
"""

from __future__ import annotations

import numpy as np

from dtf.run.datasets import random_numbers, record_files, sources, sql, transformations
from dtf.run.datasets.dataset import Dataset, Scope
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, scalar
from dtf.run.kernels.data import dataset_of, in_a_thread
from dtf.run.value_types import Array, Element


@kernel("RandomDataset")
def _(_node: KernelNode) -> Function:
    return lambda seed, seed2: random_numbers.random_numbers(int(seed), int(seed2))


@kernel("SqlDataset")
def _(node: KernelNode) -> Function:
    kinds = node.attr("output_types")

    def make(driver: Array, source: Array, text: Array) -> Dataset:
        return sql.query(
            as_text(scalar(driver, "driver_name")), as_text(scalar(source, "data_source_name")),
            as_text(scalar(text, "query")), kinds,
        )  # fmt: skip

    return make


@kernel("SparseTensorSliceDataset")
def _(_node: KernelNode) -> Function:
    return _sparse_rows


def _sparse_rows(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> Dataset:
    if indices.ndim != 2:
        raise invalid(f"Input indices must be a matrix. Got: {list(indices.shape)}")
    if values.ndim != 1:
        raise invalid(f"Input values must be a vector. Got: {list(values.shape)}")
    if shape.ndim != 1 or not len(shape):
        raise invalid(f"Input shape must be a vector of at least one size. Got: {list(shape.shape)}")
    if values.shape != indices.shape[:1] or shape.shape != indices.shape[1:]:
        raise invalid("Number of values and rank must match the first and second dimension of indices. "
                      f"Got {len(values)} values of rank {len(shape)}, indices: {list(indices.shape)}")  # fmt: skip
    rows = indices[:, 0]
    if (np.diff(rows) < 0).any():
        raise invalid("The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered input "
                      "is not currently supported.")  # fmt: skip
    if len(rows) and not (rows[0] >= 0 and rows[-1] < shape[0]):
        raise invalid(f"The indices of the batch dimension must be within [0, {int(shape[0])})")

    def row(index: int) -> Element:
        begin, end = np.searchsorted(rows, [index, index + 1])
        return indices[begin:end, 1:], values[begin:end], shape[1:]

    return sources.indexed("SparseTensorSliceDataset", max(0, int(shape[0])), row)


@kernel("AssertCardinalityDataset")
def _(_node: KernelNode) -> Function:
    return lambda dataset, count: transformations.counted(dataset_of(dataset), int(count))


@kernel("DatasetToTFRecord", asynchronous=True)
def _(_node: KernelNode) -> Function:
    def write(step: StepContext, done: Done[Outputs], dataset: Array, path: Array, compression: Array) -> None:
        def work(scope: Scope) -> Element:
            name, kind = as_text(scalar(path, "filename")), as_text(scalar(compression, "compression_type"))
            record_files.write_records(dataset_of(dataset), name, kind, scope)
            return ()

        in_a_thread(step, done, "DatasetToTFRecord", work)

    return write
