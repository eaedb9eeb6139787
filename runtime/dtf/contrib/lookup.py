"""tf.contrib.lookup: tables between words and numbers.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/lookup
"""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf.build.ops.lookup import (
    DenseHashTable,
    HashTable,
    KeyValueTensorInitializer,
    LookupTableBase,
    MutableHashTable,
    TextFileIndex,
    TextFileInitializer,
)

__all__ = [
    "DenseHashTable", "HashTable", "IdTableWithHashBuckets", "KeyValueTensorInitializer", "LookupInterface",
    "MutableDenseHashTable", "MutableHashTable", "TextFileIdTableInitializer", "TextFileIndex", "TextFileInitializer",
    "TextFileStringTableInitializer", "index_table_from_file", "index_table_from_tensor",
    "index_to_string_table_from_file", "index_to_string_table_from_tensor", "string_to_index",
    "string_to_index_table_from_file", "string_to_index_table_from_tensor",
]  # fmt: skip

LookupInterface = LookupTableBase
MutableDenseHashTable = DenseHashTable


class IdTableWithHashBuckets:
    """A table that hashes unknown keys to ids above its own.

    Args:
      table: a table of strings to int64, or None for hashes alone.
      num_oov_buckets: how many numbers unknown keys share; 0 for the table's default.

    Raises:
      ValueError: there is neither a table nor a bucket.
    """

    def __init__(
        self, table: Any, num_oov_buckets: int, hasher_spec: Any = None, name: str | None = None,
        key_dtype: Any = None,
    ) -> None:  # fmt: skip
        if table is None and num_oov_buckets <= 0:
            raise ValueError("oov_buckets must be > 0 if no table is supplied.")
        self._table, self._buckets, self._hasher = table, num_oov_buckets, hasher_spec
        self._name = name or "hash_bucket"

    @property
    def name(self) -> str:
        """The name."""
        return self._name

    @property
    def init(self) -> Any:
        """The op that fills the table."""
        return tf.no_op() if self._table is None else self._table.init

    initializer = init

    def size(self, name: str | None = None) -> Any:
        """How many numbers there are, an int64."""
        known = tf.constant(0, tf.int64) if self._table is None else self._table.size()
        return tf.add(known, tf.constant(self._buckets, tf.int64), name=name)

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The numbers of keys, a tensor or a sparse one."""
        if isinstance(keys, tf.SparseTensor):
            return tf.SparseTensor(keys.indices, self.lookup(keys.values, name), keys.dense_shape)
        with tf.name_scope(name, f"{self._name}_Lookup", [keys]):
            keys = tf.convert_to_tensor(keys)
            if self._buckets == 0:
                return self._table.lookup(keys)
            words = keys if keys.dtype == tf.string else tf.as_string(keys)
            buckets = self._hashed(words)
            if self._table is None:
                return buckets
            ids = self._table.lookup(keys)
            return tf.where(tf.not_equal(ids, self._table.default_value), ids, buckets + self._table.size())

    def _hashed(self, words: Any) -> Any:
        kind = getattr(self._hasher, "hasher", "fasthash")
        if kind == "fasthash":
            return tf.string_to_hash_bucket_fast(words, self._buckets)
        if kind == "legacy":
            return tf.string_to_hash_bucket(words, self._buckets)
        if kind == "stronghash":
            return tf.string_to_hash_bucket_strong(words, self._buckets, list(self._hasher.key))
        raise ValueError(f"Found unknown hasher {kind!r} in `hasher_spec`; it must be fasthash, legacy or stronghash.")


def _with_buckets(table: Any, num_oov_buckets: int) -> Any:
    return IdTableWithHashBuckets(table, num_oov_buckets) if num_oov_buckets else table


def index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1, hasher_spec: Any = None,
    dtype: Any = tf.string, name: str | None = None,
) -> Any:  # fmt: skip
    """The table from words to their places in a list.

    Args:
      mapping: the words, a list or a tensor of one dimension.
      num_oov_buckets: unknown words get one of so many numbers beyond, by their hash.
      default_value: the number of unknown words without buckets.

    Raises:
      ValueError: `mapping` is missing, or the buckets are negative.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    with tf.name_scope(name, "string_to_index"):
        keys = tf.convert_to_tensor(mapping)
        keys = tf.to_int64(keys) if keys.dtype.is_integer else keys
        initializer = KeyValueTensorInitializer(keys, tf.range(tf.size(keys, out_type=tf.int64)), name="table_init")
        return _with_buckets(HashTable(initializer, default_value), num_oov_buckets)


def index_table_from_file(
    vocabulary_file: Any = None, num_oov_buckets: int = 0, vocab_size: int | None = None, default_value: int = -1,
    hasher_spec: Any = None, key_dtype: Any = tf.string, name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE, value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:  # fmt: skip
    """The table from the lines of a file to their numbers; see `index_table_from_tensor`.

    Raises:
      ValueError: the file is missing, or a number is out of range.
    """
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if num_oov_buckets < 0:
        raise ValueError(f"num_oov_buckets must be greater or equal than 0, got {num_oov_buckets}.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    with tf.name_scope(name, "string_to_index"):
        initializer = TextFileInitializer(
            vocabulary_file, key_dtype, key_column_index, tf.int64, value_column_index, vocab_size, delimiter
        )
        return _with_buckets(HashTable(initializer, default_value), num_oov_buckets)


def index_to_string_table_from_tensor(mapping: Any, default_value: str = "UNK", name: str | None = None) -> Any:
    """The table from places in a list to its words.

    Raises:
      ValueError: `mapping` is missing.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    with tf.name_scope(name, "index_to_string"):
        values = tf.convert_to_tensor(mapping, tf.string)
        initializer = KeyValueTensorInitializer(tf.range(tf.size(values, out_type=tf.int64)), values, name="table_init")
        return HashTable(initializer, default_value)


def index_to_string_table_from_file(
    vocabulary_file: Any, vocab_size: int | None = None, default_value: str = "UNK", name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER, value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> Any:  # fmt: skip
    """The table from numbers of lines to the lines of a file.

    Raises:
      ValueError: the file is missing, or there are no lines.
    """
    if vocabulary_file is None or (isinstance(vocabulary_file, str) and not vocabulary_file):
        raise ValueError("vocabulary_file must be specified and must not be empty.")
    if vocab_size is not None and vocab_size < 1:
        raise ValueError(f"vocab_size must be greater than 0, got {vocab_size}.")
    with tf.name_scope(name, "index_to_string"):
        initializer = TextFileInitializer(
            vocabulary_file, tf.int64, key_column_index, tf.string, value_column_index, vocab_size, delimiter
        )
        return HashTable(initializer, default_value)


def string_to_index_table_from_tensor(
    mapping: Any, num_oov_buckets: int = 0, default_value: int = -1, hasher_spec: Any = None, name: str | None = None
) -> Any:
    """`index_table_from_tensor`."""
    return index_table_from_tensor(mapping, num_oov_buckets, default_value, name=name)


def string_to_index_table_from_file(
    vocabulary_file: Any = None, num_oov_buckets: int = 0, vocab_size: int | None = None, default_value: int = -1,
    hasher_spec: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """`index_table_from_file`."""
    return index_table_from_file(vocabulary_file, num_oov_buckets, vocab_size, default_value, name=name)


def string_to_index(tensor: Any, mapping: Any, default_value: int = -1, name: str | None = None) -> Any:
    """The places of words in a list."""
    return index_table_from_tensor(mapping, 0, default_value, name=name).lookup(tensor)


def TextFileIdTableInitializer(  # noqa: N802
    filename: Any, key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER, vocab_size: int | None = None, delimiter: str = "\t",
    name: str = "text_file_id_table_init", key_dtype: Any = tf.string,
) -> Any:  # fmt: skip
    """The initializer from lines to numbers."""
    return TextFileInitializer(
        filename, key_dtype, key_column_index, tf.int64, value_column_index, vocab_size, delimiter, name
    )


def TextFileStringTableInitializer(  # noqa: N802
    filename: Any, key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE, vocab_size: int | None = None, delimiter: str = "\t",
    name: str = "text_file_string_table_init",
) -> Any:  # fmt: skip
    """The initializer from numbers to lines."""
    return TextFileInitializer(
        filename, tf.int64, key_column_index, tf.string, value_column_index, vocab_size, delimiter, name
    )
