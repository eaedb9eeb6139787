"""What tensors of dtype variant hold, and its form on the wire: `TensorList`, `Optional` and `IteratorState`.

Lists are what `while` loops made of functions carry where loops of Enter and Exit use tensor arrays and stacks; an
optional is what one branch of an `If` may leave for its gradient. Both are values: an operation that changes one gives
a new one. What the operations do is `run.kernels`'.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from google.protobuf.message import DecodeError

from dtf.wire import errors
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import tensor_pb2, tensor_shape_pb2
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.varints import read_varint, varint

__all__ = ["Decode", "Encode", "IteratorState", "Optional", "TensorList", "is_variant", "variant_of"]

Encode = Callable[[Any, DType | None], tensor_pb2.TensorProto]
"""The message of a tensor that a variant holds: `tensor_proto.array_to_proto`, whose tensors may be variants again."""
Decode = Callable[[tensor_pb2.TensorProto], Any]
"""The tensor of such a message: `tensor_proto.proto_to_array`."""
_LIST = "tensorflow::TensorList"
_OPTIONAL = "tensorflow::data::Optional"
_ITERATOR_STATE = "dtf::IteratorState"


@dataclass(frozen=True, eq=False)
class TensorList:
    """A list of tensors of one dtype.

    Attributes:
      dtype: of the elements.
      element_shape: what the shape of every element is compatible with.
      max_num_elements: how long it may become; -1: no limit.
      values: the elements; None for an element that is not set.
    """

    dtype: DType
    element_shape: TensorShape
    values: tuple[Any, ...] = ()
    max_num_elements: int = -1

    # For those who only look at how large a value is: to numpy it is a scalar.
    shape: ClassVar[tuple[()]] = ()
    nbytes: ClassVar[int] = 0

    def with_values(self, values: Any) -> TensorList:
        """The same kind of list with other elements."""
        return TensorList(self.dtype, self.element_shape, tuple(values), self.max_num_elements)

    def to_proto(self, encode: Encode) -> tensor_pb2.VariantTensorDataProto:
        """Its message: the elements that are set, and in the metadata which are not, dtype, limit and shape."""
        unset = [index for index, value in enumerate(self.values) if value is None]
        limit = self.max_num_elements & 0xFFFFFFFFFFFFFFFF
        numbers = [len(unset), *unset, self.dtype.as_datatype_enum, limit]
        metadata = b"".join(map(varint, numbers)) + self.element_shape.as_proto().SerializeToString()
        tensors = [encode(value, self.dtype) for value in self.values if value is not None]
        return tensor_pb2.VariantTensorDataProto(type_name=_LIST, metadata=metadata, tensors=tensors)

    @staticmethod
    def from_proto(proto: Any, decode: Decode) -> TensorList:
        """The list of a message.

        Raises:
          InvalidArgumentError: the message contradicts itself.
        """
        try:
            count, at = read_varint(proto.metadata, 0)
            unset = set()
            for _ in range(count):
                index, at = read_varint(proto.metadata, at)
                unset.add(index)
            enum, at = read_varint(proto.metadata, at)
            limit, at = read_varint(proto.metadata, at)
            shape = TensorShape(tensor_shape_pb2.TensorShapeProto.FromString(proto.metadata[at:]))
            dtype = as_dtype(enum)
        except (DecodeError, IndexError, TypeError, ValueError) as error:
            raise errors.InvalidArgumentError.of(f"Malformed tensor list: {error}") from None
        total = len(proto.tensors) + len(unset)
        if any(index >= total for index in unset):
            raise errors.InvalidArgumentError.of("Malformed tensor list: an unset element is out of range")
        given = iter(proto.tensors)
        values = tuple(None if index in unset else decode(next(given)) for index in range(total))
        return TensorList(dtype, shape, values, limit - (1 << 64) if limit >> 63 else limit)


@dataclass(frozen=True, eq=False)
class Optional:
    """Some tensors, or nothing. `values` is None for nothing."""

    values: tuple[Any, ...] | None = None

    shape: ClassVar[tuple[()]] = ()
    nbytes: ClassVar[int] = 0

    def to_proto(self, encode: Encode) -> tensor_pb2.VariantTensorDataProto:
        """Its message."""
        tensors = [encode(value, None) for value in self.values or ()]
        metadata = b"\0" if self.values is None else b"\1"
        return tensor_pb2.VariantTensorDataProto(type_name=_OPTIONAL, metadata=metadata, tensors=tensors)

    @staticmethod
    def from_proto(proto: Any, decode: Decode) -> Optional:
        """The optional of a message."""
        if proto.metadata == b"\0":
            return Optional()
        return Optional(tuple(map(decode, proto.tensors)))


@dataclass(frozen=True, eq=False)
class IteratorState:
    """The position of an iterator over a dataset: JSON, and the tensors to which it refers by their numbers."""

    text: bytes
    tensors: tuple[Any, ...] = ()

    shape: ClassVar[tuple[()]] = ()
    nbytes: ClassVar[int] = 0

    def to_proto(self, encode: Encode) -> tensor_pb2.VariantTensorDataProto:
        """Its message."""
        tensors = [encode(value, None) for value in self.tensors]
        return tensor_pb2.VariantTensorDataProto(type_name=_ITERATOR_STATE, metadata=self.text, tensors=tensors)

    @staticmethod
    def from_proto(proto: Any, decode: Decode) -> IteratorState:
        """The position of a message."""
        return IteratorState(proto.metadata, tuple(map(decode, proto.tensors)))


def is_variant(value: Any) -> bool:
    """Whether a value is an element of a variant tensor: one of the above, or another with a message of its own."""
    return hasattr(value, "to_proto") and hasattr(value, "nbytes")


def variant_of(proto: Any, decode: Decode) -> Any:
    """The value of a VariantTensorDataProto; the message itself for what is not known here."""
    if proto.type_name == _LIST:
        return TensorList.from_proto(proto, decode)
    if proto.type_name == _ITERATOR_STATE:
        return IteratorState.from_proto(proto, decode)
    return Optional.from_proto(proto, decode) if proto.type_name == _OPTIONAL else proto
