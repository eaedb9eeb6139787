"""The namespace tf.lookup. Only re-exports classes of `ops/lookup`."""

from __future__ import annotations

from types import SimpleNamespace

from dtf import late as _late
from dtf.build.ops.lookup import (
    DenseHashTable,
    KeyValueTensorInitializer,
    MutableHashTable,
    StaticHashTable,
    StaticVocabularyTable,
    TextFileIndex,
    TextFileInitializer,
)

experimental = SimpleNamespace(DenseHashTable=DenseHashTable, MutableHashTable=MutableHashTable)

__all__ = [
    "KeyValueTensorInitializer", "StaticHashTable", "StaticVocabularyTable", "TextFileIndex", "TextFileInitializer",
    "experimental",
]  # fmt: skip

__getattr__ = _late.refusals(__name__)
