"""Uses of columns: the input of a net, a linear model, and the parsing of Examples.

Variables are named as TensorFlow names them: "input_layer/<column>/embedding_weights",
"linear_model/<column>/weights", "linear_model/bias_weights".

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/input_layer
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dtf.build.default_graph import add_to_collection, get_collection
from dtf.build.graph_keys import GraphKeys
from dtf.build.initializers import zeros_initializer
from dtf.build.ops.embedding import embedding_lookup
from dtf.build.ops.joining import concat
from dtf.build.ops.linalg import matmul
from dtf.build.ops.math import add_n
from dtf.build.ops.nn import bias_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable, get_variable_scope, variable_scope
from dtf.feature_column.categorical import CategoricalColumn
from dtf.feature_column.dense import DenseColumn, check_combiner, combined
from dtf.wire import dtypes


def input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
    cols_to_output_tensors: dict[Any, Any] | None = None,
) -> Tensor:
    """float32 [batch, all widths]: the numbers of dense columns side by side, in the order of the columns' names.

    Args:
      weight_collections: collections that the variables are added to.
      cols_to_vars: a dict that gets the variables of each column.
      cols_to_output_tensors: a dict that gets the numbers of each column.

    Raises:
      ValueError: a column is not dense, two have the same name, or a feature is missing.
    """
    columns = _sorted(feature_columns)
    for column in columns:
        if not isinstance(column, DenseColumn):
            raise ValueError(
                "Items of feature_columns must be dense columns. You can wrap a categorical column with an "
                f"embedding_column or indicator_column. Given: {column!r}"
            )
    with variable_scope(None, "input_layer", list(features.values())):
        parts = []
        for column in columns:
            with variable_scope(None, column.scope), _variables_of(column, cols_to_vars, weight_collections):
                parts.append(column.values(features, trainable))
            if cols_to_output_tensors is not None:
                cols_to_output_tensors[column] = parts[-1]
        return parts[0] if len(parts) == 1 else concat(parts, 1)


def linear_model(
    features: Mapping[str, Any],
    feature_columns: Any,
    units: int = 1,
    sparse_combiner: str = "sum",
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
    cols_to_vars: dict[Any, Any] | None = None,
) -> Tensor:
    """float32 [batch, units]: a weight for each number and class of the columns, and a bias; all begin at 0.

    Args:
      sparse_combiner: how the weights of several classes of an example are combined: "sum", "mean" or "sqrtn".
      weight_collections: collections that the variables are added to.
      cols_to_vars: a dict that gets the variables of each column, and of the bias at the key "bias".

    Raises:
      ValueError: two columns have the same name, a feature is missing, or the combiner is unknown.
    """
    check_combiner(sparse_combiner)
    columns = _sorted(feature_columns)
    with variable_scope(None, "linear_model", list(features.values())):
        parts = []
        for column in columns:
            with variable_scope(None, column.name), _variables_of(column, cols_to_vars, weight_collections):
                parts.append(_weighted(column, features, units, sparse_combiner, trainable))
        with _variables_of("bias", cols_to_vars, weight_collections):
            bias = get_variable("bias_weights", [units], dtypes.float32, zeros_initializer(), trainable=trainable)
        return bias_add(add_n(parts), bias)


def make_parse_example_spec(feature_columns: Iterable[Any]) -> dict[str, Any]:
    """The argument of `tf.parse_example` that reads the features of columns.

    Raises:
      ValueError: two columns read the same feature in different ways.
    """
    found: dict[str, Any] = {}
    for column in feature_columns:
        if not isinstance(column, DenseColumn | CategoricalColumn):
            raise ValueError(f"All feature_columns must be feature columns. Given: {column!r}")
        for key, spec in column.parse_example_spec.items():
            if found.setdefault(key, spec) != spec:
                raise ValueError(f"Feature {key} is read in two ways: {found[key]} and {spec}")
    return found


@contextlib.contextmanager
def _variables_of(
    key: Any, cols_to_vars: dict[Any, Any] | None, weight_collections: Iterable[str] | None
) -> Iterator[None]:
    """Lists the variables that are used inside of it."""
    used: list[Any] = []

    def listed(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        found = getter(*args, **kwargs)
        used.append(found)
        return found

    with variable_scope(get_variable_scope(), custom_getter=listed, auxiliary_name_scope=False):
        yield
    add_to = [each for each in weight_collections or [] if each != GraphKeys.GLOBAL_VARIABLES]
    for variable in used:
        for collection in add_to:
            if not any(variable is each for each in get_collection(collection)):
                add_to_collection(collection, variable)
    if cols_to_vars is not None:
        cols_to_vars[key] = used


def _weighted(column: Any, features: Mapping[str, Any], units: int, combiner: str, trainable: bool) -> Tensor:
    is_classes = isinstance(column, CategoricalColumn)
    size = column.num_buckets if is_classes else column.width
    weights = get_variable("weights", [size, units], dtypes.float32, zeros_initializer(), trainable=trainable)
    if not is_classes:
        share = {"sum": 1.0, "mean": 1 / column.classes, "sqrtn": 1 / math.sqrt(column.classes)}[combiner]
        return matmul(column.values(features, trainable) * share, weights)
    ids = column.ids(features)
    return combined(embedding_lookup(weights, ids.values), ids, combiner, units)


def _sorted(feature_columns: Any) -> list[Any]:
    given = [feature_columns] if isinstance(feature_columns, DenseColumn | CategoricalColumn) else list(feature_columns)
    if not given:
        raise ValueError("feature_columns must not be empty.")
    for column in given:
        if not isinstance(column, DenseColumn | CategoricalColumn):
            raise ValueError(f"Items of feature_columns must be feature columns. Given: {column!r}")
    names = [column.name for column in given]
    double = sorted({name for name in names if names.count(name) > 1})
    if double:
        raise ValueError(f"Duplicate feature column name found for columns: {double}")
    return sorted(given, key=lambda column: column.name)
