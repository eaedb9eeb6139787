"""The namespace tf.dtypes. Only re-exports dtypes of `wire/dtypes` and conversions of `ops/math` and
`ops/string`."""

from __future__ import annotations

from dtf.build.ops.math import cast, complex, saturate_cast
from dtf.build.ops.string import as_string
from dtf.wire.dtypes import (
    QUANTIZED_DTYPES,
    DType,
    as_dtype,
    bfloat16,
    bool,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    qint8,
    qint16,
    qint32,
    quint8,
    quint16,
    resource,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
    variant,
)

__all__ = [
    "DType", "QUANTIZED_DTYPES", "as_dtype", "as_string", "bfloat16", "bool", "cast", "complex", "complex128",
    "complex64", "double", "float16", "float32", "float64", "half", "int16", "int32", "int64", "int8", "qint16",
    "qint32", "qint8", "quint16", "quint8", "resource", "saturate_cast", "string", "uint16", "uint32", "uint64",
    "uint8", "variant",
]  # fmt: skip
