"""TensorHandle: the client's handle of a tensor that the runtime keeps between steps.

Owns the client's side of `tf.get_session_handle`: the fetched handle, and the steps that read or delete its
tensor. The runtime keeps the tensors. TensorFlow servers do not keep them, so with those servers only local
sessions support handles.

    handle = session.run(tf.get_session_handle(x * 2))
    session.run(y, {placeholder: handle})         # the tensor, without the way through numpy's memory
    handle.eval(); handle.delete()
"""

from __future__ import annotations

from typing import Any

from dtf.build.ops.data_flow import delete_session_tensor, get_session_tensor
from dtf.wire.dtypes import DType

HANDLE_OPS = frozenset({"GetSessionHandle"})
"""Ops whose fetched value is a TensorHandle."""


class TensorHandle:
    """A tensor that a session keeps. It is deleted with `delete`, or some time after the last TensorHandle of it."""

    def __init__(self, handle: bytes, dtype: DType, session: Any) -> None:
        self._handle = handle.decode()
        self._dtype = dtype
        self._session = session
        self._is_collected = True

    @property
    def handle(self) -> str:
        """The runtime's name of the tensor; feed it to the placeholder of `tf.get_session_tensor`."""
        return self._handle

    @property
    def dtype(self) -> DType:
        """The tensor's dtype."""
        return self._dtype

    def get_raw_handle(self) -> str:
        """The name, for callers that delete the tensor themselves."""
        self._is_collected = False
        return self._handle

    def eval(self) -> Any:
        """The tensor's value.

        Raises:
          TypeError: the tensor has been deleted by `delete`.
          InvalidArgumentError: the session no longer keeps it.
        """
        self._check()
        steps = self._session.handle_steps
        with self._session.graph.as_default():
            reader = steps.get(("read", self._dtype, _device_of(self._handle)))
            if reader is None:
                reader = get_session_tensor(self._handle, self._dtype)
                steps["read", self._dtype, _device_of(self._handle)] = reader
        holder, value = reader
        return self._session.run(value, {holder: self._handle})

    def delete(self) -> None:
        """Deletes the tensor. Errors as `eval`."""
        self._check()
        self._is_collected = False
        delete(self._session, self._handle)

    def __del__(self) -> None:
        if self._is_collected:
            self._session.forget_handle(self._handle)

    def __str__(self) -> str:
        return self._handle

    def _check(self) -> None:
        if not self._is_collected:
            raise TypeError(f"The persistent tensor {self._handle} may have been deleted already.")


def delete(session: Any, handle: str) -> None:
    """Deletes a kept tensor by its name."""
    steps = session.handle_steps
    with session.graph.as_default():
        deleter = steps.get(("delete", _device_of(handle)))
        if deleter is None:
            deleter = steps["delete", _device_of(handle)] = delete_session_tensor(handle)
    holder, operation = deleter
    session.run(operation, {holder: handle})


def _device_of(handle: str) -> str:
    return handle.rpartition(";")[2]
