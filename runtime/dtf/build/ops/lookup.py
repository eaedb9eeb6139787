"""Lookup tables as TensorFlow 1.x's classes: `tf.lookup.StaticHashTable` (`tf.contrib.lookup.HashTable`) and
MutableHashTable.

Owns the classes that make the nodes, and the nodes' static shapes. `run/state/lookup_tables.py` implements the tables.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/lookup
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import add_to_collection, colocate_with, get_collection, name_scope
from dtf.build.graph_keys import GraphKeys
from dtf.build.saveable_object import SaveableObject, SaveSpec
from dtf.build.shape_rules import no_outputs, scalar, shape_rule
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["initialize_all_tables", "tables_initializer"]


class KeyValueTensorInitializer:
    """Fills a table from a tensor of keys and one of values."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self._keys = convert_to_tensor(keys, key_dtype, name="keys")
        self._values = convert_to_tensor(values, value_dtype, name="values")
        self._name = name or "key_value_init"

    @property
    def key_dtype(self) -> Any:
        """The dtype of the keys."""
        return self._keys.dtype.base_dtype

    @property
    def value_dtype(self) -> Any:
        """The dtype of the values."""
        return self._values.dtype.base_dtype

    def initialize(self, table: LookupTableBase) -> Operation:
        """The operation that fills `table`; it joins the collection of table initializers."""
        made = apply_op(
            "InitializeTableV2", self._name, table_handle=table.resource_handle, keys=self._keys, values=self._values
        )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        return made


class TextFileIndex:
    """A column specification: the whole line, or its number."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class TextFileInitializer:
    """Fills a table from the lines of a file of the task that runs it."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        self.key_dtype = dtypes.as_dtype(key_dtype)
        self.value_dtype = dtypes.as_dtype(value_dtype)
        self._filename = filename
        self._columns = {"key_index": key_index, "value_index": value_index, "delimiter": delimiter}
        self._vocab_size = -1 if vocab_size is None else vocab_size
        self._name = name or "text_file_init"

    @property
    def _shared_name(self) -> str | None:
        """The name that tables over one file share, and so their contents; None if the file is not yet known."""
        if isinstance(self._filename, Tensor):
            return None
        size = f"{self._vocab_size}_" if self._vocab_size >= 0 else ""
        key, value = self._columns["key_index"], self._columns["value_index"]
        return f"hash_table_{os.fspath(self._filename)}_{size}{key}_{value}"

    def initialize(self, table: LookupTableBase) -> Operation:
        """The operation that fills `table`; it joins the table initializers, a constant file name the assets."""
        with name_scope(self._name):
            filename = convert_to_tensor(self._filename, dtypes.string, name="asset_filepath")
            made = apply_op(
                "InitializeTableFromTextFileV2",
                None,
                table_handle=table.resource_handle,
                filename=filename,
                vocab_size=self._vocab_size,
                **self._columns,
            )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        if filename.op.type == "Const":
            add_to_collection(GraphKeys.ASSET_FILEPATHS, filename)
        return made


class LookupTableBase:
    """Base of all tables: a handle, dtypes, a default value, `lookup`, `size` and `export`."""

    def __init__(self, handle: Tensor, key_dtype: Any, value_dtype: Any, default_value: Any) -> None:
        self.resource_handle = handle
        self.key_dtype = dtypes.as_dtype(key_dtype)
        self.value_dtype = dtypes.as_dtype(value_dtype)
        self.default_value = convert_to_tensor(default_value, self.value_dtype, name="Const")

    @property
    def name(self) -> str:
        """The name of the node that makes the table."""
        return self.resource_handle.op.name

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of `keys` (a tensor, or a SparseTensor of keys), the default for unknown ones."""
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        _check_keys(keys, self.key_dtype)
        return apply_op(
            "LookupTableFindV2",
            name or f"{self.name.split('/')[-1]}_Lookup",
            table_handle=self.resource_handle,
            keys=convert_to_tensor(keys, self.key_dtype),
            default_value=self.default_value,
        )

    def size(self, name: str | None = None) -> Tensor:
        """The number of entries, an int64 scalar."""
        return apply_op("LookupTableSizeV2", name, table_handle=self.resource_handle)

    def export(self, name: str | None = None) -> Any:
        """(keys, values), all of them."""
        handle = self.resource_handle
        with name_scope(name, f"{self.name.split('/')[-1]}_lookup_table_export_values"), colocate_with(handle.op):
            return apply_op(
                "LookupTableExportV2", None, table_handle=handle, Tkeys=self.key_dtype, Tvalues=self.value_dtype
            )


def _check_keys(keys: Any, key_dtype: dtypes.DType) -> None:
    """Raises TypeError for a tensor of keys of another dtype than the table's."""
    found = keys.dtype.base_dtype if isinstance(keys, Tensor) else key_dtype
    if found != key_dtype:
        raise TypeError(f"Dtype of argument `keys` must be {key_dtype}, received: {found}")


class HashTable(LookupTableBase):
    """A table that is filled once, by its initializer."""

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str | None = None
    ) -> None:
        handle = apply_op(
            "HashTableV2",
            name or "hash_table",
            key_dtype=initializer.key_dtype,
            value_dtype=initializer.value_dtype,
            shared_name=shared_name or getattr(initializer, "_shared_name", None),
            use_node_name_sharing=True,
        )
        super().__init__(handle, initializer.key_dtype, initializer.value_dtype, default_value)
        self.initializer = initializer.initialize(self)

    @property
    def init(self) -> Operation:
        """The operation that fills the table."""
        return self.initializer


StaticHashTable = HashTable


class StaticVocabularyTable:
    """A table of string or integer keys to int64 ids, with buckets after the vocabulary for unknown keys.

    Ids below the size of the vocabulary are the initializer's; an unknown key is hashed to one of `num_oov_buckets`.
    """

    def __init__(
        self, initializer: Any, num_oov_buckets: int, lookup_key_dtype: Any = None, name: str | None = None
    ) -> None:
        if num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0.")
        if initializer is not None and initializer.value_dtype != dtypes.int64:
            raise TypeError(f"Invalid `value_dtype`, expected {dtypes.int64} but got {initializer.value_dtype}.")
        self._table = None if initializer is None else HashTable(initializer, -1, name=name or "hash_table")
        self._buckets = num_oov_buckets
        default = dtypes.string if self._table is None else self._table.key_dtype
        self.key_dtype = default if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
        self.value_dtype = dtypes.int64
        self.name = name or ("hash_bucket" if self._table is None else self._table.name)

    @property
    def initializer(self) -> Operation:
        """The operation that fills the vocabulary."""
        return apply_op("NoOp") if self._table is None else self._table.initializer

    def size(self, name: str | None = None) -> Tensor:
        """The number of ids, of vocabulary and buckets together: an int64 scalar."""
        buckets = convert_to_tensor(self._buckets, dtypes.int64)
        return buckets if self._table is None else apply_op("AddV2", name, x=self._table.size(), y=buckets)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The ids of `keys`, a tensor or a SparseTensor."""
        if isinstance(keys, SparseTensor):
            return SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        _check_keys(keys, self.key_dtype)
        keys = convert_to_tensor(keys, self.key_dtype)
        with name_scope(name, "lookup"):
            words = keys if keys.dtype == dtypes.string else apply_op("AsString", input=keys)
            hashed = apply_op("StringToHashBucketFast", input=words, num_buckets=self._buckets)
            if self._table is None:
                return hashed
            same_type = keys.dtype == self._table.key_dtype
            ids = self._table.lookup(keys if same_type else apply_op("Cast", x=keys, DstT=self._table.key_dtype))
            unknown = apply_op("Equal", x=ids, y=self._table.default_value)
            behind = apply_op("AddV2", x=hashed, y=self._table.size())
            return apply_op("SelectV2", condition=unknown, t=behind, e=ids)


class _TableSaveable(SaveableObject):
    """The entries of a mutable table, as `<name>-keys` and `<name>-values`."""

    def __init__(self, table: MutableHashTable, name: str) -> None:
        keys, values = table.export()
        super().__init__(table, [SaveSpec(keys, "", f"{name}-keys"), SaveSpec(values, "", f"{name}-values")], name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Tensor] | None) -> Operation:
        handle = self.op.resource_handle
        with name_scope(f"{self.op.name.split('/')[-1]}_table_restore"), colocate_with(handle.op):
            keys, values = restored_tensors
            return apply_op("LookupTableImportV2", None, table_handle=handle, keys=keys, values=values)


class MutableHashTable(LookupTableBase):
    """A table that steps change. Its values have the shape of `default_value`.

    With `checkpoint` Savers that save everything save it too, and a Saver's list may name it.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        default = convert_to_tensor(default_value, dtypes.as_dtype(value_dtype))
        is_scalar = default.shape.ndims == 0
        handle = apply_op(
            "MutableHashTableV2" if is_scalar else "MutableHashTableOfTensorsV2",
            name,
            key_dtype=dtypes.as_dtype(key_dtype),
            value_dtype=default.dtype,
            shared_name=shared_name,
            use_node_name_sharing=True,
            **({} if is_scalar else {"value_shape": default.shape}),
        )
        super().__init__(handle, key_dtype, value_dtype, default)
        self._join_checkpoints(checkpoint)

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """The operation that adds or changes entries."""
        return apply_op(
            "LookupTableInsertV2",
            name,
            table_handle=self.resource_handle,
            keys=convert_to_tensor(keys, self.key_dtype),
            values=convert_to_tensor(values, self.value_dtype),
        )

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """The operation that removes entries."""
        return apply_op(
            "LookupTableRemoveV2", name, table_handle=self.resource_handle, keys=convert_to_tensor(keys, self.key_dtype)
        )


    def _saveable(self, name: str) -> SaveableObject:
        """A saveable object for a Saver, with this name in checkpoints."""
        return _TableSaveable(self, name)

    def _join_checkpoints(self, checkpoint: bool) -> None:
        if checkpoint:
            add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self._saveable(self.name))


class DenseHashTable(MutableHashTable):
    """A table that steps change, with two keys that no entry may have. Its values have the shape of `default_value`."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        shared_name: str | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        key_dtype = dtypes.as_dtype(key_dtype)
        default = convert_to_tensor(default_value, dtypes.as_dtype(value_dtype))
        handle = apply_op(
            "MutableDenseHashTableV2",
            name,
            empty_key=convert_to_tensor(empty_key, key_dtype),
            deleted_key=convert_to_tensor(deleted_key, key_dtype),
            value_dtype=default.dtype,
            value_shape=default.shape,
            initial_num_buckets=initial_num_buckets,
            shared_name=shared_name,
            use_node_name_sharing=True,
        )
        LookupTableBase.__init__(self, handle, key_dtype, value_dtype, default)
        self._join_checkpoints(checkpoint)


def initialize_all_tables(name: str = "init_all_tables") -> Operation:
    """The old name of `tables_initializer`."""
    return tables_initializer(name)


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """The operation that fills all tables of the default graph.

    Returns:
      An Operation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/initializers/tables_initializer
    """
    from dtf.build.ops.ordering import group

    return group(*get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


# -- shape rules

shape_rule(
    "HashTableV2", "LookupTableSize", "LookupTableSizeV2", "MutableDenseHashTableV2", "MutableHashTableOfTensorsV2",
    "MutableHashTableV2",
)(scalar)  # fmt: skip
shape_rule("HashTable", "MutableDenseHashTable", "MutableHashTable", "MutableHashTableOfTensors")(
    lambda op: [TensorShape([2])]
)


def _value_shape(op: Operation) -> TensorShape:
    """The shape of one value of the table that the first input names."""
    maker = op.inputs[0].op
    if maker.type in _SCALAR_TABLES:
        return TensorShape([])
    return maker.get_attr("value_shape") if maker.type in _TENSOR_TABLES else TensorShape(None)


_SCALAR_TABLES = ("HashTable", "HashTableV2", "MutableHashTable", "MutableHashTableV2")
_TENSOR_TABLES = (
    "MutableDenseHashTable", "MutableDenseHashTableV2", "MutableHashTableOfTensors", "MutableHashTableOfTensorsV2",
)  # fmt: skip


@shape_rule("LookupTableFind", "LookupTableFindV2")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape.concatenate(_value_shape(op))]


@shape_rule("LookupTableExport", "LookupTableExportV2")
def _(op: Operation) -> list[TensorShape]:
    if op.inputs[0].op.type.startswith("MutableDense"):  # all its buckets, as a matrix
        return [TensorShape(None), TensorShape(None)]
    return [TensorShape([None]), TensorShape([None]).concatenate(_value_shape(op))]


shape_rule(
    *(
        "InitializeTable InitializeTableV2 InitializeTableFromTextFile InitializeTableFromTextFileV2 "
        "LookupTableInsert LookupTableInsertV2 "
        "LookupTableImport "
        "LookupTableImportV2 LookupTableRemoveV2"
    ).split()
)(no_outputs)
