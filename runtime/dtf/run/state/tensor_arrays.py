"""Tensor arrays and stacks: lists of arrays that live for one step, for loops to write to and read from.

Owns the two containers and their rules. `kernels/tensor_array.py` binds them to nodes.

A gradient array belongs to a forward array: writes to one of its places add up, and a place that nobody wrote reads
  as zeros.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/TensorArray
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from dtf.run.lib.growth import Growth
from dtf.run.value_types import Array
from dtf.wire import errors, limits
from dtf.wire.dtypes import DType
from dtf.wire.tensor_shape import TensorShape

__all__ = ["Stack", "TensorArray"]


class TensorArray:
    """A list of arrays of one dtype. The lock guards the list; loop iterations may run at once."""

    def __init__(
        self,
        dtype: DType,
        size: int,
        element_shape: TensorShape,
        dynamic_size: bool = False,
        clear_after_read: bool = True,
        identical_element_shapes: bool = False,
        adds_up: bool = False,
        zeros_like: TensorArray | None = None,
    ) -> None:
        """adds_up: writes to one place add up. zeros_like: the forward array of a gradient array."""
        self.dtype = dtype
        self.element_shape = element_shape
        self.dynamic_size = dynamic_size
        self.clear_after_read = clear_after_read
        self.identical_element_shapes = identical_element_shapes
        self._adds_up = adds_up
        self._forward = zeros_like
        limits.check_room((size,), 8)
        self._values: list[Array | None] = [None] * size
        self._was_read: set[int] = set()
        # Shapes outlive the values, which a reader may have cleared: a gradient needs them.
        self._shapes: list[tuple[int, ...] | None] = [None] * size
        self._gradients: dict[str, TensorArray] = {}
        self._is_closed = False
        self._lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._values)

    def write(self, index: int, value: Array, add: Callable[[Array, Array], Array] = np.add) -> None:
        """Sets one place; adds to it in a gradient array, with a function for the arrays of the device.

        Raises:
          InvalidArgumentError: outside of a size that cannot grow, another shape, or written before.
        """
        with self._lock:
            self._check_open()
            if index < 0 or index >= len(self._values):
                if index < 0 or not self.dynamic_size:
                    raise _invalid(
                        f"Tried to write to index {index} but array is not resizeable and size is: {len(self._values)}"
                    )
                extra = index + 1 - len(self._values)
                limits.check_room((extra,), 8)
                self._values.extend([None] * extra)
                self._shapes.extend([None] * extra)
            self._check_shape(index, value.shape)
            present = self._values[index]
            if present is not None and self._adds_up:
                value = add(present, value)
            elif present is not None:
                raise _invalid(f"Could not write to TensorArray index {index} because it has already been written to.")
            elif index in self._was_read:
                raise _invalid(f"Could not write to TensorArray index {index} because it has already been read.")
            self._values[index] = value
            self._shapes[index] = value.shape

    def read(self, index: int) -> Array:
        """The value of one place; it is forgotten when the array clears what is read.

        Raises:
          InvalidArgumentError: outside of the array, never written, or read and cleared before.
        """
        with self._lock:
            self._check_open()
            if not 0 <= index < len(self._values):
                raise _invalid(f"Tried to read from index {index} but array size is: {len(self._values)}")
            value = self._values[index]
            if value is None:
                if index in self._was_read and self.clear_after_read:
                    raise _invalid(
                        f"Could not read index {index} twice because it was cleared after a previous read (perhaps "
                        "try setting "
                        "clear_after_read = false?)."
                    )
                return self._zeros(index)
            if self.clear_after_read:
                self._values[index] = None
                self._was_read.add(index)
            return value

    def close(self) -> None:
        """Forgets all values; nothing may be read or written after."""
        with self._lock:
            self._is_closed = True
            self._values.clear()

    def gradient(self, source: str, shape_to_prepend: tuple[int, ...] = ()) -> TensorArray:
        """The gradient array of that source, made at the first call; its size is fixed then, and so is this one's."""
        with self._lock:
            found = self._gradients.get(source)
            if found is None:
                self.dynamic_size = False
                found = self._gradients[source] = TensorArray(
                    self.dtype,
                    len(self._values),
                    TensorShape(list(shape_to_prepend)).concatenate(self.element_shape),
                    clear_after_read=self.clear_after_read,
                    identical_element_shapes=self.identical_element_shapes,
                    adds_up=True,
                    zeros_like=self,
                )
                for i, shape in enumerate(self._shapes):
                    if shape is not None:
                        found._shapes[i] = (*shape_to_prepend, *shape)
            return found

    def _zeros(self, index: int) -> np.ndarray:
        shape = self._shapes[index]
        if shape is None and self._forward is not None:
            shape = next((each for each in self._shapes if each is not None and self.identical_element_shapes), None)
        if shape is None and self.element_shape.is_fully_defined():
            shape = tuple(self.element_shape.as_list())  # type: ignore[arg-type]
        if shape is None or (self._forward is None and not self.element_shape.is_fully_defined()):
            raise _invalid(
                f"Could not read from TensorArray index {index}.  Furthermore, the element shape is not fully defined: "
                f"{self.element_shape}.  It is possible you are working with a resizeable TensorArray and "
                "stop_gradients is not "
                "allowing the gradients to be written.  If you set the full element_shape property on the forward "
                "TensorArray, "
                "the proper all-zeros array will be returned instead of incurring this error."
            )
        return np.zeros(shape, self.dtype.as_numpy_dtype)

    def _check_open(self) -> None:
        if self._is_closed:
            raise _invalid("TensorArray has already been closed.")

    def _check_shape(self, index: int, shape: tuple[int, ...]) -> None:
        if not self.element_shape.is_compatible_with(TensorShape(list(shape))):
            raise _invalid(
                f"Could not write to TensorArray index {index} because the value shape is {list(shape)} which is "
                "incompatible "
                f"with the TensorArray's inferred element shape: {self.element_shape} (consider setting "
                "infer_shape=False)."
            )
        if self.identical_element_shapes and not self.element_shape.is_fully_defined():
            self.element_shape = TensorShape(list(shape))


class Stack:
    """A stack of arrays, bounded by `max_size` unless that is negative. The lock guards it."""

    def __init__(self, name: str, dtype: DType, max_size: int) -> None:
        self.name = name
        self.dtype = dtype
        self._max_size = max_size
        self._values: list[Array] = []
        self._growth = Growth(f"Stack[{name}]")
        self._is_closed = False
        self._lock = threading.Lock()

    def push(self, value: Array) -> None:
        """Raises InvalidArgumentError when it is full or closed."""
        with self._lock:
            self._check_open()
            if 0 <= self._max_size <= len(self._values):
                raise _invalid(f"Stack[{self.name}] overflowed its max_size ({self._max_size})")
            self._growth.add((value,), len(self._values))
            self._values.append(value)

    def pop(self) -> Array:
        """Raises InvalidArgumentError when it is empty or closed."""
        with self._lock:
            self._check_open()
            if not self._values:
                raise _invalid(f"Stack[{self.name}] is empty when calling Pop().")
            return self._values.pop()

    def close(self) -> None:
        """Forgets the values."""
        with self._lock:
            self._is_closed = True
            self._values.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise _invalid(f"Stack[{self.name}] has already been closed.")


def _invalid(message: str) -> errors.OpError:
    return errors.InvalidArgumentError.of(message)
