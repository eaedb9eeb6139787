"""Element types of tensors: `DType`, the named types, `as_dtype`.

Names and numbers are TensorFlow's (`types.proto`); a reference type has the number of its base type + 100.
Strings are numpy object arrays of `bytes`; bfloat16 and the 8-bit and smaller floats come from `ml_dtypes`,
which is imported when one of them is first used. Quantized types are held as the plain integers of their width.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

_REF_OFFSET = 100


class DType:
    """An element type. Compare with `==` (also with numpy types and names), hash, use as a dict key.

    Attributes:
      name: "float32", "int64", "string", "float32_ref" ...
      as_datatype_enum: the number in `types.proto`.
      size: bytes per element; 1 for types narrower than a byte, 0 where an element has no fixed size.
    """

    __slots__ = ("_enum", "_kind", "_numpy_name", "_numpy_type", "as_datatype_enum", "name", "size")

    def __new__(cls, enum: int, name: str = "", *_: Any) -> DType:
        """The DType of a number; with further arguments, in this module only, a new one."""
        if name:
            return object.__new__(cls)
        if enum not in _BY_ENUM:
            raise TypeError(f"DType must be constructed from a number of types.proto, not {enum!r}")
        return _BY_ENUM[enum]

    def __init__(self, enum: int, name: str = "", numpy_name: str = "", kind: str = "", size: int = 0) -> None:
        if not name:  # `__new__` found the type
            return
        self._enum = enum
        self.as_datatype_enum = enum
        self.name = name
        self.size = size
        # f float, i signed, u unsigned, c complex, b bool, q and Q the same quantized, s string, h handle
        self._kind = kind
        self._numpy_name = numpy_name
        self._numpy_type: Any = None

    @property
    def as_numpy_dtype(self) -> Any:
        """The numpy scalar type of an element (`np.object_` for strings and handles)."""
        if self._numpy_type is None:
            self._numpy_type = _numpy_type(self._numpy_name)
        return self._numpy_type

    @property
    def base_dtype(self) -> DType:
        """The type without the reference."""
        return _BY_ENUM[self._enum - _REF_OFFSET] if self._is_ref_dtype else self

    @property
    def real_dtype(self) -> DType:
        """The type of the real part of a complex type; any other type itself."""
        base = self.base_dtype
        if base is complex64:
            return float32
        return float64 if base is complex128 else self

    @property
    def _is_ref_dtype(self) -> builtins.bool:
        return self._enum > _REF_OFFSET

    @property
    def _as_ref(self) -> DType:
        return self if self._is_ref_dtype else _BY_ENUM[self._enum + _REF_OFFSET]

    @property
    def is_numpy_compatible(self) -> builtins.bool:
        return self._kind != "h"

    @property
    def is_bool(self) -> builtins.bool:
        return self._kind == "b"

    @property
    def is_integer(self) -> builtins.bool:
        """True for integers that are not quantized."""
        return self._kind in "iu"

    @property
    def is_unsigned(self) -> builtins.bool:
        return self._kind in "uQ"

    @property
    def is_floating(self) -> builtins.bool:
        return self._kind == "f"

    @property
    def is_complex(self) -> builtins.bool:
        return self._kind == "c"

    @property
    def is_quantized(self) -> builtins.bool:
        return self._kind in "qQ"

    @property
    def min(self) -> Any:
        """The least finite value; a TypeError for a type that has none."""
        return self._finite_range("minimum").min

    @property
    def max(self) -> Any:
        """The greatest finite value; a TypeError for a type that has none."""
        return self._finite_range("maximum").max

    @property
    def limits(self) -> tuple[Any, Any]:
        """The range of an image of this type: (0, 1) for float32 and float64, (0, max) for integers."""
        if self.base_dtype in (float32, float64):
            return 0, 1
        if self._kind in "iu" and not self._numpy_name.endswith(("t4", "t2")):  # neither int4 nor int2
            return 0, self.max
        if self._kind == "b":
            return 0, True
        raise ValueError(f"{self!s} does not have defined limits.")

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """True when `other` or a reference to it may stand where this type is asked for."""
        other = as_dtype(other)
        return self._enum in (other._enum, other.base_dtype._enum)

    def _finite_range(self, end: str) -> Any:
        if self._kind in "iu":
            return _finfo_or_iinfo("iinfo", self.as_numpy_dtype)
        if self._kind == "f":
            return _finfo_or_iinfo("finfo", self.as_numpy_dtype)
        raise TypeError(f"Cannot find {end} value of {self!s}.")

    def __eq__(self, other: object) -> builtins.bool:
        if self is other:
            return True
        if other is None:
            return False
        if not isinstance(other, DType):
            try:
                other = as_dtype(other)
            except TypeError:
                return False
        return self._enum == other._enum

    def __hash__(self) -> int:
        return self._enum

    def __int__(self) -> int:
        return self._enum

    def __reduce__(self) -> tuple[Any, ...]:
        return as_dtype, (self.name,)

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"

    def __repr__(self) -> str:
        return f"tf.{self.name}"


def as_dtype(type_value: Any) -> DType:
    """The DType of anything that names one.

    Accepts a DType, a number of `types.proto`, a name ("float", "float32", "float32_ref", "half"), a numpy
    type or `np.dtype` (byte strings, unicode and object mean string), anything with such a `dtype`, and Python's
    `float` (float32), `bool` and `object`.

    Raises:
      TypeError: nothing of these; Python's `int` and `str` too, whose width or encoding nobody could guess.
    """
    if isinstance(type_value, DType):
        return type_value
    if isinstance(type_value, (int, str, type, np.dtype)):  # not np.float32(3), which would be found as 3
        known = _KNOWN.get(type_value)
        if known is not None:
            return known
    found = None
    if isinstance(type_value, np.dtype):
        found = _of_numpy(type_value)
    elif isinstance(type_value, type) and issubclass(type_value, np.generic):
        found = _of_numpy(np.dtype(type_value))
    elif hasattr(type_value, "dtype"):
        try:
            found = _of_numpy(np.dtype(type_value.dtype))
        except TypeError:
            found = None
    if found is None:
        raise TypeError(f"Cannot convert the argument `type_value`: {type_value!r} to a TensorFlow DType.")
    return found


def runtime_name(dtype: DType) -> str:
    """What TensorFlow's runtime calls a dtype in its messages: float32 is "float" there."""
    return {float16: "half", float32: "float", float64: "double"}.get(dtype, dtype.name)


def _of_numpy(numpy_dtype: Any) -> DType | None:
    found = string if numpy_dtype.kind in "SUO" else _OF_NUMPY_NAME.get(numpy_dtype.name)
    if found is not None:
        _KNOWN[numpy_dtype] = found
    return found


def _numpy_type(numpy_name: str) -> Any:
    if hasattr(np, numpy_name):
        return getattr(np, numpy_name)
    import ml_dtypes  # 15 ms that most programs never need

    return getattr(ml_dtypes, numpy_name)


def _finfo_or_iinfo(function: str, numpy_type: Any) -> Any:
    if numpy_type.__module__ == "numpy":
        return getattr(np, function)(numpy_type)
    import ml_dtypes

    return getattr(ml_dtypes, function)(numpy_type)


_BY_ENUM: dict[int, DType] = {}
# What as_dtype takes without thinking: numbers, names, types. Grows by the numpy dtypes that are seen.
_KNOWN: dict[Any, DType] = {}
_OF_NUMPY_NAME: dict[str, DType] = {}


def _define(enum: int, name: str, kind: str, size: int, numpy_name: str = "") -> DType:
    base = DType(enum, name, numpy_name or name, kind, size)
    reference = DType(enum + _REF_OFFSET, name + "_ref", numpy_name or name, kind, size)
    for dtype in (base, reference):
        _BY_ENUM[dtype.as_datatype_enum] = dtype
        _KNOWN[dtype.as_datatype_enum] = dtype
        _KNOWN[dtype.name] = dtype
    if not numpy_name:
        _OF_NUMPY_NAME[name] = base
    return base


float32 = _define(1, "float32", "f", 4)
float64 = _define(2, "float64", "f", 8)
int32 = _define(3, "int32", "i", 4)
uint8 = _define(4, "uint8", "u", 1)
int16 = _define(5, "int16", "i", 2)
int8 = _define(6, "int8", "i", 1)
string = _define(7, "string", "s", 0, "object_")
complex64 = _define(8, "complex64", "c", 8)
int64 = _define(9, "int64", "i", 8)
bool = _define(10, "bool", "b", 1, "bool_")
qint8 = _define(11, "qint8", "q", 1, "int8")
quint8 = _define(12, "quint8", "Q", 1, "uint8")
qint32 = _define(13, "qint32", "q", 4, "int32")
bfloat16 = _define(14, "bfloat16", "f", 2)
qint16 = _define(15, "qint16", "q", 2, "int16")
quint16 = _define(16, "quint16", "Q", 2, "uint16")
uint16 = _define(17, "uint16", "u", 2)
complex128 = _define(18, "complex128", "c", 16)
float16 = _define(19, "float16", "f", 2)
resource = _define(20, "resource", "h", 0, "object_")
variant = _define(21, "variant", "h", 0, "object_")
uint32 = _define(22, "uint32", "u", 4)
uint64 = _define(23, "uint64", "u", 8)
float8_e5m2 = _define(24, "float8_e5m2", "f", 1)
float8_e4m3fn = _define(25, "float8_e4m3fn", "f", 1)
float8_e4m3fnuz = _define(26, "float8_e4m3fnuz", "f", 1)
float8_e4m3b11fnuz = _define(27, "float8_e4m3b11fnuz", "f", 1)
float8_e5m2fnuz = _define(28, "float8_e5m2fnuz", "f", 1)
int4 = _define(29, "int4", "i", 1)
uint4 = _define(30, "uint4", "u", 1)
int2 = _define(31, "int2", "i", 1)
uint2 = _define(32, "uint2", "u", 1)
float4_e2m1fn = _define(33, "float4_e2m1fn", "f", 1)

half = float16
double = float64

float32_ref = float32._as_ref
float64_ref = float64._as_ref
double_ref = float64_ref
half_ref = float16._as_ref
float16_ref = half_ref
bfloat16_ref = bfloat16._as_ref
int8_ref = int8._as_ref
int16_ref = int16._as_ref
int32_ref = int32._as_ref
int64_ref = int64._as_ref
uint8_ref = uint8._as_ref
uint16_ref = uint16._as_ref
uint32_ref = uint32._as_ref
uint64_ref = uint64._as_ref
complex64_ref = complex64._as_ref
complex128_ref = complex128._as_ref
bool_ref = bool._as_ref
string_ref = string._as_ref
resource_ref = resource._as_ref
variant_ref = variant._as_ref
qint8_ref = qint8._as_ref
qint16_ref = qint16._as_ref
qint32_ref = qint32._as_ref
quint8_ref = quint8._as_ref
quint16_ref = quint16._as_ref

QUANTIZED_DTYPES = frozenset({qint8, quint8, qint16, quint16, qint32})

_OF_NUMPY_NAME["bool"] = bool
_KNOWN.update(
    {
        "float": float32,
        "half": float16,
        "double": float64,
        "float_ref": float32_ref,
        "half_ref": half_ref,
        "double_ref": float64_ref,
        builtins.float: float32,
        builtins.bool: bool,
        object: string,
        np.object_: string,
        np.bytes_: string,
        np.str_: string,
    }
)
for _numpy_name, _dtype in _OF_NUMPY_NAME.items():
    if hasattr(np, _numpy_name):
        _KNOWN[_dtype.as_numpy_dtype] = _dtype
        _KNOWN[np.dtype(_dtype.as_numpy_dtype)] = _dtype
