"""Lookup tables as TensorFlow 1.x's classes: `tf.lookup.StaticHashTable` (`tf.contrib.lookup.HashTable`) and
MutableHashTable.

Owns the classes that make the nodes, and the nodes' static shapes. What tables do is `lookup_tables.py`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/lookup
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import add_to_collection, get_collection
from dtf.build.graph_keys import GraphKeys
from dtf.build.shape_rules import no_outputs, scalar, shape_rule
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

__all__ = ["tables_initializer"]


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
    """What stands for a column of a line: the whole line, or its number."""

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

    def initialize(self, table: LookupTableBase) -> Operation:
        """The operation that fills `table`; it joins the collection of table initializers."""
        made = apply_op(
            "InitializeTableFromTextFileV2",
            self._name,
            table_handle=table.resource_handle,
            filename=self._filename,
            vocab_size=self._vocab_size,
            **self._columns,
        )
        add_to_collection(GraphKeys.TABLE_INITIALIZERS, made)
        return made


class LookupTableBase:
    """What all tables have: a handle, dtypes, a default value, `lookup`, `size` and `export`."""

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
        return apply_op(
            "LookupTableExportV2",
            name,
            table_handle=self.resource_handle,
            Tkeys=self.key_dtype,
            Tvalues=self.value_dtype,
        )


class HashTable(LookupTableBase):
    """A table that is filled once, by its initializer."""

    def __init__(
        self, initializer: Any, default_value: Any, shared_name: str | None = None, name: str = "hash_table"
    ) -> None:
        handle = apply_op(
            "HashTableV2",
            name,
            key_dtype=initializer.key_dtype,
            value_dtype=initializer.value_dtype,
            shared_name=shared_name,
            use_node_name_sharing=True,
        )
        super().__init__(handle, initializer.key_dtype, initializer.value_dtype, default_value)
        self.initializer = initializer.initialize(self)

    @property
    def init(self) -> Operation:
        """The operation that fills the table."""
        return self.initializer


StaticHashTable = HashTable


class MutableHashTable(LookupTableBase):
    """A table that steps change."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
    ) -> None:
        handle = apply_op(
            "MutableHashTableV2",
            name,
            key_dtype=dtypes.as_dtype(key_dtype),
            value_dtype=dtypes.as_dtype(value_dtype),
            shared_name=shared_name,
            use_node_name_sharing=True,
        )
        super().__init__(handle, key_dtype, value_dtype, default_value)

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
        """The operation that forgets entries."""
        return apply_op(
            "LookupTableRemoveV2", name, table_handle=self.resource_handle, keys=convert_to_tensor(keys, self.key_dtype)
        )


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """The operation that fills all tables of the default graph."""
    from dtf.build.ops.control_flow import group

    return group(*get_collection(GraphKeys.TABLE_INITIALIZERS), name=name)


# -- shape rules

shape_rule("HashTableV2", "MutableHashTableV2", "LookupTableSize", "LookupTableSizeV2")(scalar)
shape_rule("HashTable", "MutableHashTable")(lambda op: [TensorShape([2])])
shape_rule("LookupTableFind", "LookupTableFindV2")(lambda op: [op.inputs[1].shape])
shape_rule("LookupTableExport", "LookupTableExportV2")(lambda op: [TensorShape([None])] * 2)
shape_rule(
    *(
        "InitializeTable InitializeTableV2 InitializeTableFromTextFile InitializeTableFromTextFileV2 "
        "LookupTableInsert LookupTableInsertV2 "
        "LookupTableImport "
        "LookupTableImportV2 LookupTableRemoveV2"
    ).split()
)(no_outputs)
